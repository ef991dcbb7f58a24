"""`record`: one run of a build, kept as a `RunTrace`: what the device counted, as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.backend import AcceleratorBackend
from covp.building.builder import Build
from covp.chip.platform_file import Platform
from covp.chip.platform_file.caches import GhostCache
from covp.device.timing.native import DEPTH, ENTRIES
from covp.device.timing.segments import LOOKED, PHASE, SLEPT, CutEvent, Segments
from covp.device.timing.trace import Trace, past
from covp.device.timing.ways import OperandRuns
from covp.errors import DeviceError, UsageError, near_misses
from covp.evaluation.energy import Energy
from covp.evaluation.result import Evaluation
from covp.evaluation.runner import Runner
from covp.evaluation.sample import Sample
from covp.evaluation.varied import PLATFORM, vary_design
from covp.exploration.retiming.core_times import ITEM, CoreTimes, shape_of
from covp.exploration.retiming.path import NONE, Cut, merge, path_of
from covp.exploration.retiming.places import Places
from covp.exploration.retiming.run_trace import (
    CodeTable,
    RunTrace,
    SegmentTable,
    UnitTrace,
    concatenate,
)
from covp.exploration.retiming.scan import UnitRows, walk
from covp.hardware.job_unit import JobRecord, JobUnit
from covp.runtime.measurement import BETWEEN, FIRST_LAYER

_FOREVER = 1 << 40
"""Cycles that no program takes otherwise: two hours at 120 MHz."""


Shape = int | Mapping[str, int]
"""The size of a cache in bytes, or its size, line and ways by name; what is not named stays."""


def record(
    build: Build, sample: Sample | None = None, sizes: Mapping[str, Sequence[Shape]] | None = None
) -> RunTrace:
    """Run a build once on the virtual device and keep what can be retimed.

    Three runs where a driver waits by WFI: with the units as they are, with units that are done at
    once, and with units that are the last to be done.

    Args:
        build: what runs.
        sample: its inputs; by default the random ones of seed 0.
        sizes: other shapes of the platform's caches, by name, that can be retimed: sizes in bytes,
            or such as `{"line": 16, "ways": 4}`.

    Raises:
        UsageError: there is no such cache, or it reads in advance.
        DeviceError: the path of the program depends on time in another way.
        CovpError: with one line, whatever else goes wrong.
    """
    return record_with_result(build, sample, sizes)[0]


def record_with_result(
    build: Build, sample: Sample | None = None, sizes: Mapping[str, Sequence[Shape]] | None = None
) -> tuple[RunTrace, Evaluation]:
    """Record a run of ``build`` on ``sample`` with cache ``sizes``; return its evaluation too."""
    sample = sample or Sample.random(build.graph)
    layers = len(build.program.layers)
    caches = _caches(build.platform, sizes or {})
    result, jobs, plain = _record(build, sample, caches, lambda cycles: cycles)
    parts = [plain]
    if plain.sleeps:
        # each on a device of its own: code is counted as when it is met for the first time
        parts = [_record(build, sample, caches, pace)[2] for pace in (_at_once, _last_of_all)]
    tables = [part.tables(build, layers) for part in parts]
    code, segments, operands = concatenate([(t.code, t.segments, t.operands) for t in tables])
    starts = [0, *(len(t.segments.instructions) for t in tables)]
    walks = [[cut.after(start) for cut in t.cuts] for t, start in zip(tables, starts, strict=False)]
    path = path_of(walks[0]) if len(walks) == 1 else merge(*walks)
    names = {a.name: a.backend for a in result.program.accelerators}
    energy = result.energy if isinstance(result.energy, Energy) else None
    of_units = [part.joules for part in energy.parts if part.unit != "cycle"] if energy else []
    found = RunTrace(
        platform=build.platform,
        code=code,
        segments=segments,
        operands=operands,
        path=path,
        places=Places.of(build),
        caches=caches,
        units={name: UnitTrace(names[name], tuple(own)) for name, own in jobs.items()},
        in_core={name: backend for name, backend in names.items() if name not in jobs},
        profile=result.profile,
        joules_of_units=sum(of_units) if energy else None,
        layers=tuple(layer.name for layer in result.program.layers),
    )
    _demand_same(found)
    return found, result


def _caches(platform: Platform, shapes: Mapping[str, Sequence[Shape]]) -> tuple[GhostCache, ...]:
    """Return the caches whose misses are counted: the platform's own ones, and ``shapes``."""
    own = {cache.name: shape_of(cache) for cache in platform.caches if not cache.prefetch}
    wanted = {name: [shape] for name, shape in own.items()}
    for name, others in shapes.items():
        if name not in own:
            raise UsageError(
                f"sizes of {name}: {platform.name} has no recordable cache of that name:",
                hint=near_misses(name, own),
            )
        for each in others:
            values = {"size": each} if isinstance(each, int) else dict(each)
            named = {f"{PLATFORM}.{name}.{key}": value for key, value in values.items()}
            changed, _ = vary_design(platform, [], named)
            wanted[name] += [shape_of(cache) for cache in changed.caches if cache.name == name]
    return tuple(shape for each in wanted.values() for shape in sorted({*each}))


