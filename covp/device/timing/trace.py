"""`Trace`: counts of the code that a core executed, and their cost by any timing model.

A program runs once; `cost` then gives its cycles on every microarchitecture of the same
instruction set, without running it again.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import operator
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from covp.device.timing.model import TimingModel
from covp.device.timing.native import (
    CAUSES,
    DEPTH,
    Before,
    BlockTime,
    CodeItem,
    Pipeline,
    RegionWaits,
    Spent,
    place_block,
)
from covp.device.timing.ways import OperandRuns, PlacedCode, Ways

Cycles = tuple[int, ...]
"""Cycles by cause, in the order of `covp.device.timing.native.CAUSES`."""
OTHER_CAUSES = ("waited", "exceptions")
"""Why cycles pass in which no code runs: the core waits for a peripheral or sleeps; it enters an
exception or returns from one."""
Way = tuple[int, int]
"""How code was reached: the position of a block in `Trace.blocks`, and how that was entered."""
_ENDS_JUMPING = 32
"""The flag of `BlockRuns.ends` for an unconditional jump."""
NO_CYCLES: Cycles = (0,) * len(CAUSES)


@dataclass(frozen=True)
class Instruction:
    """An instruction of a block.

    Attributes:
        bits: as the manuals write them; Arm 32-bit: first halfword on top.
        bytes: 2 or 4.
        cycles: of a custom instruction, whatever the core; None: the timing model decides.
    """

    bits: int
    bytes: int
    cycles: int | None = None


def pack(code: Sequence[Instruction]) -> bytes:
    """Return instructions as `BlockRuns.packed` has them."""
    items = (CodeItem(i.bits, i.bytes, 0, 0, i.cycles is not None, i.cycles or 0) for i in code)
    return b"".join(bytes(item) for item in items)


@dataclass(frozen=True)
class RunCycles:
    """The cycles of a run of a block of code, by cause.

    Attributes:
        own: of the run.
        taken, untaken: added when the branch at its end is taken, or not.
    """

    own: Cycles
    taken: Cycles
    untaken: Cycles

    @classmethod
    def of(cls, time: BlockTime) -> tuple[RunCycles, ...]:
        """Read what the native side found for the ways to enter a block."""
        return tuple(
            cls(_cycles(one.own), _cycles(one.taken), _cycles(one.untaken)) for one in time.entry
        )


@dataclass(frozen=True)
class Runs:
    """The number of times that a block of code ran.

    Attributes:
        count: to its end.
        taken: ... and the core then went to another address than the one past its end.
        ended: ... and nothing followed: the run ended, or its host did the next instruction.
        away: ... and the core was then at another address than the one past its end.
    """

    count: int
    taken: int = 0
    ended: int = 0
    away: int = 0

    def __sub__(self, other: Runs) -> Runs:
        return Runs(
            self.count - other.count,
            self.taken - other.taken,
            self.ended - other.ended,
            self.away - other.away,
        )

    def spent(self, cycles: RunCycles) -> Cycles:
        """Return the cycles of all runs by cause, from those of one run."""
        untaken = self.count - self.taken - self.ended
        return tuple(
            self.count * own + self.taken * taken + untaken * other
            for own, taken, other in zip(cycles.own, cycles.taken, cycles.untaken, strict=True)
        )


_NO_RUNS = Runs(0)


def _add_cycles(one: Cycles, other: Cycles) -> Cycles:
    return tuple(map(operator.add, one, other))


def _cycles(spent: Spent) -> Cycles:
    return tuple(spent.by)


@dataclass(frozen=True)
class BlockRuns:
    """A block of straight-line code that ran.

    Attributes:
        address, size: of its code, in bytes.
        packed: its instructions, see `code`.
        runs: how often it ran for each way to enter it: by a jump, and after code before it.
        before: such code, for each way but the first: the position in `Trace.blocks` of the block
            that ran last, and how that was entered; None where there is none that is known.
        ends: how it ends; see ``ENDS_BACKWARD`` and so on in model.h.
        cycles: of a run of each kind by the device's timing model.
        turned: how much more often its branch was taken than `runs` say, which have as taken what a
            branch target buffer did not expect.
    """

    address: int
    size: int
    packed: bytes
    runs: tuple[Runs, ...]
    before: tuple[Way | None, ...]
    ends: int
    cycles: tuple[RunCycles, ...]
    turned: int = 0

    @property
    def count(self) -> int:
        """The number of times that the block ran to its end."""
        return sum(runs.count for runs in self.runs)

    @property
    def taken(self) -> int:
        """The number of times that the core left the block for another address than its end."""
        return sum(runs.taken for runs in self.runs) + self.turned

    @property
    def items(self) -> ctypes.Array[CodeItem]:
        """The block's instructions, for the native side."""
        return (CodeItem * self.instructions).from_buffer_copy(self.packed)

    @property
    def code(self) -> tuple[Instruction, ...]:
        """The block's instructions."""
        return tuple(
            Instruction(item.bits, item.bytes, item.cycles if item.is_custom else None)
            for item in self.items
        )

    @property
    def instructions(self) -> int:
        """The number of instructions of one run."""
        return len(self.packed) // 8

    @property
    def total_cycles(self) -> int:
        """Cycles of all runs by the device's timing model."""
        return sum(self.spent(self.cycles))

    def spent(self, cycles: tuple[RunCycles, ...]) -> Cycles:
        """Return the cycles of all runs by cause, from those of one run of each kind."""
        each = (
            runs.spent(one)
            for runs, one in zip(self.runs, cycles, strict=False)
            if runs != _NO_RUNS
        )
        return functools.reduce(_add_cycles, each, NO_CYCLES)


