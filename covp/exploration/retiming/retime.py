"""`retime`: the cycles of a recorded run on other designs, any number of them at once."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from covp.accelerator.backend import AcceleratorBackend
from covp.chip.platform_file import parse_size
from covp.errors import UsageError, near_misses
from covp.evaluation.varied import PLATFORM, vary_design
from covp.exploration.retiming.core_times import CoreTimes, demand_like
from covp.exploration.retiming.run_trace import RunTrace
from covp.exploration.retiming.scan import UnitRows, Walked, walk
from covp.exploration.retiming.unit_times import job_cycles

Column = NDArray[Any]
_CLOCK = f"{PLATFORM}.clock_hz"


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
        assumes: what may differ from a run; empty: nothing does.
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
    assumes: str = ""
    layer_cycles: NDArray[np.int64] | None = None

    @property
    def seconds(self) -> NDArray[np.float64]:
        """Duration of the inference in seconds, by design."""
        return self.cycles / self.clock_hz


def retime(trace: RunTrace, values: Mapping[str, ArrayLike], *, layers: bool = False) -> Retimed:
    """Return the cycles of a recorded run with other parameters.

    Layers keep their places: which layer runs where was decided with the parameters of the run.

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
    units = [_unit_rows(trace, name, columns, count) for name in trace.units]
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
        assumes=_assumptions(trace, columns),
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


def _distinct(columns: Sequence[Column], count: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return one design per combination of values, and each design's combination."""
    code = np.zeros(count, np.int64)
    for column in columns:
        values, place = np.unique(column, return_inverse=True)
        _, code = np.unique(code * len(values) + place.reshape(-1), return_inverse=True)
        code = code.reshape(-1)
    _, first = np.unique(code, return_index=True)
    return first, code.astype(np.int32)


def _columns_of(columns: Mapping[str, Column], owner: str) -> dict[str, Column]:
    """Return the columns of an owner, by full name."""
    return {name: column for name, column in columns.items() if name.split(".")[0] == owner}


def _cores(
    trace: RunTrace, columns: Mapping[str, Column], count: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return each design's row in the table of segment cycles, and that table."""
    sizes = {f"{PLATFORM}.{one.name}.size" for one in trace.caches}
    own = _columns_of(columns, PLATFORM)
    for name in trace.in_core:
        own |= _columns_of(columns, name)
    of_caches = {name: own.pop(name) for name in sizes & own.keys()}
    own.pop(_CLOCK, None)  # changes no cycle
    first, cores = _distinct(list(own.values()), count)
    first_size, sized = _distinct(list(of_caches.values()), count)
    pairs, rows = _distinct([cores, sized], count)
    times, without = _times(trace), []
    platforms = []
    for design in first.tolist():
        values = {name: column[design].item() for name, column in own.items()}
        platform, backends = vary_design(trace.platform, list(trace.in_core.values()), values)
        demand_like(trace.platform, platform)
        platforms.append(platform)
        without.append(times.cycles(platform, _changed_in_core(trace, backends, values)))
    wanted = [
        {
            name.split(".")[1]: parse_size(column[design].item())
            for name, column in of_caches.items()
        }
        for design in first_size.tolist()
    ]
    found = [
        without[core] + times.of_caches(platforms[core], wanted[size])
        for core, size in zip(cores[pairs].tolist(), sized[pairs].tolist(), strict=True)
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


def _unit_rows(trace: RunTrace, name: str, columns: Mapping[str, Column], count: int) -> UnitRows:
    unit = trace.units[name]
    own = _columns_of(columns, name)
    if not own or not unit.jobs:
        as_run = np.array([[job.timing.cycles for job in unit.jobs]], np.int64)
        return UnitRows(as_run, np.zeros(count, np.int32))
    first, rows = _distinct(list(own.values()), count)
    values = {key.partition(".")[2]: column[first] for key, column in own.items()}
    return UnitRows(job_cycles(unit, values), rows)


def _assumptions(trace: RunTrace, columns: Mapping[str, Column]) -> str:
    """Return what is assumed to be as in the recorded run although parameters may change it."""
    changes = any(name.split(".")[0] == PLATFORM for name in columns)
    if not changes or not trace.platform.caches:
        return ""
    if any(cache.prefetch for cache in trace.platform.caches):
        return "misses of caches take the cycles that they took in the recorded run"
    if any(cache.has_data and cache.write == "through" for cache in trace.platform.caches):
        return "stores that a cache passes on wait as long as in the recorded run"
    return ""


def _energy(trace: RunTrace, walked: Walked) -> NDArray[np.float64] | None:
    core = trace.platform.energy
    if core is None or trace.joules_of_units is None:
        return None
    awake = walked.cycles if core.sleep is None else walked.cycles - walked.asleep
    asleep = 0 if core.sleep is None else walked.asleep * core.sleep.value
    return (awake * core.run.value + asleep) * 1e-12 + trace.joules_of_units
