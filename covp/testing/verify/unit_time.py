"""`fit_unit_time`: a unit's formula of time, fitted to the cycles of its RTL.

A job's cycles are taken for a sum of a few terms with positive factors: counts of its operands'
elements, its multiply-accumulates, its numbers, and these over one another. Terms are added one by
one, that first which leaves the least error, as long as the error falls (forward selection; Hastie,
Tibshirani, Friedman, The Elements of Statistical Learning, section 3.3).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.declared import Accelerator
from covp.accelerator.rtl.unit import ComparedJob
from covp.errors import AcceleratorError
from covp.hardware.job import Job, JobValues

MOST_TERMS = 8
_LEAST_GAIN = 0.03
"""Share of the error that a further term has to take away."""
_LEAST_JOBS = 20
_DIGITS = 4
_LANES = (2, 4, 8, 16, 32, 64)
_RESULT, _MACS = "results", "macs"
"""Names in the formula: elements of the result, multiply-accumulates."""


@dataclass(frozen=True)
class Term:
    """A term of a formula.

    Attributes:
        factor: cycles for each of what it counts.
        text: Python of what it counts, in a method of the accelerator; "1": nothing.
    """

    factor: float
    text: str


@dataclass(frozen=True)
class UnitTime:
    """A fitted formula.

    Attributes:
        terms: their sum are the cycles of the unit.
        jobs: that it was fitted to.
        left_out: that its error is stated on.
        mean, worst: sizes of its relative errors on these.
        total: its relative error in all of these together.
    """

    terms: tuple[Term, ...]
    jobs: int
    left_out: int
    mean: float
    worst: float
    total: float

    def method(self, job: Job) -> str:
        """Return `timing_check` and the method `timing` for the class with this job."""
        lines = [
            f"cycles += {term.factor:g}" + ("" if term.text == "1" else f" * {term.text}")
            for term in self.terms
        ]
        text = " ".join(lines)
        names = {
            _RESULT: f'self.job.count("{job.result.name}", job)',
            _MACS: "self.macs(job)",
        }
        given = [f"{name} = {value}" for name, value in names.items() if name in text]
        body = "\n        ".join([*given, "cycles = 0.0", *lines])
        check = f'TimingCheck("its RTL, {self.left_out} jobs", {self.worst:.3f})'
        return (
            f"    timing_check = {check}\n\n"
            "    def timing(self, job, nbytes):\n"
            f'        """Fitted to the RTL by covp calibrate: {self.mean:.1%} off in the mean, '
            f'{self.total:+.2%} in all."""\n'
            f"        {body}\n"
            "        return JobTiming(round(cycles), 0)\n"
        )


def fit_unit_time(backend: Accelerator, measured: Sequence[ComparedJob]) -> UnitTime:
    """Return the formula that fits the cycles of a unit's jobs best.

    Args:
        backend: the accelerator.
        measured: its jobs, with the cycles by the RTL.

    Raises:
        AcceleratorError: there are too few different jobs.
    """
    jobs = {tuple(sorted(job.numbers.items())): job for job in measured}
    if len(jobs) < _LEAST_JOBS:
        raise AcceleratorError(
            f"accelerator {backend.name}: {len(jobs)} different jobs are too few to fit a formula"
        )
    values = [JobValues(**job.numbers) for job in jobs.values()]
    cycles = np.array([max(1, job.rtl) for job in jobs.values()], float)
    texts, columns = zip(*_candidates(backend, values), strict=True)
    counts = np.stack(columns, axis=1) / cycles[:, None]  # errors are relative
    # every third job is left out, in the order of their sizes
    fitted = np.ones(len(cycles), bool)
    fitted[np.argsort(cycles, kind="stable")[1::3]] = False
    chosen, factors = _select(counts[fitted])
    terms = tuple(
        Term(float(f"{factor:.{_DIGITS}g}"), texts[at])
        for at, factor in zip(chosen, factors, strict=True)
    )
    found = counts[:, chosen] @ np.array([term.factor for term in terms])
    errors = found[~fitted] - 1
    return UnitTime(
        terms,
        int(fitted.sum()),
        len(errors),
        float(np.abs(errors).mean()),
        float(np.abs(errors).max()),
        float((errors * cycles[~fitted]).sum() / cycles[~fitted].sum()),
    )


def _candidates(
    backend: Accelerator, values: Sequence[JobValues]
) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Yield what cycles may be proportional to: Python and its value for each job."""

    def each(count: Callable[[JobValues], Any]) -> NDArray[np.float64]:
        return np.array([float(count(job)) for job in values])

    job = backend.job
    yield "1", np.ones(len(values))
    inputs = (*job.tables, *job.tensors)
    sizes = {f'self.job.count("{o.name}", job)': each(o.count) for o in inputs}
    results = each(job.result.count)
    shared = {_RESULT: results}
    if backend.macs(values[0]):
        shared[_MACS] = macs = each(backend.macs)
        for lanes in _LANES:  # of each result a whole number of steps
            steps = np.ceil(macs // np.maximum(results, 1) / lanes)
            yield f"{_RESULT} * -(-({_MACS} // {_RESULT}) // {lanes})", results * steps
    numbers = {
        f"job.{number.name}": each(operator.attrgetter(number.name))
        for number in job.numbers
        if number.minimum > 0
    }
    yield from {**shared, **sizes, **numbers}.items()
    for below, divisor in numbers.items():
        for text, count in shared.items():
            yield f"{text} / {below}", count / divisor
        for above, factor in numbers.items():
            if above != below:
                yield f"{_RESULT} * {above} / {below}", results * factor / divisor


def _select(counts: NDArray[np.float64]) -> tuple[list[int], NDArray[np.float64]]:
    """Return the chosen columns and their factors, whose sums are nearest to 1."""
    chosen: list[int] = []
    factors, error = np.zeros(0), 1.0
    while len(chosen) < MOST_TERMS:
        tried = []
        for column in set(range(counts.shape[1])) - set(chosen):
            columns = sorted([*chosen, column])
            solved = _solve(counts[:, columns])
            left = float(np.sqrt(np.mean((counts[:, columns] @ solved - 1) ** 2)))
            tried.append((left, columns, solved))
        best = min(tried, key=lambda one: one[0])
        if best[0] > error * (1 - _LEAST_GAIN):
            break
        error, chosen, factors = best
    kept = [at for at, factor in enumerate(factors) if factor > 0]
    return [chosen[at] for at in kept], factors[kept]


def _solve(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return factors of least squares, none below 0: the most negative ones are left out."""
    used = np.ones(counts.shape[1], bool)
    while True:
        factors = np.zeros(len(used))
        factors[used] = np.linalg.lstsq(counts[:, used], np.ones(len(counts)), rcond=None)[0]
        if not used.any() or factors.min() >= 0:
            return factors
        used[factors.argmin()] = False