@dataclass(frozen=True)
class Edge:
    """A way from the end of a block to an address, and how often the core took it.

    Attributes:
        source: position of the block in `Trace.blocks`.
        target: address of the next block, which may have been left before its end.
        count: how often.
    """

    source: int
    target: int
    count: int


@dataclass(frozen=True)
class Trace:
    """The execution of programs by a core, as counts of its blocks of code.

    Attributes:
        blocks: every block, those that never ran to their end included.
        edges: between them; those of returns and jumps to registers only while the device traced
            edges.
        operands: executions by the sizes of their operands, and accesses to other memory than
            expected, in the order of their first runs.
        extra: cycles by cause that these took.
        waited: cycles in which the core waited for peripherals or slept.
        exceptions: cycles of exception entries and returns.
        memory: cycles of `extra` that misses of caches took.
    """

    blocks: tuple[BlockRuns, ...]
    edges: tuple[Edge, ...] = ()
    operands: tuple[OperandRuns, ...] = ()
    extra: Cycles = NO_CYCLES
    waited: int = 0
    exceptions: int = 0
    memory: int = 0

    @property
    def instructions(self) -> int:
        """Retired instructions."""
        return sum(block.count * block.instructions for block in self.blocks)

    @property
    def cycles(self) -> int:
        """Cycles by the device's own timing model."""
        return sum(self.causes.values())

    @property
    def causes(self) -> dict[str, int]:
        """Cycles by cause, by the device's own timing model; together all of `cycles`.

        The keys are `covp.device.timing.native.CAUSES` and `OTHER_CAUSES`.
        """
        found: Counter[str] = Counter()
        for block in self.blocks:
            found.update(dict(zip(CAUSES, block.spent(block.cycles), strict=True)))
        found.update(dict(zip(CAUSES, self.extra, strict=True)))
        return {**found, **dict(zip(OTHER_CAUSES, (self.waited, self.exceptions), strict=True))}

    def since(self, earlier: Trace) -> Trace:
        """Return the part that was executed after an earlier trace of the same device."""
        return Trace(
            tuple(map(_block_since, self.blocks, _pad(earlier.blocks, len(self.blocks)))),
            _edges_since(self.edges, earlier.edges),
            _operands_since(self.operands, earlier.operands),
            tuple(now - then for now, then in zip(self.extra, earlier.extra, strict=True)),
            self.waited - earlier.waited,
            self.exceptions - earlier.exceptions,
            self.memory - earlier.memory,
        )


