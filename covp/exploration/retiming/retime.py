"""`retime`: the cycles of a recorded run on other designs, any number of them at once."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from covp.accelerator.backend import AcceleratorBackend
from covp.errors import UsageError, near_misses
from covp.evaluation.varied import PLATFORM, SHAPE, vary_design
from covp.exploration.retiming.core_times import CoreTimes, demand_like
from covp.exploration.retiming.run_trace import RunTrace, UnitTrace
from covp.exploration.retiming.scan import UnitRows, Walked, walk
from covp.exploration.retiming.unit_times import UnitDesigns, distinct_designs

Column = NDArray[Any]
_CLOCK = f"{PLATFORM}.clock_hz"
_SAME_PLACES = "layers are where they were in the recorded run, and could be faster elsewhere"


@dataclass(frozen=True, eq=False)
class Retimed:
    """Figures of N designs, each array with an entry for each.

    Attributes:
        values: the parameters, by name.
        cycles: of the inference; equal to those of a run with these parameters.
        instructions: retired.
        waiting: cycles in which the core waited for units, or slept.
        clock_hz: of the core.
        unit_busy: of each accelerator the cycles of its jobs.
        energy_j: joules, an estimate; None where the platform's or a unit's energy is not known.
        is_exact: whether a run of this design takes these cycles.
        assumes: what makes some differ from a run; empty: all are exact.
        layer_cycles: (N, layers + 1): of each layer, and of what lies between; None where they are
            not wanted.
    """

    values: Mapping[str, Column]
    cycles: NDArray[np.int64]
    instructions: NDArray[np.int64]
    waiting: NDArray[np.int64]
    clock_hz: NDArray[np.int64]
    unit_busy: Mapping[str, NDArray[np.int64]]
    energy_j: NDArray[np.float64] | None
    is_exact: NDArray[np.bool_]
    assumes: str = ""
    layer_cycles: NDArray[np.int64] | None = None

    @property
    def seconds(self) -> NDArray[np.float64]:
        """Duration of the inference in seconds, by design."""
        return self.cycles / self.clock_hz


def retime(trace: RunTrace, values: Mapping[str, ArrayLike], *, layers: bool = False) -> Retimed:
    """Return the cycles of a recorded run with other parameters.

    Layers keep their places. `Retimed.is_exact` is False where a build with the parameters of a
    design would place some elsewhere.

    Args:
        trace: by `record`.
        values: parameters by name, see `covp.evaluation.varied`; one of `RunTrace.retimable`. A
            number or text, or one for each design; several have the same length.
        layers: whether the cycles of each layer are wanted.

    Raises:
        UsageError: a parameter needs another run, values differ in length, or one is not allowed.
        PlatformError: the platform does not allow a value.
    """
    columns = _columns(trace, values)
    count = max((len(column) for column in columns.values()), default=1)
    core_rows, segments = _cores(trace, columns, count)
    designs = _unit_designs(trace, columns, count)
    units = [_unit_rows(unit, designs.get(name), count) for name, unit in trace.units.items()]
    moved, assumes = trace.places.moved(designs, count), _assumption(trace, columns)
    is_exact = ~moved if not assumes else np.zeros(count, bool)
    if moved.any():
        assumes = assumes or _SAME_PLACES
    places = len(trace.layers) + 1
    walked = walk(
        trace.path,
        segments,
        trace.segments.instructions,
        core_rows,
        units,
        places if layers else None,
    )
    return Retimed(
        values=columns,
        cycles=walked.cycles,
        instructions=walked.instructions,
        waiting=walked.waiting,
        clock_hz=_clocks(trace, columns, count),
        unit_busy={name: walked.busy[:, n] for n, name in enumerate(trace.units)},
        energy_j=_energy(trace, walked),
        is_exact=is_exact,
        assumes=assumes,
        layer_cycles=walked.layers,
    )


def _columns(trace: RunTrace, values: Mapping[str, ArrayLike]) -> dict[str, Column]:
    known = trace.retimable
    for name in values:
        if name not in known:
            raise UsageError(
                f"{name} cannot be retimed, it needs another run:", hint=near_misses(name, known)
            )
    columns = {name: np.atleast_1d(np.asarray(value)) for name, value in values.items()}
    lengths = {len(column) for column in columns.values()} - {1}
    wrong = [name for name, column in columns.items() if column.ndim != 1 or not len(column)]
    if len(lengths) > 1 or wrong:
        shapes = ", ".join(f"{name}: {column.shape}" for name, column in columns.items())
        raise UsageError(f"values are one or the same number of them for each name, not {shapes}")
    count = max(lengths, default=1)
    return {name: np.broadcast_to(column, count) for name, column in columns.items()}


def _columns_of(columns: Mapping[str, Column], owner: str) -> dict[str, Column]:
    """Return the columns of an owner, by full name."""
    return {name: column for name, column in columns.items() if name.split(".")[0] == owner}


def _cores(
    trace: RunTrace, columns: Mapping[str, Column], count: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return each design's row in the table of segment cycles, and that table."""
    shapes = {f"{PLATFORM}.{one.name}.{part}" for one in trace.caches for part in SHAPE}
    own = _columns_of(columns, PLATFORM)
    for name in trace.in_core:
        own |= _columns_of(columns, name)
    of_caches = {name: own.pop(name) for name in shapes & own.keys()}
    if not any(region.clocks for region in trace.platform.memory):
        own.pop(_CLOCK, None)  # changes no cycle
    first, cores = distinct_designs(list(own.values()), count)
    first_shape, shaped = distinct_designs(list(of_caches.values()), count)
    pairs, rows = distinct_designs([cores, shaped], count)
    times, without = _times(trace), []
    platforms = []
    for design in first.tolist():
        values = {name: column[design].item() for name, column in own.items()}
        platform, backends = vary_design(trace.platform, list(trace.in_core.values()), values)
        demand_like(trace.platform, platform)
        platforms.append(platform)
        without.append(times.cycles(platform, _changed_in_core(trace, backends, values)))
    caches = []
    for design in first_shape.tolist():
        values = {name: column[design].item() for name, column in of_caches.items()}
        caches.append(vary_design(trace.platform, [], values)[0].caches)
    found = [
        without[core]
        + times.of_caches(msgspec.structs.replace(platforms[core], caches=caches[shape]))
        for core, shape in zip(cores[pairs].tolist(), shaped[pairs].tolist(), strict=True)
    ]
    return rows, np.array(found)


