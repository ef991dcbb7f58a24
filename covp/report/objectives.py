"""`Objective`: what designs are weighed by, with its unit and which direction is better."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.base.figure import FigureDescription
from covp.exploration.sweep.points import FIGURES

Row = Mapping[str, Any]
"""One point of a sweep; its keys are those of the document ``covp.sweep/1``."""


@dataclass(frozen=True)
class Objective:
    """A figure by which designs are weighed.

    Attributes:
        name: its key in a row.
        figure: what is known of it.
    """

    name: str
    figure: FigureDescription

    @property
    def title(self) -> str:
        """The figure's, for people."""
        return self.figure.title

    @property
    def unit(self) -> str:
        """Unit of the value in the row; empty where it is a count."""
        return self.figure.unit

    @property
    def most(self) -> bool:
        """True if more is better."""
        return self.figure.better == "more"

    @property
    def label(self) -> str:
        """The title with the unit."""
        return self.figure.label

    def reverse(self) -> Objective:
        """Return the objective to be as bad as possible."""
        return Objective(self.name, replace(self.figure, better="less" if self.most else "more"))


_RANKED = sorted((one.rank, name) for name, one in FIGURES.items() if one.rank)
OBJECTIVES = {name: Objective(name, FIGURES[name]) for _, name in _RANKED}
"""All of them, by name, the usual ones first."""


def values(rows: Sequence[Row], name: str) -> NDArray[np.float64]:
    """Return a figure of each row, (rows,); NaN where a row has none or failed."""
    numbers = (_number(row.get(name)) if row.get("status") == "ok" else math.nan for row in rows)
    return np.fromiter(numbers, np.float64, len(rows))


def costs(rows: Sequence[Row], objectives: Sequence[Objective]) -> NDArray[np.float64]:
    """Less is better in every column, (rows, objectives); NaN where a row has no such figure."""
    columns = [values(rows, one.name) * (-1 if one.most else 1) for one in objectives]
    return np.stack(columns, axis=1) if columns else np.empty((len(rows), 0))


def objectives_of(rows: Sequence[Row]) -> list[Objective]:
    """Return those that differ among the rows that worked, in the order of `OBJECTIVES`.

    Where all points have one clock time says nothing beside cycles; else time is what counts.
    """
    spread = {name: values(rows, name) for name in OBJECTIVES}
    found = [
        name for name, column in spread.items() if len(np.unique(column[~np.isnan(column)])) > 1
    ]
    if "cycles" in found and "seconds" in found:
        ratio = spread["seconds"] / spread["cycles"]
        ratio = ratio[~np.isnan(ratio)]
        found.remove("seconds" if np.allclose(ratio, ratio[0], rtol=1e-6, atol=0) else "cycles")
    for name in ("instructions", "mac_coverage"):  # what they are good for is in the others
        if name in found and len(found) > 1:
            found.remove(name)
    return [OBJECTIVES[name] for name in found]


HARDLY = 0.02
"""The share of its greatest value that a figure varies by at most, to be left out of figures."""


def hardly_vary(rows: Sequence[Row], objectives: Sequence[Objective]) -> list[Objective]:
    """Return those of which the points of each model have about the same."""
    found = []
    models = {row["model"] for row in rows}
    for one in objectives:
        columns = [values([row for row in rows if row["model"] == m], one.name) for m in models]
        known = [column[~np.isnan(column)] for column in columns]
        if all(np.ptp(c) < HARDLY * abs(c).max() or not c.any() for c in known if len(c)):
            found.append(one)
    return found


def shown(value: float, unit: str) -> str:
    """Return four digits with a prefix of the SI, such as "21.75 µJ"."""
    power = min(4, max(-4, math.floor(math.log10(abs(value)) / 3 + 1e-9))) if value else 0
    prefix = {0: "", **dict(enumerate("kMGT", 1)), **{-i: p for i, p in enumerate("mµnp", 1)}}
    return f"{value / 1000**power:.4g} {prefix[power]}{unit}"


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else math.nan