def _pad(blocks: Sequence[BlockRuns], length: int) -> Sequence[BlockRuns | None]:
    return [*blocks, *[None] * (length - len(blocks))]


def _block_since(now: BlockRuns, earlier: BlockRuns | None) -> BlockRuns:
    if earlier is None:
        return now
    runs = tuple(map(operator.sub, now.runs, earlier.runs))
    return replace(now, runs=runs, turned=now.turned - earlier.turned)


def _edges_since(edges: Sequence[Edge], earlier: Sequence[Edge]) -> tuple[Edge, ...]:
    known = {(edge.source, edge.target): edge.count for edge in earlier}
    later = (
        replace(edge, count=edge.count - known.get((edge.source, edge.target), 0)) for edge in edges
    )
    return tuple(edge for edge in later if edge.count)


def _operands_since(
    now: Sequence[OperandRuns], earlier: Sequence[OperandRuns]
) -> tuple[OperandRuns, ...]:
    counts = itertools.chain((one.count for one in earlier), itertools.repeat(0))
    return tuple(
        replace(one, count=one.count - before) for one, before in zip(now, counts, strict=False)
    )


def cost(trace: Trace, model: TimingModel, waits: Sequence[RegionWaits] = ()) -> int:
    """Return the cycles of a trace by a timing model.

    Waiting, exceptions and misses of caches take the cycles that they took in the run. Operands
    count as far as they were recorded: where the device's model asks for them, or while it traced
    edges.

    Args:
        trace: of a core with the model's instruction set.
        model: any.
        waits: wait states of the memory.
    """
    pipeline = Pipeline(model, waits)
    spent = 0
    for block in trace.blocks:
        if block.count or block.taken:
            spent += sum(block.spent(_block_cycles(trace, block, pipeline)))
    ways = Ways(
        trace.operands,
        pipeline,
        lambda number: _place(trace, number),
        lambda met: met.second,
        lambda one: pipeline.operand_cycles(one.kind, one.first, one.second),
    )
    spent += sum(one.count * ways.more(n) for n, one in enumerate(trace.operands) if one.count)
    return spent + trace.waited + trace.exceptions + trace.memory


def _block_cycles(trace: Trace, block: BlockRuns, pipeline: Pipeline) -> tuple[RunCycles, ...]:
    before = histories(trace, block)
    return RunCycles.of(pipeline.time(block.items, block.address, before, block.ends))


def _place(trace: Trace, number: int) -> PlacedCode:
    """Return the block at a position."""
    block = trace.blocks[number]
    items, before = block.items, histories(trace, block)
    place = place_block(items, block.address, before, block.ends)
    place.alive = items, before  # it has their addresses
    return PlacedCode(items, block.address, block.ends, place)


def histories(trace: Trace, block: BlockRuns) -> list[list[Before]]:
    """Return what ran before a block of a trace, for each way to enter it but the first.

    Args:
        trace: that has the block.
        block: any of its blocks.
    """
    blocks = trace.blocks
    return [
        [(blocks[place].items, blocks[place].address) for place in past(blocks, way, block.address)]
        for way in block.before
    ]


def past(blocks: Sequence[BlockRuns], way: Way | None, to: int) -> list[int]:
    """Return the positions of the blocks that ran on a way, as far as they count, the oldest first.

    Args:
        blocks: of the trace.
        way: in it; None: nothing is known.
        to: address where it leads.
    """
    found: list[int] = []
    jumps = 0
    while way is not None and len(found) < DEPTH:
        place, entry = way
        one = blocks[place]
        jumps += bool(one.ends & _ENDS_JUMPING or one.address + one.size != to)
        if jumps > 1:
            break
        found.insert(0, place)
        to, way = one.address, one.before[entry - 1] if entry else None
    return found
