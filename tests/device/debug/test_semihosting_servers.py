"""Semihosting behind a debugger: covp's GDB server, and the real OpenOCD at the debug hardware."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import covp.device.debug
from covp.chip.platform_file import load_platform
from covp.device.debug.gdb_stub import GdbConsole, GdbStub
from covp.device.debug.program_file import free_ram, read_program, run_firmware
from covp.device.debug.remote_bitbang import debug_port
from covp.device.debug.server import DebugServer
from covp.device.debug.target import DebugTarget, HaltReason
from covp.device.semihosting import Collected, Semihosting
from covp.device.virtual import VirtualDevice

from .gdb_bench import Bench, build

PROGRAM = Path(__file__).parents[1] / "semihosting.c"
ARGUMENTS = "firmware.elf one two"
PORTS = {"stm32f746": "stlink", "riscv32": "jtag"}
# OpenOCD 0.12 takes any status but 0 for an error, counts the zero of the command line, and has
# neither features nor ticks
NOT_IN_OPENOCD = {"noerror", "size", "features", "magic", "bits", "elapsed", "forward", "tickfreq"}
MADE = bytes(n * 7 & 0xFF for n in range(300)) + b"tail"


@pytest.fixture(params=sorted(PORTS))
def platform(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def alone(platform: str, elf: Path, folder: Path) -> bytes:
    """The program's output without any debugger."""
    console = Collected(b"typed\n")
    with VirtualDevice(load_platform(platform)) as device:
        heap = free_ram(device.platform, read_program(elf, device.platform))
        device.board.set_semihosting(Semihosting(console, folder, ARGUMENTS, heap=heap))
        assert run_firmware(device, elf).status == 42
    return bytes(console.output)


@contextmanager
def gdb_bench(platform: str, folder: Path) -> Iterator[tuple[Bench, Collected]]:
    elf, terminal = build(platform, "zig", PROGRAM), Collected(b"typed\n")
    console = GdbConsole(terminal)
    with VirtualDevice(load_platform(platform)) as device:
        heap = free_ram(device.platform, read_program(elf, device.platform))
        device.board.set_semihosting(Semihosting(console, folder, ARGUMENTS, heap=heap))
        with DebugTarget(device) as target:
            with DebugServer(GdbStub(target, console=console).serve) as server:
                yield Bench(target, elf, server.port), terminal
            assert not server.failures


def plain(text: bytes | str) -> list[str]:
    """Lines without what a terminal does not show; ISTTY differs between terminals."""
    shown = text if isinstance(text, str) else text.decode()
    return [line for line in shown.replace("\0", "").splitlines() if "istty" not in line]


def test_output_is_printed_by_gdb(platform: str, tmp_path: Path) -> None:
    with gdb_bench(platform, tmp_path) as (bench, terminal):
        answer = bench.gdb("continue", "print/x block[1]", "info symbol $pc", "continue")
        elf = bench.elf
        assert bench.target.reason is HaltReason.EXIT
    assert "SIGTRAP" in answer[0] and answer[1] == "$1 = 0x2a"
    assert answer[2].startswith(("call", "main", "covp_semihosting"))
    end = "covp: the program ended with status 42 (application exit) at pc 0x"
    assert answer.console.count(end) == 2  # each time that it was continued
    (tmp_path / "alone").mkdir()
    expected = plain(alone(platform, elf, tmp_path / "alone"))
    shown = plain(answer.console)
    first = shown.index(expected[0])
    text = [line for line in shown[first:] if line and line != "wrong"]
    expected = [line for line in expected if line]
    assert text[: len(expected)] == expected and len(expected) > 40
    assert (tmp_path / "kept.bin").read_bytes() == MADE
    assert terminal.output == b""


def test_without_gdb_it_is_printed_by_the_server(platform: str, tmp_path: Path) -> None:
    with gdb_bench(platform, tmp_path) as (bench, terminal):
        bench.gdb("break streams", "detach")
        assert bench.target.wait(20)
        assert terminal.text.endswith("clock=00000001\n")


def test_steps_and_disabled_calls(platform: str, tmp_path: Path) -> None:
    with gdb_bench(platform, tmp_path) as (bench, _):
        answer = bench.gdb(
            "monitor semihosting", "monitor arm semihosting disable", "continue", "print/x $pc",
            "monitor semihosting enable", "stepi", "print/x $pc",
        )  # fmt: skip
        stopped, after = (int(answer[n].split(" = ")[1], 16) for n in (3, 6))
    assert "SIGTRAP" in answer[2]
    assert after - stopped == (4 if platform == "riscv32" else 2)
    assert (
        "semihosting is enabled" in answer.console and "semihosting is disabled" in answer.console
    )


@pytest.mark.costly
def test_openocd_answers_the_calls(platform: str, tmp_path: Path) -> None:
    if shutil.which("openocd") is None:
        pytest.skip("openocd is not installed: apt install openocd")
    elf = build(platform, "zig", PROGRAM)
    with VirtualDevice(load_platform(platform)) as device, DebugTarget(device) as target:
        handler = debug_port(PORTS[platform], target)
        with DebugServer(handler) as server:
            if platform == "riscv32":
                config = Path(covp.device.debug.__file__).parent / "configs" / "riscv.cfg"
                board = ["-c", f"set PORT {server.port}", "-f", str(config)]
            else:
                port = f"hla_stlink_backend tcp {server.port}"
                board = ["-f", "board/stm32f7discovery.cfg", "-c", port]
            commands = [
                "gdb_port disabled; telnet_port disabled; tcl_port disabled", "init", "halt",
                f"load_image {elf}", "reset halt", "arm semihosting enable",
                f"arm semihosting_cmdline {ARGUMENTS}", "resume", "while {1} {poll}",
            ]  # fmt: skip
            done = subprocess.run(
                ["openocd", *board, *(word for line in commands for word in ("-c", line))],
                cwd=tmp_path, input=b"typed\n", capture_output=True, timeout=120, check=False,
            )  # fmt: skip
    assert done.returncode == 42, done.stderr[-500:]
    shown = plain(done.stdout)
    expected = plain(alone(platform, elf, tmp_path))
    assert (tmp_path / "kept.bin").read_bytes() == MADE
    pairs = list(zip(shown, expected, strict=True))
    differing = {right.split("=")[0] for left, right in pairs if left != right}
    assert len(pairs) > 40 and differing <= NOT_IN_OPENOCD, [p for p in pairs if p[0] != p[1]]
