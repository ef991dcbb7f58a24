"""``covp firmware``: what programs print on the virtual board, and how they end."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from covp.chip.platform_file import load_platform
from covp.compilers.toolchain import SourceText, get_toolchain
from covp.device.debug.program_file import load_elf, start_firmware
from covp.device.virtual import VirtualDevice
from covp.runtime.standalone import link_standalone

from .conftest import Call

COVP = [sys.executable, "-c", "from covp.cli.main import main; main()"]
TESTS = Path(__file__).parents[1]
SERIAL = """
#include <stdint.h>
#define TX (*(volatile uint32_t *){base}u)
int main(void)
{{
    for (const char *c = "over the wire\\nno newline"; *c; c++)
        TX = (uint32_t)*c;
    return {status};
}}
"""


BARE = """
name: bare
core: rv32imc
clock_hz: 1_000_000
memory:
  - {name: flash, kind: flash, start: 0x20000000, size: 1M}
  - {name: ram, kind: ram, start: 0x80000000, size: 1M}
"""


def link(platform: str, source: SourceText) -> Path:
    chosen = load_platform(platform)
    return link_standalone(get_toolchain("zig", chosen.core), chosen, [source], ("-O1",))


def serial(platform: str, status: int) -> Path:
    (base,) = [one.base for one in load_platform(platform).peripherals if one.model == "uart"]
    return link(platform, SourceText("main.c", SERIAL.format(base=base, status=status)))


@pytest.mark.parametrize("status", [0, 3])
def test_the_serial_port_and_the_status(call: Call, status: int) -> None:
    elf = serial("riscv32", status)
    done = call("firmware", elf, "-p", "riscv32")
    assert done.status == (1 if status else 0)
    assert done.out == "over the wire\nno newline"
    assert re.search(rf"on riscv32: status {status}, [\d,]+ instructions, [\d,]+ cycles", done.err)


@pytest.mark.costly
@pytest.mark.parametrize("platform", ["mps2-an386", "qemu-riscv32"])
def test_semihosting_is_answered(call: Call, platform: str, tmp_path: Path) -> None:
    elf = link(platform, SourceText.read(TESTS / "device" / "semihosting.c"))
    options = ("-p", platform, "--files", tmp_path, "--arguments", "one two")
    command = [*COVP, "firmware", str(elf), *map(str, options)]
    done = subprocess.run(command, input=b"typed\n", capture_output=True, timeout=120, check=False)
    assert done.returncode == 1 and b"status 42" in done.stderr
    assert b"typed\n" in done.stdout and b"one two" in done.stdout
    assert done.stdout.endswith(b"clock=00000001\n") and done.stderr.startswith(b"wrong\n")
    assert (tmp_path / "kept.bin").stat().st_size == 304
    refused = call("firmware", elf, *options, "--no-semihosting")
    assert refused.status == 1 and refused.refusal.startswith("covp: breakpoint")


ECHO = """
#include <stdint.h>
#define REG(offset) (*(volatile uint32_t *)({base}u + offset))
int main(void)
{{
    for (uint32_t byte = 0; byte != '.';) {{
        while (!(REG(8) & 2u)) {{
        }}
        byte = REG(4);
        REG(0) = byte >= 'a' && byte <= 'z' ? byte - 32u : byte;
    }}
    return 0;
}}
"""


def test_the_serial_port_is_fed(call: Call, tmp_path: Path) -> None:
    (base,) = [one.base for one in load_platform("riscv32").peripherals if one.model == "uart"]
    elf = link("riscv32", SourceText("main.c", ECHO.format(base=base)))
    (tmp_path / "typed").write_text("from a file.")
    done = call("firmware", elf, "-p", "riscv32", "--serial-input", tmp_path / "typed")
    assert done.status == 0 and done.out == "FROM A FILE."
    command = [*COVP, "firmware", str(elf), "-p", "riscv32", "--serial-input", "-"]
    piped = subprocess.run(command, input=b"from\na pipe.\n", capture_output=True, timeout=120)
    assert piped.returncode == 0 and piped.stdout == b"FROM\nA PIPE."
    missing = call("firmware", elf, "-p", "riscv32", "--serial-input", tmp_path / "none")
    assert missing.status == 2 and "cannot be read" in missing.refusal
    (tmp_path / "bare.yaml").write_text(BARE)
    bare = call("firmware", elf, "-p", tmp_path / "bare.yaml", "--serial-input", "-")
    assert bare.status == 2 and "bare has no serial port" in bare.refusal


@pytest.mark.costly
@pytest.mark.parametrize("accelerators", [(), ("-a", "qconv2d"), ("-a", "mine=gemm:size=8")])
def test_what_was_exported_runs(
    call: Call, small: Path, tmp_path: Path, accelerators: tuple[str, ...]
) -> None:
    """The Makefile's own ELF file, which compares an inference with the reference."""
    project = tmp_path / "project"
    target = ("-p", "cortex-m4", *accelerators)
    assert call("export", small, *target, "-o", project).status == 0
    subprocess.run(["make", "-s", "-C", project], check=True, timeout=300)
    done = call("firmware", project / "firmware.elf", *target)
    assert done.status == 0 and done.out.endswith("pass\n")
    if accelerators:  # they are not there by themselves
        assert call("firmware", project / "firmware.elf", "-p", "cortex-m4").status == 1