def _clocks(trace: RunTrace, columns: Mapping[str, Column], count: int) -> NDArray[np.int64]:
    """Return the clock of each design in Hz. Raises PlatformError: the platform rejects one."""
    column = columns.get(_CLOCK)
    if column is None:
        return np.full(count, trace.platform.clock_hz, np.int64)
    for value in (column.min().item(), column.max().item()):
        vary_design(trace.platform, [], {_CLOCK: value})
    return column.astype(np.int64)


def _changed_in_core(
    trace: RunTrace, backends: Sequence[AcceleratorBackend], values: Mapping[str, Any]
) -> dict[str, AcceleratorBackend] | None:
    """Return units in the core with other parameters; None where they have those of the run."""
    if not any(name.split(".")[0] in trace.in_core for name in values):
        return None
    return dict(zip(trace.in_core, backends, strict=True))


@functools.lru_cache(maxsize=8)
def _times(trace: RunTrace) -> CoreTimes:
    return CoreTimes.of(trace)


def _unit_designs(
    trace: RunTrace, columns: Mapping[str, Column], count: int
) -> dict[str, UnitDesigns]:
    """Return the accelerators that have other parameters than in the recorded run."""
    found = {}
    for name, backend in trace.places.backends.items():
        own = {key.partition(".")[2]: each for key, each in _columns_of(columns, name).items()}
        if own:
            found[name] = UnitDesigns(backend, own, count)
    return found


def _unit_rows(unit: UnitTrace, designs: UnitDesigns | None, count: int) -> UnitRows:
    if designs is None or not unit.jobs:
        as_run = np.array([[job.timing.cycles for job in unit.jobs]], np.int64)
        return UnitRows(as_run, np.zeros(count, np.int32))
    return UnitRows(designs.job_cycles(unit.jobs), designs.rows)


def _assumption(trace: RunTrace, columns: Mapping[str, Column]) -> str:
    """Return what is assumed to be as in the recorded run although parameters may change it."""
    platform = trace.platform
    inert = {_CLOCK} if not any(region.clocks for region in platform.memory) else set()
    if not any(name.split(".")[0] == PLATFORM and name not in inert for name in columns):
        return ""
    if any(cache.prefetch for cache in platform.caches):
        return "misses of caches take the cycles that they took in the recorded run"
    passed = {name for region in platform.cached_ram for name in region.caches}
    if any(cache.name in passed and cache.write == "through" for cache in platform.caches):
        return "stores that a cache passes on wait as long as in the recorded run"
    return _SAME_PLACES if trace.places.depends_on_core else ""


def _energy(trace: RunTrace, walked: Walked) -> NDArray[np.float64] | None:
    core = trace.platform.energy
    if core is None or trace.joules_of_units is None:
        return None
    awake = walked.cycles if core.sleep is None else walked.cycles - walked.asleep
    asleep = 0 if core.sleep is None else walked.asleep * core.sleep.value
    return (awake * core.run.value + asleep) * 1e-12 + trace.joules_of_units
