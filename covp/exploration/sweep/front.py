"""`pareto_front`: the rows that no other row beats in all objectives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from covp.base.pareto import front
from covp.exploration.sweep.points import FIGURES, Row


def costs(rows: Sequence[Row], objectives: Sequence[str]) -> NDArray[np.float64]:
    """Return the costs to minimize, (rows, objectives); infinite where a figure is unknown.

    Args:
        rows: with or without figures.
        objectives: columns of `Row`.
    """
    signs = np.array([FIGURES[name].sign for name in objectives])
    given = [[getattr(row, name) for name in objectives] for row in rows]
    found = np.array(given, dtype=np.float64).reshape(len(rows), len(signs))  # None becomes NaN
    return np.where(np.isnan(found), np.inf, found * signs)


def pareto_front(rows: Sequence[Row], objectives: Sequence[str]) -> list[int]:
    """Return the numbers of the rows on the front, by model one front, in the order of the rows.

    A row is on it where no other one of its model is as good in all objectives and better in one.
    A figure that is not known counts as the worst; rows that have none are on no front.

    Args:
        rows: that are compared.
        objectives: columns of `Row`, one or more.
    """
    models = np.array([row.model for row in rows])
    all_costs = costs(rows, objectives)
    found: list[int] = []
    for model in dict.fromkeys(models.tolist()):
        mine = np.flatnonzero((models == model) & np.isfinite(all_costs).any(axis=1))
        different, which = np.unique(all_costs[mine], axis=0, return_inverse=True)
        found += mine[front(different)[which.reshape(-1)]].tolist()
    return sorted(found)
