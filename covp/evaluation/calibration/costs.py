"""`Costs`: the cycles of programs by one model after the other."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from covp.device.timing.model import Rule, TimingFile, make_model
from covp.device.timing.native import (
    ENTRIES,
    CodeItem,
    Histories,
    Pipeline,
    PlacedBlock,
    RegionWaits,
    place_block,
)
from covp.device.timing.trace import Runs, Trace, histories
from covp.device.timing.ways import FELL, JUMPED, MEMORY
from covp.evaluation.calibration.measure import NO_TARGETS, Measured, Targets, targets_of

Array = NDArray[np.float64]
Classes = frozenset[str]
_TIMES = 3 * ENTRIES
"""Times of a block: of a run and of both ends, for each way to enter it."""


@dataclass(frozen=True)
class MeasuredBlock:
    """A block of a program.

    Attributes:
        classes: of its instructions, and of those before it: what its time depends on.
        weights: how often each of the times of a block counts, see `_weights`.
        code, address, before, ends: see `Pipeline.time`.
    """

    classes: Classes
    weights: Array
    code: ctypes.Array[CodeItem]
    address: int
    before: Histories
    ends: int

    @property
    def native_block(self) -> PlacedBlock:
        """Block in the form of the native side."""
        return place_block(self.code, self.address, self.before, self.ends)


class PreparedProgram:
    """A measured program, as far as models time it.

    Args:
        one: with the traces.
        name_of: comes from `classifier`.
        waits: wait states of the memory.

    Attributes:
        is_random: the program is no hazard.
        measured: cycles of many rounds without those of few.
        operands: (class, first, second) to how often; see `OperandRuns`.
        waits: wait states of the memory that it was measured with.
    """

    def __init__(
        self, one: Measured, name_of: Callable[[CodeItem], str], waits: Sequence[RegionWaits] = ()
    ) -> None:
        self._traces, self._name_of = one.traces, name_of
        self._blocks: dict[Targets, tuple[MeasuredBlock, ...]] = {}
        self.is_random, self.measured = one.program.is_random, one.cycles
        self.operands = _operands(*one.traces[NO_TARGETS])
        self.waits = tuple(waits)

    def blocks(self, targets: Targets) -> tuple[MeasuredBlock, ...]:
        """Return what many rounds execute without what few do, with a branch target buffer."""
        if targets not in self._blocks:
            self._blocks[targets] = tuple(_blocks(*self._traces[targets], self._name_of))
        return self._blocks[targets]

    @property
    def classes(self) -> Classes:
        """Classes of the instructions that it executes."""
        return frozenset[str]().union(*(block.classes for block in self.blocks(NO_TARGETS)))


@dataclass(frozen=True)
class Timed:
    """Programs, timed by a model.

    Attributes:
        model: content of its file.
        spent: cycles of each block, with its branch target buffer.
        cycles: of each program.
        loss: mean relative error; hazards count as much as random programs do in all.
    """

    model: TimingFile
    spent: Array
    cycles: Array
    loss: float


@dataclass(frozen=True)
class _Chosen:
    """Some of the blocks of one memory, for the native side.

    Attributes:
        waits: of the memory.
        places: among all blocks.
        native: themselves.
        weights: of their times.
    """

    waits: tuple[RegionWaits, ...]
    places: NDArray[np.int64]
    native: ctypes.Array[PlacedBlock]
    weights: Array


class _Blocks:
    """The blocks of programs on cores with a branch target buffer."""

    def __init__(self, programs: Sequence[PreparedProgram], targets: Targets) -> None:
        self._waits = [one.waits for one in programs for _ in one.blocks(targets)]
        self.each = [block for one in programs for block in one.blocks(targets)]
        self.owners = [n for n, one in enumerate(programs) for _ in one.blocks(targets)]
        self.all = self._of_memories(range(len(self.each)))
        self._chosen: dict[Classes, list[_Chosen]] = {}

    def _of_memories(self, places: Iterable[int]) -> list[_Chosen]:
        """Return blocks by the memory that their programs were measured with."""
        found: dict[tuple[RegionWaits, ...], list[int]] = {}
        for n in places:
            found.setdefault(self._waits[n], []).append(n)
        blocks = self.each
        return [
            _Chosen(
                waits,
                np.array(numbers, np.int64),
                (PlacedBlock * len(numbers))(*(blocks[n].native_block for n in numbers)),
                np.array([blocks[n].weights for n in numbers]).reshape(-1, _TIMES),
            )
            for waits, numbers in found.items()
        ]

    def having(self, classes: Classes) -> list[_Chosen]:
        """Return the blocks with instructions of some classes."""
        if classes not in self._chosen:
            places = (n for n, block in enumerate(self.each) if block.classes & classes)
            self._chosen[classes] = self._of_memories(places)
        return self._chosen[classes]


class Costs:
    """Times programs by one model after the other.

    Args:
        programs: any.

    Attributes:
        measured: cycles of each program.
        weights: of a program's error in cycles, in the loss.
    """

    def __init__(self, programs: Sequence[PreparedProgram]) -> None:
        self.programs = tuple(programs)
        self.measured = np.array([one.measured for one in programs], float)
        self._blocks: dict[Targets, _Blocks] = {}
        self._by_operands: dict[bytes, Array] = {}
        is_random = np.array([one.is_random for one in programs])
        share = np.where(is_random, 1 / max(1, is_random.sum()), 1 / max(1, (~is_random).sum()))
        self.weights: Array = share / self.measured

    def time(self, model: TimingFile) -> Timed:
        """Return the times of the programs by a model."""
        blocks = self._known(targets_of(model))
        return self._time(model, self._spend(model, blocks.all, np.zeros(len(blocks.each))))

    def change(self, before: Timed, model: TimingFile, classes: Classes | None) -> Timed:
        """Return the times by a model that is like the one of ``before``.

        The time of a block depends on the classes of its instructions alone: others keep theirs.

        Args:
            before: of these programs.
            model: the other one.
            classes: whose figures differ; None: all may.
        """
        if classes is None:
            return self.time(model)
        chosen = self._known(targets_of(model)).having(classes)
        return self._time(model, self._spend(model, chosen, before.spent.copy()))

    def _known(self, targets: Targets) -> _Blocks:
        if targets not in self._blocks:
            self._blocks[targets] = _Blocks(self.programs, targets)
        return self._blocks[targets]

    @staticmethod
    def _spend(model: TimingFile, chosen: Sequence[_Chosen], spent: Array) -> Array:
        """Put the cycles of some blocks into those of all."""
        made = make_model("candidate", model)
        for one in chosen:
            pipeline = Pipeline(made, one.waits)
            times = np.frombuffer(bytes(pipeline.times(one.native)), np.uint32)
            totals: Array = times.reshape(len(one.places), _TIMES, -1).sum(2, float)
            spent[one.places] = (totals * one.weights).sum(1)
        return spent

    def _time(self, model: TimingFile, spent: Array) -> Timed:
        owners = self._known(targets_of(model)).owners
        total: Array = np.bincount(owners, spent, len(self.programs)).astype(float)
        total += self._of_operands(model)
        return Timed(model, spent, total, float(self.weights @ np.abs(total - self.measured)))

    def _of_operands(self, model: TimingFile) -> Array:
        key = msgspec.json.encode(model.operands)
        if key not in self._by_operands:
            pipeline = Pipeline(make_model("candidate", model))
            each = (
                sum(n * pipeline.operand_cycles(*which) for which, n in one.operands.items())
                for one in self.programs
            )
            self._by_operands[key] = np.array(list(each), float)
        return self._by_operands[key]


def _operands(few: Trace, many: Trace) -> Counter[tuple[str, int, int]]:
    found: Counter[tuple[str, int, int]] = Counter()
    for trace, sign in ((many, 1), (few, -1)):
        for run in trace.operands:
            if run.kind not in (MEMORY, FELL, JUMPED):
                found[run.kind, run.first, run.second] += sign * run.count
    return found


def _blocks(few: Trace, many: Trace, name_of: Callable[[CodeItem], str]) -> Iterator[MeasuredBlock]:
    """Yield the blocks that many rounds execute otherwise than few."""
    weights = _weights(many)
    weights[: len(few.blocks)] -= _weights(few)
    for block, weight in zip(many.blocks, weights, strict=True):
        if weight.any():
            before = histories(many, block)
            earlier = (item for history in before for code, _ in history for item in code)
            classes = frozenset(map(name_of, (*block.items, *earlier)))
            yield MeasuredBlock(classes, weight, block.items, block.address, before, block.ends)


def _weights(trace: Trace) -> Array:
    """Return each block's runs and ends, branch taken and not, for each way to enter it."""
    rows = [[count for runs in block.runs for count in _counts(runs)] for block in trace.blocks]
    return np.array(rows, float).reshape(-1, _TIMES)


def _counts(runs: Runs) -> tuple[int, int, int]:
    return runs.count, runs.taken, runs.count - runs.taken - runs.ended


def classifier(model: TimingFile) -> Callable[[CodeItem], str]:
    """Return a function from instruction to its class, or that of a like one; "" for none."""
    rules: Sequence[Rule] = make_model("classes", model).rules

    def name_of(item: CodeItem) -> str:
        for rule in rules:
            p = rule.pattern
            if p.bytes == item.bytes and item.bits & p.mask == p.match:
                return rule.kind.like or rule.kind.name
        return ""

    return name_of