def test_rtt_is_printed(call: Call) -> None:
    text = (TESTS / "device" / "debug" / "rtt.c").read_text()
    end = text[text.index("    for (;;)") :]  # it would wait for keys
    numbers = text[
        text.index("    for (uint32_t i = 0; i < 100") : text.index('    put_text("a line')
    ]
    source = text.replace(end, "    return 0;\n}\n").replace(numbers, "")
    elf = link("cortex-m4", SourceText("main.c", source))
    done = call("firmware", elf, "-p", "cortex-m4", "--rtt")
    assert done.status == 0
    line = "a line that is longer than the buffer of sixty-four bytes has room for at once\n"
    assert done.out == f"up\n{line}"


def test_what_does_not_run(call: Call, tmp_path: Path) -> None:
    elf = link("riscv32", SourceText("main.c", 'int main(void) { for (;;) __asm__ volatile(""); }'))
    late = call("firmware", elf, "-p", "riscv32", "--timeout", "0.5")
    assert late.status == 1 and late.err.startswith("covp: timeout")
    wrong = call("firmware", elf, "-p", "cortex-m4")
    assert wrong.status == 2 and "not for the cortex-m4f of cortex-m4" in wrong.err
    missing = call("firmware", tmp_path / "no.elf", "-p", "riscv32")
    assert missing.status == 2 and "cannot be read" in missing.err


TWO_LOOPS = """
#include <stdint.h>
#define PIN (*(volatile uint32_t *){pin}u)
static volatile uint32_t sum;
__attribute__((noinline)) void before(uint32_t n) {{ while (n--) sum += n; }}
__attribute__((noinline)) void after(void) {{ sum++; }}
int main(void)
{{
    for (uint32_t turn = 1; turn < 4; turn++) {{
        PIN = 1;
        before(100 * turn);
        after();
        PIN = 0;
    }}
    return 0;
}}
"""


@pytest.mark.parametrize("platform", ["riscv32", "cortex-m4"])
def test_cycles_between_two_places(call: Call, platform: str) -> None:
    """What single steps count between the same instructions."""
    chosen = load_platform(platform)
    (pin,) = [one.base for one in chosen.peripherals if one.model == "uart"]
    elf = link(platform, SourceText("main.c", TWO_LOOPS.format(pin=pin)))
    done = call(
        "firmware", elf, "-p", platform, "--cycles-between", "before", "after", "--times", "3"
    )
    rows = [tuple(int(n.replace(",", "")) for n in re.findall(r"[\d,]+(?= [ic])", line))
            for line in done.out.splitlines()]  # fmt: skip
    assert len(rows) == 3
    with VirtualDevice(chosen) as device:
        program = load_elf(device, elf)
        places = [program.symbols[name].address & ~1 for name in ("before", "after")]
        device.core.write_register("pc", start_firmware(device, program))
        wanted: list[tuple[int, int]] = []
        begin = None
        while len(wanted) < 3:
            pc = device.core.read_register("pc") & ~1
            if pc == places[0]:
                begin = device.core.totals
            elif pc == places[1] and begin is not None:
                now = device.core.totals
                wanted.append((now.instructions - begin.instructions, now.cycles - begin.cycles))
                begin = None
            device.step()
    assert rows == wanted
    stores = call(
        "firmware", elf, "-p", platform, "--cycles-between", hex(pin), hex(pin), "--times", "2"
    )
    assert len(stores.out.splitlines()) == 2 and stores.status == 0
    (first, second) = [int(re.findall(r"([\d,]+) cycles", line)[0].replace(",", ""))
                       for line in stores.out.splitlines()]  # fmt: skip
    assert first > rows[0][1] and second < first


@pytest.mark.costly
def test_places_that_are_not_reached(call: Call) -> None:
    elf = serial("riscv32", 0)
    missing = call("firmware", elf, "-p", "riscv32", "--cycles-between", "main", "mian")
    assert missing.status == 2 and "did you mean main" in missing.refusal
    never = call(
        "firmware", elf, "-p", "riscv32", "--cycles-between", "main", "0x20080000",
        "--timeout", "1",
    )  # fmt: skip
    assert never.status == 1 and "timeout" in never.err
