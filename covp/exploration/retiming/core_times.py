"""`CoreTimes`: the cycles of a trace's segments on a core and its memory."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.backend import AcceleratorBackend
from covp.chip.platform_file import Platform, parse_size
from covp.chip.platform_file.caches import Cache, GhostCache
from covp.device.machine.native_caches import miss_cycles, uncached_waits
from covp.device.timing.model import core_timing
from covp.device.timing.native import ENTRIES, CodeItem, EntryTime, Pipeline, PlacedBlock
from covp.device.timing.ways import MEMORIES, OperandRuns, PlacedCode, Ways
from covp.errors import UsageError
from covp.exploration.retiming.run_trace import CodeTable, RunTrace, SegmentTable
from covp.hardware.custom_instruction import InstructionUnit

ITEM = np.dtype([("bits", "<u4"), ("sizes", "u1"), ("kind", "u1"), ("cycles", "<u2")])
"""`CodeItem` for numpy; ``sizes``: of its bytes, and in its upper bits what it meets;
``kind``: whether it is custom in the lowest bit, and above that its memory."""
_CUSTOM_MASK = 0xFE00707F  # all but the registers of an R-type instruction


@dataclass(frozen=True)
class _Seen:
    """The code of a trace as one core sees it.

    Attributes:
        pipeline: the timing model with the memory.
        further: of each memory, plus 1, the wait states beyond those that all data memory has.
        kinds: of each instruction 1 + the place of its class among those with operands, or 0.
    """

    pipeline: Pipeline
    further: NDArray[np.int64]
    kinds: NDArray[np.uint8]


class CoreTimes:
    """Times segments; holds what does not depend on the core.

    Args:
        code, segments, operands: see `RunTrace`.
        caches: see `RunTrace`.
        in_core: accelerators of custom instructions.
    """

    def __init__(
        self,
        code: CodeTable,
        segments: SegmentTable,
        operands: tuple[OperandRuns, ...],
        caches: tuple[GhostCache, ...],
        in_core: Mapping[str, AcceleratorBackend],
    ) -> None:
        self._segments, self._operands, self._in_core = segments, operands, in_core
        self._code, self._caches = code, caches
        self._buffer = np.array(code.items)
        wanted = {*segments.runs["block"].tolist(), *(one.block for one in operands)}
        self._blocks = np.array(sorted(wanted), np.int64)
        self._place = np.zeros(len(code.address), np.int64)
        self._place[self._blocks] = np.arange(len(self._blocks))
        self._placed = self._place_blocks()
        self._columns = self._place[segments.runs["block"]], segments.runs["entry"]

    @classmethod
    def of(cls, trace: RunTrace) -> CoreTimes:
        """Return the times of a trace."""
        return cls(trace.code, trace.segments, trace.operands, trace.caches, trace.in_core)

    def cycles(
        self, platform: Platform, in_core: Mapping[str, AcceleratorBackend] | None = None
    ) -> NDArray[np.int64]:
        """Return the cycles of each segment but for the misses of caches.

        Args:
            platform: its core and memory count.
            in_core: accelerators of custom instructions with other parameters.

        Raises:
            UsageError: the core is of another instruction set.
        """
        seen = self._seen_by(platform, in_core or self._in_core)
        times = seen.pipeline.times(self._placed)
        table = np.frombuffer(memoryview(times).cast("B"), np.uint32)
        parts = len(EntryTime._fields_)  # own, taken, untaken; each by cause
        by_entry = table.reshape(len(self._placed), ENTRIES, parts, -1).sum(axis=3, dtype=np.int64)
        blocks, entries = self._columns
        own, taken, untaken = by_entry[blocks, entries].T
        runs = self._segments.runs
        spent = runs["runs"] * own + runs["taken"] * taken
        spent += (runs["runs"] - runs["taken"] - runs["ended"]) * untaken
        total = _sums(spent, self._segments.first_run)
        total += self._of_operands(seen)
        return total + self._segments.constant

    def of_caches(self, platform: Platform) -> NDArray[np.int64]:
        """Return the cycles of each segment's cache misses, the emptying of caches included.

        Args:
            platform: whose memory decides what a miss takes, and whose caches what one is.

        Raises:
            UsageError: no cache of such a shape saw the run.
        """
        total = np.zeros(len(self._segments.constant), np.int64)
        counted = {one.name for one in self._caches}
        cycles = miss_cycles(platform) if counted else {}
        reloads = core_timing(platform.core).reloads
        for cache in platform.caches:
            if cache.name in counted:
                each = np.array(cycles[cache.name], np.int64)
                found = self._segments.misses[:, self._place_of(shape_of(cache))]
                total += found[:, : len(each)] @ each + found[:, -2] - reloads * found[:, -1]
        return total

    def _place_of(self, cache: GhostCache) -> int:
        if cache not in self._caches:
            same = sorted(one for one in self._caches if one.name == cache.name)
            known = ", ".join(f"{one.size}/{one.line}/{one.ways}" for one in same)
            raise UsageError(
                f"platform.{cache.name}: a size, line and ways of {cache.size}/{cache.line}/"
                f"{cache.ways} were not recorded, but {known}: name them in record(..., sizes=...)"
            )
        return self._caches.index(cache)

    def _seen_by(self, platform: Platform, in_core: Mapping[str, AcceleratorBackend]) -> _Seen:
        """Return the code as a core sees it; expected waits of accesses are written into it."""
        pipeline = Pipeline(core_timing(platform.core), uncached_waits(platform))
        further = np.array([one.data - pipeline.data_waits for one in pipeline.waits], np.int64)
        further = np.concatenate(([0], further))
        met, times = self._code.memories.T
        operands = pipeline.traits(self._buffer.ctypes.data, len(self._buffer))
        custom = self._buffer["kind"] & 1 != 0
        waits = further[met & np.uint8(MEMORIES)] * times
        self._buffer["cycles"] = np.where(custom, self._code.items["cycles"], waits)
        if in_core is not self._in_core:
            self._set_custom(custom, in_core)
        return _Seen(pipeline, further, np.frombuffer(operands, np.uint8))

    def _set_custom(
        self, custom: NDArray[np.bool_], in_core: Mapping[str, AcceleratorBackend]
    ) -> None:
        """Give the custom instructions the cycles that units with other parameters take."""
        bits = self._buffer["bits"] & _CUSTOM_MASK
        for backend in in_core.values():
            unit = backend.make_peripheral()
            assert isinstance(unit, InstructionUnit)
            for one in unit.instructions:
                self._buffer["cycles"][custom & (bits == one.match)] = one.cycles

    def _of_operands(self, seen: _Seen) -> NDArray[np.int64]:
        """Return the cycles that operands and unexpected accesses add to each segment."""
        pipeline, kinds = seen.pipeline, list(seen.pipeline.model.instructions.with_operands)

        def waits(met: OperandRuns) -> int:
            expected = self._code.memories[int(self._code.first[met.block]) + met.place, 0]
            return int(seen.further[met.first & MEMORIES] - seen.further[expected & MEMORIES])

        def cycles(one: OperandRuns) -> int:
            rule = seen.kinds[int(self._code.first[one.block]) + one.place]
            if one.kind not in pipeline.model.operands or rule != 1 + kinds.index(one.kind):
                return 0
            return pipeline.operand_cycles(one.kind, one.first, one.second)

        ways = Ways(self._operands, pipeline, self._block, waits, cycles)
        more = np.array([ways.more(number) for number in range(len(self._operands))], np.int64)
        rows = self._segments.operands
        each = more[rows["varied"]] * rows["count"] if len(rows) else np.zeros(0, np.int64)
        return _sums(each, self._segments.first_operand)

    def _block(self, number: int) -> PlacedCode:
        """Return the block at a position in the trace."""
        first, last = (int(place) for place in self._code.first[number : number + 2])
        items = (CodeItem * (last - first)).from_buffer_copy(self._buffer[first:last].tobytes())
        address, ends = int(self._code.address[number]), int(self._code.ends[number])
        return PlacedCode(items, address, ends, self._placed[int(self._place[number])])

    def _place_blocks(self) -> ctypes.Array[PlacedBlock]:
        """Return the blocks for the native side; they point into the buffer."""
        code, start = self._code, self._buffer.ctypes.data
        size = ctypes.sizeof(CodeItem)
        assert self._buffer.dtype.itemsize == size

        def put(slot: Any, block: int) -> None:
            first, last = int(code.first[block]), int(code.first[block + 1])
            slot.code, slot.count = start + first * size, last - first
            slot.address = int(code.address[block])

        placed = (PlacedBlock * len(self._blocks))()
        for one, block in zip(placed, self._blocks.tolist(), strict=True):
            put(one.block, block)
            one.ends = int(code.ends[block])
            for history, blocks in zip(one.before, code.before[block].tolist(), strict=True):
                known = [before for before in blocks if before >= 0]
                history.count = len(known)
                for slot, before in zip(history.code, known, strict=False):
                    put(slot, before)
        return placed


def shape_of(cache: Cache) -> GhostCache:
    """Return the shape of a cache."""
    return GhostCache(cache.name, parse_size(cache.size), cache.line, cache.ways)


def demand_like(core: Platform, other: Platform) -> None:
    """Raise UsageError if the other core does not execute the first one's code as expected."""
    mine, theirs = core.core.isa, other.core.isa
    alike = (mine.architecture, mine.profile) == (theirs.architecture, theirs.profile)
    if not alike or not mine.extensions <= theirs.extensions:
        raise UsageError(
            f"platform.core={other.core.name} does not execute the code of {core.core.name}: that "
            "needs another run"
        )
    if _known_branches(core) != _known_branches(other):
        raise UsageError(
            f"{other.core.name} expects other branches than {core.core.name} did (targets of the "
            "timing model): that needs another run"
        )


def _known_branches(platform: Platform) -> tuple[int, tuple[bool, ...]]:
    """Return what decides which branches a core expects."""
    model = core_timing(platform.core)
    waits = (region.waits.fetch > 0 for region in platform.memory if model.targets_later)
    return model.targets, tuple(waits)


def _sums(values: NDArray[np.int64], first: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sum of each stretch of ``values``: from ``first[n]`` to ``first[n + 1]``."""
    totals = np.concatenate(([0], np.cumsum(values, dtype=np.int64)))
    return np.asarray(totals[first[1:]] - totals[first[:-1]])
