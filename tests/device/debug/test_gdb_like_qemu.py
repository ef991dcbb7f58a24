"""The same GDB commands at covp's server and at QEMU's give the same answers."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .gdb_bench import open_bench, run_gdb

# Machines with flash and RAM where the platform has them.
MACHINES = {
    "stm32f746": ["qemu-system-arm", "-M", "netduinoplus2", "-kernel"],
    "riscv32": ["qemu-system-riscv32", "-M", "virt", "-bios", "none", "-kernel"],
}
REGISTERS = {
    "stm32f746": "info registers r0 r1 r2 r3 r4 r5 r6 r7 r8 r9 r10 r11 r12 sp lr pc xpsr",
    "riscv32": "info registers",
}
START = ("load", "set $pc = covp_reset")
WALK = (
    "break sum_squares", "continue", "info registers sp", "backtrace", "info locals", "stepi 20",
    "backtrace", "REGISTERS", "watch total", "continue", "info locals", "finish", "next", "next",
    "step", "print ratio", "x/8i $pc", "rwatch total", "delete 1", "continue", "continue",
    "print total", "awatch table[3]", "continue", "finish", "next", "REGISTERS",
    "delete", "break poke", "set var total = -100", "finish", "stepi 200", "REGISTERS",
    "x/20xw $sp", "print table", "info frame",
)  # fmt: skip


@contextmanager
def qemu(platform: str, elf: Path) -> Iterator[str]:
    command = MACHINES[platform]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{probe.getsockname()[1]}"
    process = subprocess.Popen(
        [*command, str(elf), "-S", "-gdb", f"tcp:{where}", "-display", "none", "-serial", "none",
         "-monitor", "none"],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        wait_for(where, process)
        yield where
    finally:
        process.kill()
        process.communicate()


def wait_for(where: str, process: subprocess.Popen[str]) -> None:
    host, port = where.split(":")
    while True:
        assert process.poll() is None, process.communicate()
        try:
            socket.create_connection((host, int(port)), timeout=10).close()
            return
        except ConnectionRefusedError:
            threading.Event().wait(0.02)


@pytest.mark.costly
@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
@pytest.mark.parametrize("platform", sorted(MACHINES))
def test_a_long_walk_is_the_same(platform: str, toolchain: str) -> None:
    commands = [*START, *(REGISTERS[platform] if c == "REGISTERS" else c for c in WALK)]
    with open_bench(platform, toolchain) as bench:
        ours = run_gdb(bench.elf, f"target remote {bench.where}", *commands)
        with qemu(platform, bench.elf) as where:
            theirs = run_gdb(bench.elf, f"target remote {where}", *commands)
    assert len(ours.parts) == len(theirs.parts)
    note = "Note: automatically using hardware breakpoints for read-only addresses."
    answers = list(zip(commands, ours.parts[1:], theirs.parts[1:], strict=False))
    for command, mine, other in answers[len(START) :]:
        assert mine.replace(note, "").strip() == other, command
    assert "New value = 9" in "".join(ours.parts)