def _at_once(cycles: int) -> int:
    return 0


def _last_of_all(cycles: int) -> int:
    return cycles + _FOREVER


@dataclass(frozen=True)
class _Run:
    """One inference as the device kept it."""

    trace: Trace
    segments: Segments
    units: tuple[JobUnit, ...]
    in_core: Mapping[str, AcceleratorBackend]
    caches: tuple[GhostCache, ...]

    @property
    def sleeps(self) -> bool:
        """True if the core slept, or checked whether to sleep."""
        return any(event.kind in (LOOKED, SLEPT) for event in self.segments.events)

    def tables(self, build: Build, layers: int) -> _Tables:
        """Return the tables of the run, for a ``build`` with ``layers`` layers."""
        code = _code_table(self.trace, self.segments.memories)
        operands = self.trace.operands
        distinct, table = _segment_table(self.segments)
        times = CoreTimes(code, table, operands, self.caches, self.in_core)
        _set_constant(table, self.segments, distinct, times.of_caches(build.platform))
        cuts = _cuts_of(self.segments, distinct, self.units, layers)
        return _Tables(code, table, operands, list(cuts))


@dataclass(frozen=True)
class _Tables:
    """A run as tables; the cuts name their segments."""

    code: CodeTable
    segments: SegmentTable
    operands: tuple[OperandRuns, ...]
    cuts: list[Cut]


def _record(
    build: Build, sample: Sample, caches: tuple[GhostCache, ...], pace: Callable[[int], int]
) -> tuple[Evaluation, dict[str, list[JobRecord]], _Run]:
    """Run once, with jobs that take what ``pace`` says."""
    with Runner(build) as runner:
        code = runner.session.device.abilities.code
        if code is None:
            raise UsageError("this device keeps no trace: record on --device virtual")
        log = code.keep_segments(pace, caches)
        result = runner.run(sample)
        log.end()
        trace = code.trace()
        segments = log.segments(trace)
        units = _units(runner, result)
    names = {a.name: a.backend for a in result.program.accelerators}
    in_core = {name: backend for name, backend in names.items() if name not in units}
    jobs = {name: list(unit.jobs) for name, unit in units.items()}
    return result, jobs, _Run(trace, segments, tuple(units.values()), in_core, caches)


def _units(runner: Runner, result: Evaluation) -> dict[str, JobUnit]:
    hardware = runner.session.device.abilities.hardware
    present = hardware.peripherals if hardware is not None else {}
    named = {a.name: present[a.name][1] for a in result.program.accelerators if a.name in present}
    return {name: unit for name, unit in named.items() if isinstance(unit, JobUnit)}


def _demand_same(trace: RunTrace) -> None:
    """Raise DeviceError if the trace with the run's own parameters is not the run."""
    one = np.zeros(1, np.int32)
    units = [
        UnitRows(np.array([[job.timing.cycles for job in unit.jobs]], np.int64), one)
        for unit in trace.units.values()
    ]
    times = CoreTimes.of(trace)
    cycles = (times.cycles(trace.platform) + times.of_caches(trace.platform))[None]
    found = walk(trace.path, cycles, trace.segments.instructions, one, units, None)
    if int(found.cycles[0]) != trace.cycles:
        raise DeviceError(
            f"the trace has {int(found.cycles[0]):,} cycles, its run had {trace.cycles:,}: "
            "something other than jobs takes time in it; it cannot be retimed, run it"
        )


# -- tables of what the device kept ---------------------------------------------------------


