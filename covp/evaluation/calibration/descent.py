"""Coordinate descent: the numbers of a model, one after the other, until none gets better.

The cycles of a program depend on most numbers linearly, and the loss has no squares, so that a
program that no model fits does not spoil the others: the best value of one number is a weighted
median, found in a step or two.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from covp.device.timing.model import TimingFile
from covp.evaluation.calibration.costs import Array, Costs, Timed
from covp.evaluation.calibration.knobs import Knob

LEAST_GAIN = 1e-6
"""Least gain of loss for which a number is changed."""
_WIDE = 1000.0


def descend(costs: Costs, start: Timed, knobs: Sequence[Knob]) -> Timed:
    """Return the model whose numbers cannot be improved one by one.

    Args:
        costs: the programs.
        start: a model, timed by them.
        knobs: the numbers that may change.
    """
    now, improved = start, True
    while improved:
        improved = False
        for knob in knobs:
            better = _improve(costs, now, knob)
            improved |= better is not now
            now = better
        for first, second in [] if improved else _pairs(knobs):
            better = _trade(costs, now, first, second)
            improved |= better is not now
            now = better
    return now


def _pairs(knobs: Sequence[Knob]) -> list[tuple[Knob, Knob]]:
    """Return numbers of one class: a cycle of one of them may stand for a cycle of the other."""
    return [
        (first, second)
        for first, second in itertools.permutations(knobs, 2)
        if first.name and first.name == second.name
    ]


def _trade(costs: Costs, now: Timed, first: Knob, second: Knob) -> Timed:
    """Return the model with one more of the first and one less of the second, if better."""
    more, less = first.get(now.model) + 1, second.get(now.model) - 1
    if more > first.most or less < second.least:
        return now
    model = second.put(first.put(now.model, more), less)
    found = costs.change(now, model, frozenset({first.name}))
    return found if found.loss < now.loss - LEAST_GAIN else now


def revert_needless(costs: Costs, start: TimingFile, found: Timed, knobs: Sequence[Knob]) -> Timed:
    """Return a model with the numbers of the start wherever others make nothing better.

    Args:
        costs: the programs.
        start: the model that the search began with.
        found: the one that it ended with.
        knobs: numbers that it may have changed.
    """
    now = found
    for knob in knobs:
        if knob.get(now.model) != knob.get(start):
            other = costs.change(now, knob.put(now.model, knob.get(start)), knob.classes)
            now = other if other.loss <= now.loss + LEAST_GAIN else now
    return now


def _improve(costs: Costs, now: Timed, knob: Knob) -> Timed:
    """Return the model with the best value of one number; the same where it has that."""
    value = knob.get(now.model)
    best, seen = now, {value: now}
    for step in (1, -1):
        neighbour = _try(costs, now, knob, value + step, seen)
        if neighbour is None:
            continue
        change = step * _best_change(costs, now, neighbour.cycles - now.cycles)
        for wanted in (value + int(np.floor(change)), value + int(np.ceil(change))):
            _try(costs, now, knob, wanted, seen)
        least = min(seen.values(), key=lambda timed: timed.loss)
        if least.loss < best.loss - LEAST_GAIN:
            best = least
    return best


def _try(costs: Costs, now: Timed, knob: Knob, value: int, seen: dict[int, Timed]) -> Timed | None:
    """Return the model with a value of one number; None where it may not be."""
    if not knob.least <= value <= knob.most:
        return None
    if value not in seen:
        seen[value] = costs.change(now, knob.put(now.model, value), knob.classes)
    return seen[value]


def _best_change(costs: Costs, now: Timed, slope: Array) -> float:
    """Return how many steps with that slope lead to the least loss: a weighted median."""
    moved = np.flatnonzero(slope)
    if not moved.size:
        return 0.0
    steps = (costs.measured - now.cycles)[moved] / slope[moved]
    weights = (costs.weights * np.abs(slope))[moved]
    order = np.argsort(steps)
    half = np.searchsorted(np.cumsum(weights[order]), weights.sum() / 2)
    return float(np.clip(steps[order][min(half, len(order) - 1)], -_WIDE, _WIDE))
