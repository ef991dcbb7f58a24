"""`record`: one run of a build, kept as a `RunTrace`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from covp.accelerator.backend import AcceleratorBackend
from covp.building.builder import Build
from covp.chip.platform_file import Platform, parse_size
from covp.chip.platform_file.caches import GhostCache
from covp.device.timing.segments import LOOKED, SLEPT, Segments
from covp.device.timing.trace import Trace
from covp.device.timing.ways import OperandRuns
from covp.errors import DeviceError, UsageError, near_misses
from covp.evaluation.energy import Energy
from covp.evaluation.result import Evaluation
from covp.evaluation.runner import Runner
from covp.evaluation.sample import Sample
from covp.evaluation.varied import vary_design
from covp.exploration.retiming.core_times import CoreTimes
from covp.exploration.retiming.path import Cut, merge, path_of
from covp.exploration.retiming.run_trace import (
    CodeTable,
    RunTrace,
    SegmentTable,
    UnitTrace,
    concatenate,
)
from covp.exploration.retiming.scan import UnitRows, walk
from covp.exploration.retiming.tables import code_table, cuts_of, segment_table, set_constant
from covp.hardware.job_unit import JobRecord, JobUnit

_FOREVER = 1 << 40
"""Cycles that no program takes otherwise: two hours at 120 MHz."""


def record(
    build: Build, sample: Sample | None = None, sizes: Mapping[str, Sequence[int]] | None = None
) -> RunTrace:
    """Run a build once on the virtual device and keep what can be retimed.

    Three runs where a driver waits by WFI: with the units as they are, with units that are done at
    once, and with units that are the last to be done.

    Args:
        build: what runs.
        sample: its inputs; by default the random ones of seed 0.
        sizes: other sizes in bytes of the platform's caches, by name, that can be retimed.

    Raises:
        UsageError: there is no such cache, or it reads in advance.
        DeviceError: the path of the program depends on time in another way.
        CovpError: with one line, whatever else goes wrong.
    """
    return record_with_result(build, sample, sizes)[0]


def record_with_result(
    build: Build, sample: Sample | None = None, sizes: Mapping[str, Sequence[int]] | None = None
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
        caches=caches,
        units={name: UnitTrace(names[name], tuple(own)) for name, own in jobs.items()},
        in_core={name: backend for name, backend in names.items() if name not in jobs},
        profile=result.profile,
        joules_of_units=sum(of_units) if energy else None,
        layers=tuple(layer.name for layer in result.program.layers),
    )
    _demand_same(found)
    return found, result


def _caches(platform: Platform, sizes: Mapping[str, Sequence[int]]) -> tuple[GhostCache, ...]:
    """Return the caches whose misses are counted: of the platform's own sizes and of ``sizes``."""
    known = {cache.name: parse_size(cache.size) for cache in platform.caches if not cache.prefetch}
    for name, own in sizes.items():
        if name not in known:
            raise UsageError(
                f"sizes of {name}: {platform.name} has no recordable cache of that name:",
                hint=near_misses(name, known),
            )
        for size in own:
            vary_design(platform, [], {f"platform.{name}.size": size})
    return tuple(
        GhostCache(name, size)
        for name, own in known.items()
        for size in sorted({own, *sizes.get(name, ())})
    )


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
        code = code_table(self.trace, self.segments.memories)
        operands = self.trace.operands
        distinct, table = segment_table(self.segments)
        times = CoreTimes(code, table, operands, self.caches, self.in_core)
        set_constant(table, self.segments, distinct, times.of_caches(build.platform, {}))
        cuts = cuts_of(self.segments, distinct, self.units, layers)
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
    cycles = (times.cycles(trace.platform) + times.of_caches(trace.platform, {}))[None]
    found = walk(trace.path, cycles, trace.segments.instructions, one, units, None)
    if int(found.cycles[0]) != trace.cycles:
        raise DeviceError(
            f"the trace has {int(found.cycles[0]):,} cycles, its run had {trace.cycles:,}: "
            "something other than jobs takes time in it; it cannot be retimed, run it"
        )
