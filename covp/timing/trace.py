"""`Trace`: counts of the code that a core executed, and their cost by any timing model.

A program runs once; `cost` then gives its cycles on every microarchitecture of the same
instruction set, without running it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from covp.timing.model import Rule, TimingModel

_ONE_CYCLE = Rule(0, 0, 0)


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


@dataclass(frozen=True)
class BlockRuns:
    """A block of straight-line code that ran.

    Attributes:
        address, size: of its code, in bytes.
        code: its instructions.
        count: how often it ran to its end.
        taken: how often the core went to another address than the one past its end.
        cycles: of one run by the device's timing model, without a taken branch.
        taken_cycles: by the same model, added each time that the branch at its end is taken.
    """

    address: int
    size: int
    code: tuple[Instruction, ...]
    count: int
    taken: int
    cycles: int
    taken_cycles: int

    @property
    def instructions(self) -> int:
        """Instructions of one run."""
        return len(self.code)

    @property
    def total_cycles(self) -> int:
        """Cycles of all runs by the device's timing model."""
        return self.count * self.cycles + self.taken * self.taken_cycles


@dataclass(frozen=True)
class Edge:
    """How often the core went from the end of a block to an address.

    An interrupt that is taken after a direct branch counts as the branch being taken.

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
        waited: cycles in which the core waited for peripherals or slept.
        exceptions: cycles of exception entries and returns.
    """

    blocks: tuple[BlockRuns, ...]
    edges: tuple[Edge, ...] = ()
    waited: int = 0
    exceptions: int = 0

    @property
    def instructions(self) -> int:
        """Retired instructions."""
        return sum(block.count * block.instructions for block in self.blocks)

    @property
    def cycles(self) -> int:
        """Cycles by the device's own timing model."""
        spent = sum(block.total_cycles for block in self.blocks)
        return spent + self.waited + self.exceptions

    def since(self, earlier: Trace) -> Trace:
        """The part that was executed after an earlier trace of the same device."""
        return Trace(
            tuple(map(_block_since, self.blocks, _padded(earlier.blocks, len(self.blocks)))),
            _edges_since(self.edges, earlier.edges),
            self.waited - earlier.waited,
            self.exceptions - earlier.exceptions,
        )


def _padded(blocks: Sequence[BlockRuns], length: int) -> Sequence[BlockRuns | None]:
    return [*blocks, *[None] * (length - len(blocks))]


def _block_since(now: BlockRuns, earlier: BlockRuns | None) -> BlockRuns:
    if earlier is None:
        return now
    return replace(now, count=now.count - earlier.count, taken=now.taken - earlier.taken)


def _edges_since(edges: Sequence[Edge], earlier: Sequence[Edge]) -> tuple[Edge, ...]:
    known = {(edge.source, edge.target): edge.count for edge in earlier}
    later = (
        replace(edge, count=edge.count - known.get((edge.source, edge.target), 0)) for edge in edges
    )
    return tuple(edge for edge in later if edge.count)


def cost(trace: Trace, model: TimingModel) -> int:
    """The cycles of a trace by a timing model.

    Waiting and exceptions take the cycles that they took in the run.
    """
    timer = _Timer(model)
    spent = 0
    for block in trace.blocks:
        if block.count or block.taken:
            cycles, taken = timer.block(block.code)
            spent += block.count * cycles + block.taken * taken
    return spent + trace.waited + trace.exceptions


@dataclass
class _Timer:
    """The rules of a model, applied to straight-line code; keeps what it found."""

    model: TimingModel
    _found: dict[tuple[int, int], Rule] = field(default_factory=dict)

    def block(self, code: Sequence[Instruction]) -> tuple[int, int]:
        """Cycles of the code, and those that a taken branch at its end adds."""
        total, taken = 0, 0
        loaded, free_unit = False, 0
        for instruction in code:
            if instruction.cycles is not None:
                total += instruction.cycles
                loaded, free_unit, taken = False, 0, 0
                continue
            rule = self._rule(instruction)
            cycles = rule.cycles + _listed(rule, instruction.bits)
            together = free_unit and rule.unit and rule.unit != free_unit
            shorter = cycles > 0 and bool(together or (loaded and rule.accesses))
            total += cycles - shorter
            taken = rule.taken
            # Two instructions issue together, not three: the second of a pair helps no other.
            second = shorter and rule.unit
            loaded = rule.loads and not second
            free_unit = 0 if second else rule.unit
        return total, taken

    def _rule(self, instruction: Instruction) -> Rule:
        key = (instruction.bytes, instruction.bits)
        if key not in self._found:
            self._found[key] = _first_rule(self.model.rules, *key)
        return self._found[key]


def _first_rule(rules: Sequence[Rule], size: int, bits: int) -> Rule:
    matching = (rule for rule in rules if rule.bytes == size and bits & rule.mask == rule.match)
    return next(matching, _ONE_CYCLE)


def _listed(rule: Rule, bits: int) -> int:
    listed = bits & rule.list
    return listed if rule.counted else listed.bit_count()
