"""`front`: the points that no other point is better than in every objective.

A point dominates another one when it is nowhere worse and somewhere better (Pareto). Of points that
are equal in all objectives the first is on the front, so that the same rows give the same front.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def front(costs: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which points are not dominated.

    Args:
        costs: (points, objectives), less is better. A point with a NaN is on no front.

    Returns:
        (points,); of equal points only the first.
    """
    found = np.zeros(len(costs), bool)
    complete = np.flatnonzero(~np.isnan(costs).any(axis=1))
    if not costs.shape[1]:
        return found
    # whoever comes later in this order dominates no one before; np.lexsort is stable
    order = complete[np.lexsort(costs[complete].T[::-1])]
    best = _two(costs[order]) if costs.shape[1] <= 2 else _many(costs[order])
    found[order[best]] = True
    return found


def _two(ordered: NDArray[np.float64]) -> NDArray[np.bool_]:
    """In the order of the first objective each one on the front has a new least last one."""
    last = ordered[:, -1]
    before = np.minimum.accumulate(np.concatenate([[np.inf], last]))[:-1]
    return np.asarray(last < before)


def _many(ordered: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Each point against the front so far."""
    kept = np.empty_like(ordered)
    found = np.zeros(len(ordered), bool)
    count = 0
    for index, point in enumerate(ordered):
        if not (kept[:count] <= point).all(axis=1).any():
            kept[count] = point
            count += 1
            found[index] = True
    return found
