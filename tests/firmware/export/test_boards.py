"""Board support: the stated clock; one ELF prints the same on the virtual board and on QEMU."""

from __future__ import annotations

import functools
import os
import re
import select
import shutil
import struct
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from covp.chip.platform_file import BoardSupport, Platform, load_platform
from covp.compilers.elf import ElfImage
from covp.compilers.toolchain import runtime_dir
from covp.device.debug.program_file import load_elf
from covp.device.debug.program_file import run_firmware as run_to_the_end
from covp.device.qemu import qemu_command
from covp.device.semihosting import Collected, Semihosting
from covp.device.virtual import VirtualDevice
from covp.errors import PlatformError
from covp.evaluation import build
from covp.firmware import Project, link_project
from covp.firmware.firmware import board_config, board_files
from covp.hardware.peripheral_models import load_peripheral
from tests.cli.conftest import small_model

from .board_programs import link_program, serial_port
from .firmware import Ran, run_firmware

QEMU = ("mps2-an386", "mps2-an500", "mps3-an547", "hifive1", "qemu-riscv32")
STM32 = ("nucleo-l4r5zi", "nucleo-f746zg", "disco-f746ng", "stm32h743")
BOARDS = (*QEMU, *STM32, "nrf52840", "xiao-nrf52840", "cortex-m0plus", "riscv32", "cv32e40p")
# Of parameters of one type that could be swapped, and names that a C library reserves for itself,
# which printf is: those are what the functions are called.
CHECKS = (
    "-*,bugprone-*,cert-*,-bugprone-easily-swappable-parameters,-bugprone-reserved-identifier,"
    "-cert-dcl37-c,-cert-dcl51-cpp"
)
NEEDS_QEMU = pytest.mark.skipif(
    not all(map(shutil.which, ("qemu-system-arm", "qemu-system-riscv32"))),
    reason="QEMU is not installed: no oracle",
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "small.tflite"
    path.write_bytes(small_model())
    return path


@functools.cache
def project(model: Path, platform: str) -> Project:
    return Project.of(build(str(model), platform))


def ran(project: Project) -> Ran:
    return run_firmware(project.program, link_project(project).read_bytes())


# -- the firmware's main ------------------------------------------------------------------------


@pytest.mark.costly
@pytest.mark.parametrize("platform", BOARDS)
def test_main_prints_what_was_simulated(model: Path, platform: str) -> None:
    made = project(model, platform)
    run, profile = ran(made), made.simulated.profile
    board = made.program.platform
    head, costs, verdict = run.text.splitlines()
    assert head == f"small on {platform}, {board.clock_hz} Hz"
    assert verdict == "pass" and run.status == 0
    assert run.instructions == profile.instructions
    if not board.caches:  # their misses depend on where code lies
        assert run.cycles == profile.cycles
    printed = re.fullmatch(r"(\d+) cycles, (\d+) us", costs)
    assert printed is not None
    # around the inference: its call, the reading of the counter
    assert run.cycles < int(printed[1]) < run.cycles + 600
    assert int(printed[2]) == int(printed[1]) * 1_000_000 // board.clock_hz


@pytest.mark.costly
@pytest.mark.parametrize("platform", ["riscv32", "stm32l4r5"])
def test_main_counts_wrong_bytes(model: Path, platform: str) -> None:
    simulated = project(model, platform).simulated
    wrong = simulated.outputs[0].copy()
    wrong.reshape(-1)[:2] += 1
    run = ran(Project(replace(simulated, outputs=(wrong,))))
    assert run.text.splitlines()[-1] == "fail: 2 bytes differ" and run.status == 2


# -- QEMU ---------------------------------------------------------------------------------------


class Machine:
    """QEMU with a program, its serial port on pipes."""

    def __init__(self, platform: Platform, elf: Path, *options: str) -> None:
        command = [word for word in qemu_command(platform) if word != "-S"]
        command[command.index("-serial") + 1] = "stdio"
        # the AN547 looks for its vectors elsewhere
        program = (
            ["-device", f"loader,file={elf},cpu-num=0"]
            if platform.name == "mps3-an547"
            else ["-kernel", str(elf)]
        )
        self._process = subprocess.Popen(
            [*command, *program, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def talk(self, typed: bytes, end: bytes) -> bytes:
        """Everything up to ``end``; QEMU is stopped then, as firmware does not end.

        Bytes are typed one by one, each after an answer: QEMU's port may forget others.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        said, left = b"", list(typed)
        deadline = time.monotonic() + 60
        while end not in said:
            wait = max(0.0, deadline - time.monotonic())
            if not select.select([self._process.stdout], [], [], wait)[0]:
                break
            part = os.read(self._process.stdout.fileno(), 4096)
            if not part:
                break
            said += part
            if left and said.endswith((b"\n", *(bytes([byte]) for byte in range(65, 91)))):
                self._process.stdin.write(bytes([left.pop(0)]))
                self._process.stdin.flush()
        self._process.kill()
        self._process.communicate()
        return said


def executed(log: Path, first: int, past: int) -> int:
    """Instructions from an address to another in QEMU's log of single ones."""
    counting, count = False, 0
    with log.open("rb") as lines:
        for line in lines:
            if not line.startswith(b"Trace "):
                continue
            pc = int(line.split(b"/")[1], 16)
            if pc == past and counting:
                return count
            counting |= pc == first
            count += counting
    raise AssertionError("the inference did not end")


@pytest.mark.costly
@NEEDS_QEMU
@pytest.mark.parametrize("platform", QEMU)
def test_qemu_runs_the_same_elf_alike(model: Path, platform: str, tmp_path: Path) -> None:
    made = project(model, platform)
    elf = link_project(made)
    here = ran(made)
    symbols = ElfImage(elf.read_bytes()).symbols
    board, log = made.program.platform, tmp_path / "log"
    is_arm = board.core.architecture == "arm"
    infer, idle = symbols["small_infer"].address, symbols["covp_exit"].address
    code = f"{board.flash.start:#x}..{idle - 1:#x},{idle + 8:#x}..{board.flash.end - 1:#x}"
    machine = Machine(board, elf, "-singlestep", "-d", "exec,nochain", "-D", str(log),
                      "-dfilter", code)  # fmt: skip
    said = machine.talk(b"", b"pass\n").decode().splitlines()
    lines = here.text.splitlines()
    assert (said[0], said[-1]) == (lines[0], lines[-1]) and len(said) == len(lines)
    # QEMU has no cycle counter on Arm; its mcycle is time of the host
    assert said[1] == "no cycle counter" if is_arm else re.match(r"\d+ cycles, \d+ us", said[1])
    assert executed(log, infer, return_address(made, elf)) == here.instructions


def return_address(made: Project, elf: Path) -> int:
    """Where the inference of `main` returns to."""
    symbols = ElfImage(elf.read_bytes()).symbols
    board = made.program.platform
    with VirtualDevice(board) as device:
        load_elf(device, elf)
        device.execute(symbols["covp_reset"].address, symbols["small_infer"].address)
        return device.core.read_register("lr" if board.core.architecture == "arm" else "ra") & ~1


ECHO = """
#include <stdio.h>
#include "board.h"

int main(void)
{
    int byte = 0;
    board_init();
    puts("ready");
    while (byte != '.') {
        while ((byte = board_read()) < 0)
            ;
        putchar(byte == '.' ? '\\n' : byte - 32);
    }
    const uint64_t start = board_microseconds();
    while (board_microseconds() - start < 100)
        ;
    return (int)(board_microseconds() - start);
}
"""


@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
@pytest.mark.parametrize("platform", BOARDS)
def test_bytes_both_ways(platform: str, toolchain: str) -> None:
    """All board support compiles with both compilers without a warning."""
    board = load_platform(platform)
    if toolchain == "gcc" and shutil.which(f"{board.core.gcc_prefix}gcc") is None:
        pytest.skip("GCC is not installed")
    elf = link_program(board, ECHO, toolchain)
    with VirtualDevice(board) as device:
        port = serial_port(device)
        port.on_byte = lambda byte: port.feed(b"hello.") if port.text == "ready\n" else None
        run = run_to_the_end(device, elf, timeout=60)
        assert port.text == "ready\nHELLO\n"
        assert 100 <= run.status < 125  # a division of 64 bits is slow


@pytest.mark.costly
@NEEDS_QEMU
@pytest.mark.parametrize("platform", ["hifive1", "qemu-riscv32"])
def test_bytes_both_ways_on_qemu(platform: str) -> None:
    """Not the CMSDK's port: QEMU does not look for input when its receiver is switched on."""
    board = load_platform(platform)
    said = Machine(board, link_program(board, ECHO)).talk(b"hello.", b"HELLO\n")
    assert said == b"ready\nHELLO\n"


@pytest.mark.parametrize("tool", ["cppcheck", "clang-tidy"])
@pytest.mark.parametrize(
    ("platform", "output"),
    [
        ("stm32l4r5", ""), ("stm32f746", "BOARD_OUTPUT_RTT"), ("hifive1", ""),
        ("mps2-an386", "BOARD_OUTPUT_SEMIHOSTING"), ("qemu-riscv32", "BOARD_OUTPUT_SEMIHOSTING"),
        ("nucleo-f746zg", ""), ("mps3-an547", ""), ("cortex-m0plus", ""), ("nrf52840", ""),
        ("stm32h743", ""), ("stm32h743", "BOARD_OUTPUT_RTT"),
    ],
)  # fmt: skip
def test_static_checks_find_nothing(tool: str, platform: str, output: str, tmp_path: Path) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    board = with_output(platform, output) if output else load_platform(platform)
    texts = {**board_files(board), "board_config.h": board_config(board)}
    texts["startup.c"] = (runtime_dir() / "startup.c").read_text()
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    sources = [name for name in texts if name.endswith(".c")]
    include = ["-I.", f"-I{runtime_dir() / 'include'}", f"-I{runtime_dir()}"]
    is_arm = board.core.architecture == "arm"
    if tool == "cppcheck":
        core = ["-D__arm__", "-D__ARM_ARCH=7"] if is_arm else ["-D__riscv"]
        command = ["--quiet", "--std=c99", "--enable=warning,portability,performance"]
        command += ["--error-exitcode=1", "--inline-suppr", *core, *include, *sources]
    else:
        target = "thumbv7em-none-eabi" if is_arm else "riscv32"
        command = ["--quiet", "--warnings-as-errors=*", f"--checks={CHECKS}", *sources, "--",
                   f"--target={target}", "-std=c99", "-ffreestanding", *include]  # fmt: skip
    done = subprocess.run([tool, *command], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_unknown_board_support_is_refused() -> None:
    board = load_platform("riscv32")
    unknown = msgspec.structs.replace(board, firmware=BoardSupport("stm32l5"))
    with pytest.raises(PlatformError, match=r"no firmware\.board 'stm32l5': did you mean stm32l4"):
        board_files(unknown)


# -- clocks -------------------------------------------------------------------------------------


def after_start(board: Platform) -> dict[str, Any]:
    """The peripherals after board_init, in a state as after power-on before it."""
    program = '#include "board.h"\nint main(void) { board_init(); return 0; }\n'
    device = VirtualDevice(board)
    with device:
        run_to_the_end(device, link_program(board, program))
        return {name: model for name, (_, model) in device.peripherals.items()}


@pytest.mark.parametrize(
    ("platform", "clock_hz", "pins", "bus"),
    [
        ("stm32l4r5", 120_000_000, "G7 G8 = 8", 1),
        ("stm32l4r5", 80_000_000, "G7 G8 = 8", 1),
        ("stm32f746", 216_000_000, "A9 B7 = 7", 2),
        ("nucleo-f746zg", 216_000_000, "D8 D9 = 7", 1),
        ("nucleo-f746zg", 100_000_000, "D8 D9 = 7", 1),
        ("stm32h743", 480_000_000, "D8 D9 = 7", 1),
        ("stm32h743", 400_000_000, "D8 D9 = 7", 1),
        ("stm32h743", 96_000_000, "D8 D9 = 7", 1),
    ],
)
def test_clocks_of_stm32(platform: str, clock_hz: int, pins: str, bus: int) -> None:
    """The clock tree gives the platform's frequency, with what the manuals demand at it."""
    board = msgspec.structs.replace(load_platform(platform), clock_hz=clock_hz)
    found = after_start(board)
    rcc, gpio = found["rcc"], found["gpio"]
    assert rcc.core_hz == clock_hz
    port = next(m for m in found.values() if hasattr(m, "baud"))
    # the model's own clock is the file's: of 216 MHz
    assert port.baud * rcc.bus_hz(bus) / port.hertz == pytest.approx(115200, rel=0.005)
    names, function = pins.split(" = ")
    assert all(gpio.alternate(p[0], int(p[1:])) == int(function) for p in names.split())
    waits = found["flash_controller"].get("ACR", "LATENCY")
    pwr = found["pwr"]
    if "l4" in platform:  # RM0432 table 15; 5.1.8: boost mode
        assert waits == {120_000_000: 5, 80_000_000: 3}[clock_hz]
        assert pwr.get("CR5", "R1MODE") == (clock_hz <= 80_000_000)
        assert pwr.values["CR2"] >> 9 & 1  # IOSV: pins G2 to G15 are supplied
    elif platform == "stm32h743":  # RM0433 table 17; DS12110 6.3.1: VOS0 above 400 MHz
        assert waits == {480_000_000: 4, 400_000_000: 2, 96_000_000: 0}[clock_hz]
        assert pwr.get("CSR1", "ACTVOS") == 3
        assert found["syscfg"].get("PWRCR", "ODEN") == (clock_hz > 400_000_000)
        assert rcc.hclk_hz == clock_hz // 2 and rcc.bus_hz(2) == clock_hz // 4
        assert rcc.values["AHB2ENR"] >> 29 == 7  # SRAM1 to SRAM3
        assert not pwr.get("CR3", "SCUEN") and pwr.get("CR3", "LDOEN")
    else:  # RM0385 table 5; 4.1.4: over-drive; 5.2: APB1 54 MHz, APB2 108 MHz at most
        assert waits == {216_000_000: 7, 100_000_000: 3}[clock_hz]
        assert pwr.get("CSR1", "ODSWRDY") == (clock_hz > 180_000_000)
        assert rcc.bus_hz(1) <= 54_000_000 and rcc.bus_hz(2) <= 108_000_000


def test_set_up_of_the_nrf52840() -> None:
    """The cache that the platform file counts is off after reset (nRF52840 PS, "NVMC")."""
    board = load_platform("nrf52840")
    assert board.flash.caches == ("icache",)
    assert load_peripheral("nrf_clock:NrfNvmc").get("ICACHECNF", "CACHEEN") == 0
    found = after_start(board)
    assert found["nvmc"].get("ICACHECNF", "CACHEEN") == 1
    assert found["clock"].values["HFCLKSTAT"] == 1 << 16 | 1  # the crystal runs
    assert found["uarte0"].baud == pytest.approx(115200, rel=0.005)


@pytest.mark.parametrize("clock_hz", [320_000_000, 160_000_000, 64_000_000])
def test_clocks_of_hifive1(clock_hz: int) -> None:
    board = msgspec.structs.replace(load_platform("hifive1"), clock_hz=clock_hz)
    found = after_start(board)
    assert found["prci"].core_hertz == clock_hz
    assert found["uart0"].baud == pytest.approx(115200, rel=0.005)
    # IS25LP032D: read command 03h, 50 MHz at most
    assert 20e6 < found["qspi0"].serial_hertz(clock_hz) <= 50e6
    assert found["gpio0"].values["IOF_EN"] == 3 << 16 and not found["gpio0"].values["IOF_SEL"]


# -- other ways out -----------------------------------------------------------------------------


def with_output(platform: str, option: str) -> Platform:
    board = load_platform(platform)
    old = board.firmware or BoardSupport()
    firmware = BoardSupport(old.board, {**old.defines, option: 1})
    return msgspec.structs.replace(board, firmware=firmware)


ENDS = """
#include <stdio.h>
#include "board.h"

int main(void)
{
    board_init();
    puts("over");
    board_exit(42);
    return 1;
}
"""


@NEEDS_QEMU
@pytest.mark.parametrize("platform", ["mps2-an386", "qemu-riscv32"])
def test_the_end_by_semihosting(platform: str) -> None:
    """The program's status is QEMU's, and that of a run on the virtual board."""
    board = with_output(platform, "BOARD_OUTPUT_SEMIHOSTING")
    elf = link_program(board, ENDS)
    command = [word for word in qemu_command(board) if word != "-S"]
    command += ["-semihosting-config", "enable=on,target=native", "-kernel", str(elf)]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (42, b"over\n")
    console = Collected()
    with VirtualDevice(board) as device:
        device.board.set_semihosting(Semihosting(console=console))
        assert run_to_the_end(device, elf, timeout=60).status == 42
    assert console.output == b"over\n"


@pytest.mark.parametrize("platform", ["stm32l4r5", "qemu-riscv32", "cortex-m0plus"])
def test_text_by_semihosting(platform: str) -> None:
    board = with_output(platform, "BOARD_OUTPUT_SEMIHOSTING")
    elf = link_program(board, ECHO)
    console = Collected(b"hello.")
    with VirtualDevice(board) as device:
        device.board.set_semihosting(Semihosting(console=console))
        run_to_the_end(device, elf, timeout=60)
        assert serial_port(device).text == ""
    assert bytes(console.output) == b"ready\nHELLO\n"


TALK = """
#include <stdio.h>
#include "board.h"

__attribute__((noinline)) void wait_here(void)
{
    __asm__ volatile("");
}

int main(void)
{
    int byte;
    board_init();
    puts("ready");
    wait_here();
    while ((byte = board_read()) >= 0)
        putchar(byte - 32);
    for (int i = 0; i < 2000; i++)
        putchar('x');
    return byte;
}
"""


@pytest.mark.parametrize("platform", ["stm32f746", "riscv32", "cortex-m0plus"])
def test_text_by_rtt(platform: str) -> None:
    """SEGGER UM08001: identification, counts, and six words a ring; one byte of it stays free."""
    board = with_output(platform, "BOARD_OUTPUT_RTT")
    elf = link_program(board, TALK, flags=("-Wno-missing-prototypes",))
    assert b"SEGGER RTT" not in elf.read_bytes().replace(b"_SEGGER_RTT", b"")
    symbols = ElfImage(elf.read_bytes()).symbols
    with VirtualDevice(board) as device:
        load_elf(device, elf)
        device.execute(symbols["covp_reset"].address, symbols["wait_here"].address)
        block = symbols["_SEGGER_RTT"].address
        head = struct.unpack("<16s2i6I6I", device.read(block, 72))
        assert head[:3] == (b"SEGGER RTT\0\0\0\0\0\0", 1, 1)
        (_, up, up_size, written, taken, _), (_, down, _, _, _, _) = head[3:9], head[9:]
        assert device.read(up, written) == b"ready\n" and taken == 0
        device.write(block + 24 + 16, struct.pack("<I", written))
        device.write(down, b"hello")
        device.write(block + 48 + 12, struct.pack("<I", 5))
        device.execute(symbols["wait_here"].address, symbols["covp_exit"].address)
        end = struct.unpack("<I", device.read(block + 24 + 12, 4))[0]
        ring = device.read(up, up_size)
        assert ring[written:] + ring[:end] == b"HELLO" + b"x" * (up_size - 1 - 5)
        assert device.read(block + 48 + 16, 4) == struct.pack("<I", 5)
        assert device.read(symbols["covp_exit_status"].address, 4) == b"\xff" * 4
        assert serial_port(device).text == ""
