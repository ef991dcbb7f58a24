"""Fronts against their definition, point against point."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from covp.base.pareto import front


def by_definition(costs: NDArray[np.float64]) -> list[bool]:
    """O(n^2): nothing dominates it, and no earlier point equals it."""
    found = []
    given = [not np.isnan(one).all() for one in costs]
    costs = np.where(np.isnan(costs), np.inf, costs)
    for i, one in enumerate(costs):
        dominated = any((other <= one).all() and (other < one).any() for other in costs)
        equal = any((other == one).all() for other in costs[:i])
        found.append(given[i] and not (dominated or equal))
    return found


@given(st.integers(1, 5), st.integers(0, 60), st.integers(0, 2**32 - 1))
def test_definition(objectives: int, points: int, seed: int) -> None:
    """Few values, so that many points are equal in one or all objectives; some have none."""
    random = np.random.default_rng(seed)
    costs = random.integers(0, 6, (points, objectives)).astype(np.float64)
    costs[random.random(costs.shape) < 0.03] = np.nan
    assert front(costs).tolist() == by_definition(costs)


def test_many_points() -> None:
    costs = np.random.default_rng(1).random((2000, 3))
    nowhere_worse = np.all(costs[None] <= costs[:, None], axis=2)
    somewhere_better = np.any(costs[None] < costs[:, None], axis=2)
    assert np.array_equal(front(costs), ~np.any(nowhere_worse & somewhere_better, axis=1))
