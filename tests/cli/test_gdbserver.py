"""``covp debug gdb`` as a process, and the GDB command line that it prints."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from covp.chip.platform_file import load_platform
from covp.compilers.toolchain import SourceText, get_toolchain
from covp.runtime.standalone import link_standalone

from .conftest import Call

COVP = [sys.executable, "-c", "from covp.cli.main import main; main()"]
PROGRAM = "volatile int seen;\nint main(void)\n{\n    seen = 42;\n    return seen;\n}\n"


@dataclass
class Server:
    """A running ``covp debug gdb``."""

    lines: list[str]
    rest: str = ""
    """What it printed later; known when it has ended."""

    def gdb(self, *commands: str) -> str:
        """What the printed command line shows with these commands added."""
        if shutil.which("gdb-multiarch") is None:
            pytest.skip("gdb-multiarch is not installed: apt install gdb-multiarch")
        words = shlex.split(next(line for line in self.lines if line.startswith("gdb-multiarch")))
        words[1:1] = ["-nx", "-batch"]
        for command in ("set confirm off", *commands):
            words[-1:-1] = ["-ex", command]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120)
        return done.stdout + done.stderr


@contextmanager
def serving(*arguments: object, hints: int = 2) -> Iterator[Server]:
    process = subprocess.Popen(
        [*COVP, "debug", "gdb", "--port", "0", *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        lines = [process.stdout.readline() for _ in range(hints)]
        assert all(lines), process.communicate()[1]
        server = Server(lines)
        yield server
        process.send_signal(signal.SIGINT)
        server.rest, errors = process.communicate(timeout=60)
        assert process.returncode == 0 and errors.endswith("stopped\n"), errors
        assert "Traceback" not in errors
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def elf() -> Path:
    platform = load_platform("stm32f746")
    compiler = get_toolchain("zig", platform.core)
    return link_standalone(compiler, platform, [SourceText("answer.c", PROGRAM)])


@pytest.mark.costly
def test_a_program_is_there_from_the_start(elf: Path, tmp_path: Path) -> None:
    svd = tmp_path / "board.svd"
    with serving("-p", "stm32f746", "--elf", elf, "--svd", svd) as server:
        assert "stm32f746 (cortex-m7f)" in server.lines[0]
        text = server.gdb("break answer.c:5", "continue", "print seen", "compare-sections")
        assert "Breakpoint 1, main () at" in text and "$1 = 42" in text
        assert "MIS-MATCHED" not in text
        names = [name.text for name in ElementTree.parse(svd).iterfind(".//peripheral/name")]
        assert "usart1" in names
        assert [path.name for path in tmp_path.iterdir()] == ["board.svd"]


@pytest.mark.costly
def test_semihosting_goes_where_the_option_says(tmp_path: Path) -> None:
    platform = load_platform("stm32f746")
    source = SourceText.read(Path(__file__).parents[1] / "device" / "semihosting.c")
    elf = link_standalone(get_toolchain("zig", platform.core), platform, [source])
    program = ("-p", "stm32f746", "--elf", elf, "--files", tmp_path, "--arguments", "a b")
    with serving(*program) as server:
        text = server.gdb("continue")
    assert "clock=00000001" in text and "\na b\n" in text and "status 42" in text
    assert (tmp_path / "kept.bin").stat().st_size == 304
    with serving(*program, "--semihosting", "off") as server:
        text = server.gdb("continue", "x/i $pc")
    assert "SIGTRAP" in text and "bkpt" in text and "handles" not in text
    with serving(*program, "--semihosting", "terminal") as server:
        assert "handles" not in server.gdb("continue")
    assert "handles=00000001" in server.rest and "clock=00000001" in server.rest


@pytest.mark.costly
def test_the_serial_port_is_printed() -> None:
    platform = load_platform("riscv32")
    (base,) = [one.base for one in platform.peripherals if one.model == "uart"]
    program = f"""
    int main(void)
    {{
        for (const char *c = "over the wire\\nno newline"; *c; c++)
            *(volatile unsigned *){base}u = (unsigned)*c;
        return 0;
    }}
    """
    compiler = get_toolchain("zig", platform.core)
    elf = link_standalone(compiler, platform, [SourceText("main.c", program)])
    with serving("-p", "riscv32", "--elf", elf) as server:
        assert "covp_exit" in server.gdb("break covp_exit", "continue")
    assert server.rest == "over the wire\nno newline"


@pytest.mark.costly
def test_gdb_loads_into_an_empty_device(elf: Path) -> None:
    with serving("-p", "stm32f746", hints=3) as server:
        assert "program.elf" in server.lines[1]
        server.lines = [line.replace("program.elf", str(elf)) for line in server.lines]
        assert "Breakpoint 1, main" in server.gdb("load", "break main", "continue")


@pytest.mark.costly
@pytest.mark.parametrize(
    ("platform", "accelerator"),
    [("stm32f746", None), ("riscv32", None), ("stm32f746", "qconv2d"), ("riscv32", "cfu")],
)
def test_a_model_stops_in_its_layers(small: Path, platform: str, accelerator: str | None) -> None:
    more = ["-a", accelerator] if accelerator else []
    with serving("-p", platform, "--model", small, *more, hints=4) as server:
        layers = re.findall(r"small_\w+", server.lines[2])
        assert len(layers) == 3
        # once each: a compiler may begin a loop on a function's first line
        commands = [f"tbreak {layer}" for layer in layers]
        commands += ["break covp_exit", *["continue", "bt 1"] * 3, "continue"]
        text = server.gdb(*commands, "print (int)covp_exit_status", "monitor peripherals")
        for layer in layers:
            assert re.search(rf"#0 +(0x\w+ in )?{layer} \(.* at \S*{layer}\.c:\d+", text), layer
        assert "$1 = 0" in text  # the reference's bytes
        assert ("qconv2d" in text.split("$1 = 0")[1]) == (accelerator == "qconv2d")


def test_bad_calls_are_refused(call: Call, elf: Path, small: Path, tmp_path: Path) -> None:
    def refusal(*arguments: object) -> str:
        return call("debug", "gdb", "--port", 0, *arguments).refusal

    text = tmp_path / "text.elf"
    text.write_text("not ELF")
    assert "not an ELF file" in refusal("-p", "stm32f746", "--elf", text)
    assert "cannot be read" in refusal("-p", "stm32f746", "--elf", tmp_path / "none")
    assert "not for the rv32imc of riscv32" in refusal("-p", "riscv32", "--elf", elf)
    assert "section .vectors" in refusal("-p", "cortex-m33", "--elf", wrong_place(elf, tmp_path))
    assert "give one of them" in refusal("-p", "stm32f746", "--elf", elf, "--model", small)
    assert "needs --model" in refusal("-p", "stm32f746", "-a", "qconv2d")
    assert "cannot be written" in refusal("-p", "stm32f746", "--svd", tmp_path / "no" / "x.svd")


@pytest.mark.costly
@pytest.mark.parametrize("allowed", [False, True])
def test_slow_accelerators_are_as_in_a_run(call: Call, tmp_path: Path, allowed: bool) -> None:
    slow = ("toycar", "-p", "riscv32", "-a", "gemm:startup_cycles=20000")
    more = ("--allow-slower",) * allowed
    told = call("export", *slow, *more, "-o", tmp_path / "project").err
    assert ("2 layers left to the core" in told) == (not allowed)
    ends = ("--svd", tmp_path / "no" / "x.svd")
    assert call("debug", "gdb", "--port", 0, *ends, "--model", *slow, *more).err.startswith(told)


def wrong_place(elf: Path, folder: Path) -> Path:
    """The file with its first load segment at an address where nothing is."""
    content = bytearray(elf.read_bytes())
    start = int.from_bytes(content[0x1C:0x20], "little")
    content[start + 12 : start + 16] = (0x50000000).to_bytes(4, "little")  # p_paddr
    path = folder / "moved.elf"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("command", ["gdb", "port"])
def test_an_empty_address_is_not_all_of_them(command: str, call: Call) -> None:
    refused = call("debug", command, "-p", "riscv32", "--host", "", "--port", "0")
    assert refused.refusal.startswith("covp: host: an address is needed")
