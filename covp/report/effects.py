"""`effects`: which parameter matters most to an objective.

On a full grid the variance of an objective splits exactly (ANOVA; Sobol's indices with every value
equally likely: Saltelli et al., Global Sensitivity Analysis, 2008, chapter 4). Of points of a
search, or of a grid with holes, only an association can be said, and it is named as such.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covp.report.designs import FACTORS, factor, parameters
from covp.report.objectives import Objective, Row, values

GRID = "variance share, exact on the full grid"
RANK = "squared rank correlation (Spearman), no full grid"
BETWEEN = "variance between the values' means, no full grid"
_OWN = [name for name in FACTORS if name != "model"]


@dataclass(frozen=True)
class Effect:
    """The effect of one parameter on one objective.

    Attributes:
        group: the points it was computed from: a model, or one of its set-ups.
        objective: its name.
        parameter: its name, one of `FACTORS` or of ``vary``.
        share: of the objective's variance, 0 to 1: by this parameter alone (first order).
        total: with all interactions that it has a part in; None where there is no full grid.
        ratio: the greatest mean at one of its values by the least; None where one is not above 0.
        method: how ``share`` was computed: `GRID`, `RANK` (of numbers) or `BETWEEN` (of names).
        points: how many there were.
    """

    group: str
    objective: str
    parameter: str
    share: float
    total: float | None
    ratio: float | None
    method: str
    points: int


def effects(rows: Sequence[Row], objectives: Sequence[Objective]) -> list[Effect]:
    """Return the effects for each model, and for set-ups with parameters of their own.

    Args:
        rows: any points; those that failed are left out.
        objectives: which.

    What some of the points do not have, such as a unit's size where there is no unit, is looked at
    among those that have it.

    Returns:
        By group and objective, the greatest share first.
    """
    return [
        effect
        for group, members in _groups(rows).items()
        for objective in objectives
        for effect in _effects(group, members, objective)
    ]


def is_grid(columns: Sequence[Sequence[Hashable]]) -> bool:
    """Return whether every combination of the parameters' values is there, equally often.

    Args:
        columns: of each parameter its value at each point.
    """
    found = Counter(zip(*columns, strict=True))
    return len(found) == math.prod(len(set(c)) for c in columns) and len(set(found.values())) == 1


def variance_share(levels: Sequence[Hashable], y: NDArray[np.float64]) -> float:
    """Return the part of ``y``'s variance that lies between the means at each level (eta squared).

    Args:
        levels: (points,), any values.
        y: (points,), float64, not all equal.
    """
    sums, counts = _per_level(levels, y - y.mean())
    return float((sums**2 / counts).sum() / ((y - y.mean()) ** 2).sum())


def _groups(rows: Sequence[Row]) -> dict[str, list[Row]]:
    groups = _by(rows, "model")
    for model, members in list(groups.items()):
        setups = _by(members, "setup")
        common = set.intersection(*(set(parameters(some)) for some in setups.values()))
        for name, some in setups.items():
            if set(parameters(some)) - common:
                groups[f"{model}, {name}"] = some
    return groups


def _by(rows: Sequence[Row], name: str) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(str(factor(row, name)), []).append(row)
    return found


def _effects(group: str, rows: Sequence[Row], objective: Objective) -> list[Effect]:
    found = _effects_of_all(group, rows, objective)
    for name in parameters(rows):
        having = [row for row in rows if factor(row, name) is not None]
        if len(having) < len(rows):
            among = _effects_of_all(group, having, objective)
            found += [effect for effect in among if effect.parameter == name]
    return sorted(found, key=lambda one: (-one.share, one.parameter))


def _effects_of_all(group: str, rows: Sequence[Row], objective: Objective) -> list[Effect]:
    """Return those of the parameters that all the points have."""
    y = values(rows, objective.name)
    worked = ~np.isnan(y)
    rows, y = [row for row, good in zip(rows, worked, strict=True) if good], y[worked]
    if len(y) < 3 or not np.ptp(y):
        return []
    levels = {name: [factor(row, name) for row in rows] for name in [*_OWN, *parameters(rows)]}
    levels = {n: column for n, column in levels.items() if None not in column and _differ(column)}
    grid = is_grid(list(levels.values()))
    found = []
    for name, column in levels.items():
        share, method = _share(column, y, grid)
        others = list(zip(*(c for n, c in levels.items() if n != name), strict=True))
        total = 1 - (variance_share(others, y) if others else 0) if grid else None
        found.append(
            Effect(group, objective.name, name, share, total, _ratio(column, y), method, len(y))
        )
    return found


def _differ(column: Sequence[Hashable]) -> bool:
    return len(set(column)) > 1


def _share(column: Sequence[Hashable], y: NDArray[np.float64], grid: bool) -> tuple[float, str]:
    numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in column)
    if grid or not numbers:
        return variance_share(column, y), GRID if grid else BETWEEN
    ranks = np.corrcoef(_ranks(np.array(column, np.float64)), _ranks(y))[0, 1]
    return float(ranks**2), RANK


def _ranks(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Equal values share the mean of their ranks."""
    _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[inverse], np.float64)


def _ratio(column: Sequence[Hashable], y: NDArray[np.float64]) -> float | None:
    sums, counts = _per_level(column, y)
    means = sums / counts
    return float(means.max() / means.min()) if means.min() > 0 else None


def _per_level(
    levels: Sequence[Hashable], y: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sum and number of ``y`` at each level."""
    index = {level: i for i, level in enumerate(dict.fromkeys(levels))}
    places = np.array([index[level] for level in levels])
    sums, counts = (np.bincount(places, weights=w) for w in (y, np.ones(len(y))))
    return np.asarray(sums, np.float64), np.asarray(counts, np.float64)
