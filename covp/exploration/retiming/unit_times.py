"""The time of recorded jobs under other parameters of their units, for many designs at once."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.backend import AcceleratorBackend
from covp.errors import AcceleratorError
from covp.exploration.retiming.run_trace import UnitTrace
from covp.hardware.job_unit import JobRecord, JobUnit

_PROBES = 3


def job_cycles(unit: UnitTrace, values: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
    """Return the cycles of a unit's jobs: (designs, jobs).

    The unit's own formula is called once for each job with arrays of parameters where it can take
    them; its results are compared with those of single numbers for some designs. Else it is called
    for each design.

    Args:
        unit: whose jobs.
        values: parameters by name, all of one length; at least one.

    Raises:
        AcceleratorError: the model cannot time a job again.
        UsageError: a value that its parameter does not allow.
    """
    count = len(next(iter(values.values())))
    backends = _Designs(unit.backend, values)
    distinct, place = _distinct(unit.jobs)
    try:
        found = _cycles(backends.all_at_once(), distinct, count)
        for design in np.linspace(0, count - 1, min(_PROBES, count)).astype(int).tolist():
            if not np.array_equal(found[design], _cycles(backends.one(design), distinct, 1)[0]):
                raise ValueError(design)
    except (TypeError, ValueError):
        each = [_cycles(backends.one(design), distinct, 1) for design in range(count)]
        found = np.concatenate(each)
    return found[:, place]


class _Designs:
    """A backend with the parameters of each design; `all_at_once` with arrays of them."""

    def __init__(self, backend: AcceleratorBackend, values: Mapping[str, NDArray[Any]]) -> None:
        self._backend, self._values = backend, values
        for name, column in values.items():
            for value in np.unique(column).tolist():
                type(backend)({**backend.values, name: value})  # checks it

    def one(self, design: int) -> JobUnit:
        own = {name: column[design].item() for name, column in self._values.items()}
        return self._unit(type(self._backend)({**self._backend.values, **own}))

    def all_at_once(self) -> JobUnit:
        backend = copy.copy(self._backend)
        values: dict[str, Any] = {**self._backend.values, **self._values}
        backend.values = values
        return self._unit(backend)

    def _unit(self, backend: AcceleratorBackend) -> JobUnit:
        backend.name = self._backend.name
        unit = backend.make_peripheral()
        assert isinstance(unit, JobUnit)
        return unit


def _cycles(unit: JobUnit, jobs: Sequence[JobRecord], count: int) -> NDArray[np.int64]:
    """Return the cycles (designs, jobs) of a unit whose parameters may be arrays."""
    found = np.zeros((count, len(jobs)), np.int64)
    for place, job in enumerate(jobs):
        timing = unit.retime(job)
        if timing is None:
            raise AcceleratorError(
                f"{unit.name}: its model cannot time a job again; override `retime` in it"
            )
        found[:, place] = timing.cycles
    return found


def _distinct(jobs: Sequence[JobRecord]) -> tuple[list[JobRecord], list[int]]:
    """Return jobs that differ, and for each job which of them it is like."""
    known: dict[Any, int] = {}
    distinct: list[JobRecord] = []
    places = []
    for job in jobs:
        key = (tuple(sorted(job.numbers.items())), job.traffic, job.macs, job.timing)
        if key not in known:
            known[key] = len(distinct)
            distinct.append(job)
        places.append(known[key])
    return distinct, places