def _code_table(trace: Trace, memories: Sequence[bytes]) -> CodeTable:
    """Return the code of a run.

    Args:
        trace: of the device.
        memories: see `Segments.memories`.
    """
    blocks = trace.blocks
    sizes = [block.instructions for block in blocks]
    before = np.full((len(blocks), ENTRIES - 1, DEPTH), NONE, np.int32)
    for number, block in enumerate(blocks):
        for entry, way in enumerate(block.before):
            places = past(blocks, way, block.address)
            before[number, entry, : len(places)] = places
    return CodeTable(
        items=np.frombuffer(b"".join(block.packed for block in blocks), ITEM),
        memories=np.frombuffer(b"".join(memories), np.uint8).reshape(-1, 2),
        first=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        address=np.array([block.address for block in blocks], np.int64),
        ends=np.array([block.ends for block in blocks], np.int64),
        before=before,
    )


def _segment_table(segments: Segments) -> tuple[list[int], SegmentTable]:
    """Return for each cut the distinct segment that it ends, and the table of distinct segments.

    Args:
        segments: of the device.
    """
    cuts, known = segments.cuts, dict[bytes, int]()
    distinct: list[int] = []
    examples: list[int] = []
    deltas, misses = _deltas(segments), _misses(segments)
    for number in range(len(cuts)):
        runs, operands = _slices(segments, number)
        parts = (runs, operands, deltas[number], misses[number])
        key = b"".join(part.tobytes() for part in parts)
        if key not in known:
            known[key] = len(examples)
            examples.append(number)
        distinct.append(known[key])
    rows = [_slices(segments, number) for number in examples]
    return distinct, SegmentTable(
        runs=np.concatenate([runs for runs, _ in rows]),
        first_run=np.concatenate(([0], np.cumsum([len(runs) for runs, _ in rows]))),
        operands=np.concatenate([operands for _, operands in rows]),
        first_operand=np.concatenate(([0], np.cumsum([len(operands) for _, operands in rows]))),
        instructions=deltas[examples, 0],
        misses=misses[examples],
        constant=np.zeros(len(examples), np.int64),
    )


def _deltas(segments: Segments) -> NDArray[np.int64]:
    """Return instructions, exceptions and cache cycles of each cut."""
    cuts = segments.cuts
    totals = np.column_stack(
        [
            *(cuts[name].astype(np.int64) for name in ("instructions", "exceptions")),
            cuts["memory_cycles"].astype(np.int64),
        ]
    )
    return np.diff(totals, axis=0, prepend=np.zeros((1, totals.shape[1]), np.int64))


def _misses(segments: Segments) -> NDArray[np.int64]:
    """Return the cache misses of each cut."""
    total = segments.misses
    return np.diff(total, axis=0, prepend=np.zeros((1, *total.shape[1:]), np.int64))


def _slices(segments: Segments, number: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the runs and operands of one cut."""
    cuts = segments.cuts
    runs, operands = (int(cuts[name][number]) for name in ("runs", "operands"))
    before = cuts[number - 1] if number else None
    first = (0, 0) if before is None else (int(before["runs"]), int(before["operands"]))
    return segments.runs[first[0] : runs], segments.operands[first[1] : operands]


def _set_constant(
    table: SegmentTable,
    segments: Segments,
    distinct: Sequence[int],
    of_caches: NDArray[np.int64],
) -> None:
    """Set the cycles of exceptions and caches.

    Args:
        table: of `_segment_table`; its constants are set.
        segments, distinct: as there.
        of_caches: cycles of each distinct segment that follow from the platform.
    """
    deltas = _deltas(segments)
    for number, segment in enumerate(distinct):
        table.constant[segment] = deltas[number, 1] + deltas[number, 2] - of_caches[segment]


def _cuts_of(
    segments: Segments, distinct: Sequence[int], units: Sequence[JobUnit], layers: int
) -> Iterator[Cut]:
    """Yield the cuts that end a segment of the inference.

    Args:
        segments, distinct: as of `_segment_table`.
        units: of the program, by number.
        layers: of the program.

    Raises:
        DeviceError: another unit was used.
    """
    numbers = {id(unit): number for number, unit in enumerate(units)}
    events = iter(segments.events)
    instructions = _deltas(segments)[:, 0].tolist()
    for number, (kind, phase) in enumerate(segments.cuts[["kind", "phase"]].tolist()):
        event = CutEvent(PHASE) if kind == PHASE else next(events)
        if phase < BETWEEN:
            continue
        layer = phase - FIRST_LAYER if phase >= FIRST_LAYER else layers
        unit = numbers.get(id(event.unit), NONE)
        if event.unit is not None and unit == NONE:
            raise DeviceError("a unit outside the program was used: it cannot be retimed")
        yield Cut(kind, distinct[number], layer, unit, event.is_over, instructions[number])
