"""Branch target buffers against one in plain Python that is fed with the same branches."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unicorn import unicorn_const as uc

from covp.chip.platform_file import Platform, load_platform
from covp.device.timing.model import load_timing
from covp.device.timing.trace import cost
from covp.device.virtual import VirtualDevice
from covp.errors import PlatformError, UsageError
from covp.exploration.retiming.core_times import demand_like
from tests.conftest import load

TAKEN = 7
MODEL = (
    "source: planted\ninstructions: rv32\ntaken: {{branch: 7}}\ntargets: {}\ntargets_later: {}\n"
)


def last_branch(start: int, past: int, memory: Any) -> tuple[int, int | None]:
    """The last instruction of a block; the sign of where it leads, if that is a branch."""
    at = start
    while True:
        half = int.from_bytes(memory(at, 2), "little")
        size = 4 if half & 3 == 3 else 2
        if at + size >= past:
            break
        at += size
    if size == 2:
        sign = -1 if half >> 12 & 1 else 1
        return at, sign if half & 3 == 1 and half >> 13 in (6, 7) else None
    sign = -1 if int.from_bytes(memory(at, 4), "little") >> 31 else 1
    return at, sign if half & 0x7F == 0x63 else None


@dataclass
class Reference:
    """A buffer written from its description; counts what it did not expect."""

    entries: int
    later: bool
    known: list[int] = field(default_factory=list)
    unexpected: int = 0
    taken: Counter[int] = field(default_factory=Counter)
    jumped_to: int | None = None
    block: tuple[int, int] | None = None

    def enter(self, address: int, size: int, memory: Any) -> None:
        """A block begins; the one before it ended with what leads here."""
        jumps = True  # that the core did not expect
        if self.block is not None:
            start, past = self.block
            jumps = address != past
            branch, offset = last_branch(start, past, memory)
            if offset is not None:
                self.taken[branch] += jumps
                hidden = self.later and branch & ~3 == self.jumped_to
                expected = branch in self.known and not hidden
                self.look(branch, jumps, offset < 0, expected)
                if jumps and expected:
                    self.jumped_to = None
                jumps = jumps != expected
                self.unexpected += jumps
        if jumps:
            self.jumped_to = address & ~3
        self.block = address, address + size

    def look(self, branch: int, taken: bool, backward: bool, expected: bool) -> None:
        if not backward or not (taken or expected):
            return
        if branch in self.known:
            self.known.remove(branch)
        if taken:
            self.known = [branch, *self.known][: self.entries]


Part = tuple[str, int, tuple[Any, ...]]
"""What comes next: its kind, and of a loop how often and what."""


def parts(depth: int) -> st.SearchStrategy[tuple[Part, ...]]:
    """Loops in loops, with branches forward and jumps between."""
    plain = st.tuples(st.sampled_from(["skip", "jump", "add"]), st.just(0), st.just(()))
    loop = st.tuples(st.just("loop"), st.integers(1, 5), parts(depth - 1)) if depth else plain
    return st.lists(st.one_of(loop, loop, plain), min_size=1, max_size=3).map(tuple)


def assembly(content: tuple[Part, ...], numbers: Iterator[int], depth: int = 0) -> list[str]:
    lines = []
    for kind, count, inner in content:
        label, counter = f"l{next(numbers)}", f"s{2 + depth}"
        if kind == "loop":
            lines += [f"li {counter}, {count}", f"{label}:", *assembly(inner, numbers, depth + 1)]
            lines += [f"addi {counter}, {counter}, -1", f"bnez {counter}, {label}"]
        elif kind == "skip":
            lines += ["addi a0, a0, 1", "andi a1, a0, 3", f"beqz a1, {label}", "nop", f"{label}:"]
        else:
            lines += [f"j {label}", "nop", f"{label}:"] if kind == "jump" else ["add a2, a2, a0"]
    return lines


def planted(folder: Path, entries: int, later: bool) -> Platform:
    path = folder / "timing.yaml"
    path.write_text(MODEL.format(entries, str(later).lower()))
    return msgspec.structs.replace(load_platform("riscv32"), timing=str(path))


@settings(max_examples=40, deadline=None, suppress_health_check=[*HealthCheck])
@given(
    content=parts(3),
    entries=st.sampled_from([1, 2, 3, 16]),
    later=st.booleans(),
    short=st.booleans(),
)
def test_the_order_of_branches_decides(
    tmp_path_factory: pytest.TempPathFactory,
    content: tuple[Part, ...],
    entries: int,
    later: bool,
    short: bool,
) -> None:
    body = "\n".join(assembly(content, itertools.count()))
    option = ".option rvc" if short else ".option norvc"
    text = f"{option}\nstart:\n li a0, 0\n{body}\nend:\n j end\n"
    reference = Reference(entries, later)
    with load("riscv32", text).device as watched:
        loaded = load("riscv32", text, device=watched)
        engine = watched.core.engine

        def block(_: Any, address: int, size: int, user: object) -> None:
            reference.enter(address, size, watched.read)

        engine.hook_add(uc.UC_HOOK_BLOCK, block)
        loaded.run()
    platform = planted(tmp_path_factory.mktemp("model"), entries, later)
    with load("riscv32", text, device=VirtualDevice(platform)).device as device:
        stop = load("riscv32", text, device=device).run()
        trace = device.counts.trace()
        assert stop.instructions is not None
        assert stop.cycles == stop.instructions + TAKEN * reference.unexpected
        assert cost(trace, device.core.timing) == trace.cycles == stop.cycles
        taken: Counter[int] = Counter()
        for one in trace.blocks:  # several may end with the same branch
            taken[one.address + one.size - one.code[-1].bytes] += one.taken
        assert all(taken[branch] == count for branch, count in reference.taken.items())
        again = load("riscv32", text, device=device).run()
        assert again.cycles == stop.cycles  # nothing is known at the start of a run


def test_cores_that_expect_other_branches_are_no_matter_of_a_trace(tmp_path: Path) -> None:
    one, other = (planted(tmp_path / name, n, False) for name, n in made(tmp_path, 1, 2))
    demand_like(one, one)
    with pytest.raises(UsageError, match=r"expects other branches than .*needs another run"):
        demand_like(one, other)


def made(folder: Path, *entries: int) -> list[tuple[str, int]]:
    """Folders for models."""
    for n in entries:
        (folder / str(n)).mkdir()
    return [(str(n), n) for n in entries]


def test_a_core_predicts_in_one_way(tmp_path: Path) -> None:
    path = tmp_path / "both.yaml"
    path.write_text(MODEL.format(1, "false") + "predicts: backward\n")
    with pytest.raises(PlatformError, match=r"targets.*predicts"):
        load_timing(str(path))
    path.write_text(MODEL.format(17, "false"))
    with pytest.raises(PlatformError, match="targets"):
        load_timing(str(path))
