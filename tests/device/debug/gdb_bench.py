"""A C program on a virtual device with a GDB server, and the real GDB to look at it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from covp.chip.platform_file import load_platform
from covp.compilers.toolchain import SourceText, get_toolchain
from covp.device.debug.gdb_stub import GdbStub
from covp.device.debug.server import DebugServer
from covp.device.debug.target import DebugTarget
from covp.device.virtual import VirtualDevice
from covp.runtime.standalone import link_standalone

PROGRAM = Path(__file__).parent / "program.c"
_MARK = "@covp@"
_QUIET = ("set width 0", "set confirm off", "set pagination off")


@dataclass
class Bench:
    """A program's ELF file and the device that may run it."""

    target: DebugTarget
    elf: Path
    port: int
    events: list[str] = field(default_factory=list)

    @property
    def where(self) -> str:
        return f"127.0.0.1:{self.port}"

    def gdb(self, *commands: str, load: bool = True) -> Answers:
        first = [f"target remote {self.where}", *(["load"] if load else [])]
        return run_gdb(self.elf, *first, *commands).after(len(first))


@dataclass
class Answers:
    """What GDB printed for each command, and what the target had printed on its console."""

    parts: list[str]
    console: str

    def after(self, count: int) -> Answers:
        return Answers(self.parts[count:], self.console)

    def __getitem__(self, position: int) -> str:
        return self.parts[position]


def build(platform: str, toolchain: str, source: Path) -> Path:
    chosen = load_platform(platform)
    if toolchain == "gcc" and shutil.which(f"{chosen.core.gcc_prefix}gcc") is None:
        pytest.skip(f"{chosen.core.gcc_prefix}gcc is not installed")
    compiler = get_toolchain(toolchain, chosen.core)
    return link_standalone(compiler, chosen, [SourceText.read(source)], flags=("-O0",))


def line(remark: str) -> str:
    """program.c:12, where the remark is."""
    for number, text in enumerate(PROGRAM.read_text().splitlines(), 1):
        if f"/* at: {remark} */" in text:
            return f"program.c:{number}"
    raise AssertionError(f"no line says {remark!r}")


@contextmanager
def open_bench(platform: str, toolchain: str, source: Path = PROGRAM) -> Iterator[Bench]:
    elf = build(platform, toolchain, source)
    events: list[str] = []
    with VirtualDevice(load_platform(platform)) as device, DebugTarget(device) as target:
        device.board.names.symbols.add(str(elf))
        with DebugServer(GdbStub(target, events.append).serve) as server:
            yield Bench(target, elf, server.port, events)


def gdb_command(elf: Path, *commands: str) -> list[str]:
    if shutil.which("gdb-multiarch") is None:
        pytest.skip("gdb-multiarch is not installed: apt install gdb-multiarch")
    arguments = ["gdb-multiarch", "-nx", "-batch"]
    for command in (*_QUIET, *commands):
        arguments += ["-ex", command, "-ex", f"echo \\n{_MARK}\\n"]
    return [*arguments, str(elf)]


def run_gdb(elf: Path, *commands: str) -> Answers:
    done = subprocess.run(
        gdb_command(elf, *commands), capture_output=True, text=True, timeout=60, check=False
    )
    parts = [part.strip() for part in done.stdout.split(_MARK)]
    return Answers(parts[len(_QUIET) :], done.stderr)
