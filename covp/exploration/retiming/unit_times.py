"""`UnitDesigns`: how long a unit takes with the parameters of many designs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.backend import AcceleratorBackend
from covp.errors import AcceleratorError
from covp.graph.pattern import Match
from covp.hardware.job_unit import JobRecord, JobUnit

_PROBES = 3
Column = NDArray[Any]


def distinct_designs(
    columns: Sequence[Column], count: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return one design per combination of values, and each design's combination.

    Args:
        columns: values of one parameter each, one for each design.
        count: the number of designs.
    """
    code = np.zeros(count, np.int64)
    for column in columns:
        values, place = np.unique(column, return_inverse=True)
        _, code = np.unique(code * len(values) + place.reshape(-1), return_inverse=True)
        code = code.reshape(-1)
    _, first = np.unique(code, return_index=True)
    return first, code.astype(np.int32)


class UnitDesigns:
    """A unit with the parameters of many designs; those that are alike are timed once.

    Its own formula is called with arrays of parameters where it can take them; the results are
    compared with those of single numbers for some designs. Else it is called for each design.

    Args:
        backend: with the parameters of the recorded run.
        columns: parameters of the unit by name, one value for each design; at least one.
        count: the number of designs.

    Attributes:
        rows: of each design its row in the results.

    Raises:
        UsageError: a value that its parameter does not allow.
    """

    def __init__(
        self, backend: AcceleratorBackend, columns: Mapping[str, Column], count: int
    ) -> None:
        first, self.rows = distinct_designs(list(columns.values()), count)
        self._backend, self._count = backend, len(first)
        self._values = {name: column[first] for name, column in columns.items()}
        for name, column in self._values.items():
            for value in np.unique(column).tolist():
                type(backend)({**backend.values, name: value})  # checks it

    def job_cycles(self, jobs: Sequence[JobRecord]) -> NDArray[np.int64]:
        """Return the cycles of jobs: (rows, jobs).

        Raises:
            AcceleratorError: the model cannot time a job again.
        """
        distinct, place = _distinct(jobs)

        def cycles(backend: AcceleratorBackend, count: int) -> NDArray[np.int64]:
            return _cycles(_unit(backend, self._backend.name), distinct, count)

        return self._of_rows(cycles)[:, place]

    def estimates(self, match: Match) -> NDArray[np.int64]:
        """Return what the unit estimates for a match that it accepts: an entry for each row.

        Raises:
            AcceleratorError: with some parameters it does not say.
        """

        def cycles(backend: AcceleratorBackend, count: int) -> NDArray[np.int64]:
            found = backend.estimate(match)
            if found is None:
                name = self._backend.name
                raise AcceleratorError(
                    f"{name}: it estimates {match.op.name} for some designs only"
                )
            return np.broadcast_to(np.asarray(found, np.int64), (count,))

        return self._of_rows(cycles)

    def _of_rows(
        self, cycles: Callable[[AcceleratorBackend, int], NDArray[np.int64]]
    ) -> NDArray[np.int64]:
        """Return the cycles of each row; ``cycles``: of a backend with arrays of so many values."""
        count = self._count
        try:
            found = cycles(self._all_at_once(), count)
            for row in np.linspace(0, count - 1, min(_PROBES, count)).astype(int).tolist():
                if not np.array_equal(found[row], cycles(self._one(row), 1)[0]):
                    raise ValueError(row)
        except (TypeError, ValueError):
            found = np.concatenate([cycles(self._one(row), 1) for row in range(count)])
        return found

    def _one(self, row: int) -> AcceleratorBackend:
        own = {name: column[row].item() for name, column in self._values.items()}
        return type(self._backend)({**self._backend.values, **own})

    def _all_at_once(self) -> AcceleratorBackend:
        backend = copy.copy(self._backend)
        values: dict[str, Any] = {**self._backend.values, **self._values}
        backend.values = values
        return backend


def _unit(backend: AcceleratorBackend, name: str) -> JobUnit:
    backend.name = name
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
