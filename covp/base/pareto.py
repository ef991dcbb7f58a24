"""`front`: the points that no other point is better than in every objective.

A point dominates another one when it is nowhere worse and somewhere better (Pareto). Of points that
are equal in all objectives the first is on the front, so that the same rows give the same front.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def front(costs: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which points are not dominated.

    Args:
        costs: (points, objectives), less is better. A NaN, a figure that is not known, counts as
            the worst one, so that it neither excludes the point nor helps it; a point that has no
            figure at all is on no front.

    Returns:
        (points,); of equal points only the first.
    """
    found = np.zeros(len(costs), bool)
    if not costs.shape[1]:
        return found
    known = np.flatnonzero(~np.isnan(costs).all(axis=1))
    costs = np.where(np.isnan(costs), np.inf, costs)
    # a later point in this order dominates no earlier one; np.lexsort is stable
    order = known[np.lexsort(costs[known].T[::-1])]
    best = _two(costs[order]) if costs.shape[1] <= 2 else _many(costs[order])
    found[order[best]] = True
    return found


def _two(ordered: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return the front of two objectives: in the order of the first, each new least last one."""
    last = ordered[:, -1]
    better = last < np.minimum.accumulate(np.concatenate([[np.inf], last]))[:-1]
    better[:1] = True  # infinite too
    return np.asarray(better)


def _many(ordered: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which points no earlier one weakly dominates, for points in lexicographic order."""
    kept = np.empty_like(ordered)
    found = np.zeros(len(ordered), bool)
    count = 0
    for index, point in enumerate(ordered):
        if not (kept[:count] <= point).all(axis=1).any():
            kept[count] = point
            count += 1
            found[index] = True
    return found
