"""`RunTrace`: a run as data, from which its cycles on other designs follow."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.backend import AcceleratorBackend
from covp.chip.platform_file import Platform
from covp.chip.platform_file.caches import GhostCache
from covp.device.timing.ways import OperandRuns
from covp.evaluation.varied import PLATFORM, SHAPE, WAITS
from covp.exploration.retiming.places import Places
from covp.hardware.job_unit import JobRecord
from covp.runtime.profile import Profile

RUN, START, POLL, SLEEP = range(4)
"""What a step does after its segment: nothing; a unit is started; the core waits for a unit by
reading its STATUS, or by WFI if the unit is not done yet."""
_FIELDS = ("kind", "segment", "unit", "job", "layer", "eager", "asleep", "awake", "rest")
STEP = np.dtype([(name, np.int32) for name in _FIELDS])
"""A step of the path; mirrored in scan.c; -1: none. ``segment`` runs first. Of `SLEEP` ``eager``
runs next where the unit is done, else ``asleep``, the wait, ``awake`` and ``rest``."""


@dataclass(frozen=True, eq=False)
class CodeTable:
    """The blocks of code that ran.

    Attributes:
        items: instructions of all blocks, see `covp.device.timing.native.CodeItem`.
        memories: of each instruction what it was expected to access, and how often, see
            `covp.device.timing.segments.Segments`; shape (instructions, 2).
        first: where each block's instructions begin in these; one more for the end.
        address, ends: of each block, see `covp.device.timing.trace.BlockRuns`.
        before: (blocks, ways to enter but the first, `covp.device.timing.native.DEPTH`): the blocks
            before it, the oldest first; -1: none.
    """

    items: NDArray[Any]
    memories: NDArray[np.uint8]
    first: NDArray[np.int64]
    address: NDArray[np.int64]
    ends: NDArray[np.int64]
    before: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class SegmentTable:
    """The segments that differ: straight runs of the core between two cuts.

    Attributes:
        runs: of blocks, see `covp.device.machine.native_counter.SegmentRun`: those of segment n are
            ``runs[first_run[n]:first_run[n + 1]]``.
        operands: of instructions with operands of some sizes; likewise.
        instructions: retired.
        misses: (segments, caches, memories and one): of the caches of `RunTrace.caches`, see
            `covp.device.timing.segments.Segments`.
        constant: cycles that are as in the run: of exceptions, and what stores wait for where a
            cache passes them on; of caches that read in advance all.
    """

    runs: NDArray[Any]
    first_run: NDArray[np.int64]
    operands: NDArray[Any]
    first_operand: NDArray[np.int64]
    instructions: NDArray[np.int64]
    misses: NDArray[np.int64]
    constant: NDArray[np.int64]


Tables = tuple[CodeTable, SegmentTable, tuple[OperandRuns, ...]]


def concatenate(tables: Sequence[Tables]) -> Tables:
    """Return the tables of several runs, one after the other."""
    codes, segments, operands = (list(part) for part in zip(*tables, strict=True))
    blocks = _starts(len(code.address) for code in codes)
    varied = _starts(len(own) for own in operands)
    before = [np.where(c.before < 0, -1, c.before + n) for c, n in zip(codes, blocks, strict=True)]
    runs = [_shift(s.runs, "block", n) for s, n in zip(segments, blocks, strict=True)]
    of_operands = [_shift(s.operands, "varied", n) for s, n in zip(segments, varied, strict=True)]
    code = CodeTable(
        items=np.concatenate([one.items for one in codes]),
        memories=np.concatenate([one.memories for one in codes]),
        first=_join_ends([one.first for one in codes]),
        address=np.concatenate([one.address for one in codes]),
        ends=np.concatenate([one.ends for one in codes]),
        before=np.concatenate(before).astype(np.int32),
    )
    table = SegmentTable(
        runs=np.concatenate(runs),
        first_run=_join_ends([one.first_run for one in segments]),
        operands=np.concatenate(of_operands),
        first_operand=_join_ends([one.first_operand for one in segments]),
        instructions=np.concatenate([one.instructions for one in segments]),
        misses=np.concatenate([one.misses for one in segments]),
        constant=np.concatenate([one.constant for one in segments]),
    )
    moved = (
        replace(one, block=one.block + n, before=None if one.before is None else one.before + first)
        for own, n, first in zip(operands, blocks, varied, strict=True)
        for one in own
    )
    return code, table, tuple(moved)


def _starts(lengths: Iterable[int]) -> list[int]:
    return list(itertools.accumulate(lengths, initial=0))[:-1]


def _join_ends(firsts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the begins of stretches, and the end of the last one, of concatenated tables."""
    sizes = np.concatenate([np.diff(first) for first in firsts])
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def _shift(rows: NDArray[Any], field: str, by: int) -> NDArray[Any]:
    other = np.array(rows)
    other[field] += by
    return other


@dataclass(frozen=True, eq=False)
class UnitTrace:
    """An accelerator's jobs in a run.

    Attributes:
        backend: with the parameters of the run.
        jobs: in the order in which they were started.
    """

    backend: AcceleratorBackend
    jobs: tuple[JobRecord, ...]


@dataclass(frozen=True, eq=False)
class RunTrace:
    """One inference. It pickles.

    Attributes:
        platform: that it ran on.
        code, segments: what the core executed.
        caches: the shapes whose misses were counted.
        operands: see `covp.device.timing.trace.OperandRuns`; their counts are in ``segments``.
        path: its steps in order, of the type `STEP`.
        places: where its layers could have been.
        units: by name of the accelerator.
        in_core: accelerators of custom instructions, by name.
        profile: of the run.
        joules_of_units: energy that units took; None where no energy is known.
        layers: names of the layers.
    """

    platform: Platform
    code: CodeTable
    segments: SegmentTable
    operands: tuple[OperandRuns, ...]
    path: NDArray[Any]
    places: Places
    caches: tuple[GhostCache, ...]
    units: Mapping[str, UnitTrace]
    in_core: Mapping[str, AcceleratorBackend]
    profile: Profile
    joules_of_units: float | None
    layers: tuple[str, ...]

    @property
    def cycles(self) -> int:
        """Cycles of the recorded run."""
        assert self.profile.cycles is not None
        return self.profile.cycles

    @property
    def retimable(self) -> frozenset[str]:
        """Names of parameters that can be retimed; others need another run.

        They are named as in `covp.evaluation.varied`.
        """
        names = time_parameters(self.platform) | {f"{PLATFORM}.core"}
        return names.union(
            f"{name}.{parameter.name}"
            for name, backend in self.places.backends.items()
            for parameter in backend.timing_parameters
        )


def time_parameters(platform: Platform) -> frozenset[str]:
    """Return the names of a platform's parameters that change its time alone, but for its core.

    What a cache that reads in advance waits for depends on the order of all that runs, so the
    memory behind it is none of them. The line of a cache that holds RAM is in the program.
    """
    ahead = {cache.name for cache in platform.caches if cache.prefetch}
    behind = [region for region in platform.memory if ahead & {*region.caches}]
    ram = {name for region in platform.cached_ram for name in region.caches}
    names = {f"{PLATFORM}.timing"}
    if not any(region.clocks for region in behind):
        names.add(f"{PLATFORM}.clock_hz")
    for region in platform.memory:
        if region not in behind:
            names |= {f"{PLATFORM}.{region.name}.{part}" for part in WAITS}
    for cache in platform.caches:
        if not cache.prefetch:
            parts = [part for part in SHAPE if part != "line" or cache.name not in ram]
            names |= {f"{PLATFORM}.{cache.name}.{part}" for part in parts}
    return frozenset(names)
