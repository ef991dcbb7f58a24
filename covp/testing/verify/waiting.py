"""`check_waiting_times`: whether a driver waits for the end of a job, long or short."""

from __future__ import annotations

from collections.abc import Iterator

from covp.errors import CapacityError, CovpError
from covp.testing import Case
from covp.testing.verify.bench import Conditions, LayerOutcome
from covp.testing.verify.check import run_once
from covp.testing.verify.driver_bench import DriverBench

_EACH = 48
"""Jobs of each time up to this are tried: an end may meet any instruction of the driver."""
_LONGEST = 10**9
_FEW = 20_000
"""Cycles of a driver that a longer job does not make longer: it sleeps, or fixed delays."""


def check_waiting_times(bench: DriverBench, case: Case) -> tuple[int, str] | None:
    """Run a layer with jobs of all times, in one call and, where there are such, in two.

    Args:
        bench: with a unit on the bus.
        case: a small layer that the accelerator accepts.

    Returns:
        The cycles of its jobs and what was wrong, for the first time that it was; None: nothing.
    """
    bench.begin()
    for cycles in _short():
        for halves in (False, True) if cycles < _EACH // 4 else (False,):
            wrong = _failure(bench, case, cycles, halves=halves)
            if isinstance(wrong, str):
                return cycles, wrong
    for halves in (False, True):
        usual = _failure(bench, case, 1, halves=halves)
        if isinstance(usual, LayerOutcome):
            # longer than all that the driver may do instead of waiting, with no help by `skips`
            cycles = max(2000, 4 * usual.spent)
            wrong = _failure(bench, case, cycles, skips=False, halves=halves)
            if isinstance(wrong, str):
                return cycles, wrong
    spent, cycles = 0, 1000
    while cycles < _LONGEST:
        outcome = _failure(bench, case, cycles)
        if isinstance(outcome, str):
            return cycles, outcome
        if outcome is not None:
            if spent and outcome.spent > 2 * spent and outcome.spent > _FEW:
                return None  # it polls for as long as the unit takes, which would take as long here
            spent = outcome.spent
        cycles *= 10
    return None


def _short() -> Iterator[int]:
    yield from range(1, _EACH)
    cycles = _EACH
    while cycles < 700:
        yield cycles
        cycles += cycles // 9


def _failure(
    bench: DriverBench, case: Case, cycles: int, skips: bool = True, halves: bool = False
) -> LayerOutcome | str | None:
    """Run and say what was wrong, or return the outcome; None where it does not fit."""
    try:
        conditions = Conditions(case.gap, cycles=cycles, skips=skips, halves=halves)
        return run_once(bench, case, conditions)
    except CapacityError:
        return None
    except CovpError as error:
        return str(error)
