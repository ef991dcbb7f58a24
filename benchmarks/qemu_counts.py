"""Instructions of one inference: QEMU's beside those of covp's virtual device, exactly.

    python benchmarks/qemu_counts.py

QEMU translates single instructions and writes a line to its log for each that it runs (-d exec).
Two sessions that differ by one inference differ by its lines. Exits with 1 where a count differs.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

import covp
from covp.chip.platform_file import Platform, load_platform
from covp.device.qemu import qemu_command
from covp.device.virtual import VirtualDevice
from covp.graph.random_inputs import random_inputs
from covp.runtime.session import Session

CASES = (
    ("toycar", "mps2-an386"),
    ("toycar", "mps2-an500"),
    ("toycar", "mps3-an547"),
    ("toycar", "qemu-riscv32"),
)
_ONE_BY_ONE = (8, 1)  # the version from which on an accelerator's property replaces -singlestep


def qemu_instructions(model: str, platform: Platform) -> int:
    """Of one inference in QEMU, covp's runtime around it included. Raises CovpError."""
    with tempfile.TemporaryDirectory(prefix="covp-counts-") as folder:
        log = Path(folder) / "log"
        once, twice = (_logged(model, platform, runs, log) for runs in (1, 2))
    return twice - once


def virtual_instructions(model: str, platform: Platform) -> int:
    """The same on the virtual device."""
    graph = covp.load_model(model)
    with Session(platform) as session:
        module = session.load(covp.compile(graph, platform))
        assert isinstance(session.device, VirtualDevice)
        before = session.device.instructions
        module.run(*random_inputs(graph.inputs, 1))
        return session.device.instructions - before


def _logged(model: str, platform: Platform, runs: int, log: Path) -> int:
    assert platform.qemu is not None
    options = (*platform.qemu.options, *_single_instructions(platform))
    options += ("-d", "exec,nochain", "-D", str(log))
    machine = msgspec.structs.replace(platform.qemu, options=options)
    logging = msgspec.structs.replace(platform, qemu=machine)
    graph = covp.load_model(model)
    with Session(logging, device="gdb:qemu") as session:
        module = session.load(covp.compile(graph, logging))
        for _ in range(runs):
            module.run(*random_inputs(graph.inputs, 1))
    with log.open("rb") as lines:
        return sum(line.startswith(b"Trace ") for line in lines)


def _single_instructions(platform: Platform) -> tuple[str, ...]:
    binary = qemu_command(platform)[0]
    text = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"version (\d+)\.(\d+)", text)
    assert version is not None, text
    if (int(version[1]), int(version[2])) < _ONE_BY_ONE:
        return ("-singlestep",)
    return ("-accel", "tcg,one-insn-per-tb=on")


def print_counts() -> bool:
    """The table; whether all counts are the same."""
    print(f"{'model':<8}{'platform':<14}{'QEMU':>12}{'covp':>12}")
    same = True
    for model, name in CASES:
        platform = load_platform(name)
        theirs, ours = qemu_instructions(model, platform), virtual_instructions(model, platform)
        same &= theirs == ours
        print(f"{model:<8}{name:<14}{theirs:>12,}{ours:>12,}{'' if theirs == ours else '  differ'}")
    return same


if __name__ == "__main__":
    sys.exit(not print_counts())
