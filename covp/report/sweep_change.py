"""`SweepChange`: two sweeps of the same designs, as of two commits: what is better or worse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from covp.report import designs
from covp.report.objectives import OBJECTIVES, Objective, Row, values
from covp.report.table import Cell, Column, Table, Value


@dataclass(frozen=True)
class SweepChange:
    """The points of two sweeps, matched by what they are, without regard to versions.

    Attributes:
        both: each point in both, before and after, in the order of the second sweep.
        only_before, only_after: those that the other sweep does not have.
    """

    both: tuple[tuple[Row, Row], ...]
    only_before: tuple[Row, ...]
    only_after: tuple[Row, ...]

    @property
    def differences(self) -> list[tuple[Row, Row]]:
        """The pairs of which any objective or the status is another one."""
        return [
            pair
            for pair in self.both
            if any(pair[0].get(n) != pair[1].get(n) for n in ("status", *OBJECTIVES))
        ]


def change(before: Sequence[Row], after: Sequence[Row]) -> SweepChange:
    """Match the points of two sweeps."""
    old = {designs.identity(row): row for row in before}
    new = {designs.identity(row): row for row in after}
    return SweepChange(
        tuple((old[what], row) for what, row in new.items() if what in old),
        tuple(row for what, row in old.items() if what not in new),
        tuple(row for what, row in new.items() if what not in old),
    )


def summary(changed: SweepChange, objectives: Sequence[Objective]) -> Table:
    """Return how many points are better, worse and the same, by model and objective."""
    shown: list[list[Value | Cell]] = []
    for model in dict.fromkeys(str(new["model"]) for _, new in changed.both):
        pairs = [pair for pair in changed.both if pair[1]["model"] == model]
        for one in objectives:
            old, new = (values([pair[i] for pair in pairs], one.name) for i in (0, 1))
            known = ~np.isnan(old) & ~np.isnan(new)
            gain = (new - old)[known] * (1 if one.most else -1)
            ratios = _ratios(old[known], new[known])
            shown.append(
                [
                    model,
                    one.title,
                    int((gain > 0).sum()),
                    int((gain < 0).sum()),
                    int((gain == 0).sum()),
                    _percent(_mean(ratios)),
                    _percent(min(ratios, default=None)),
                    _percent(max(ratios, default=None)),
                ]
            )
    titles = ("Geometric mean", "Least", "Greatest")
    columns = [
        *(Column("Model"), Column("Objective")),
        *(Column(title, "points", ",d") for title in ("Better", "Worse", "Same")),
        *(Column(title, "after by before", "+.2%") for title in titles),
    ]
    return Table("What changed", columns, shown)


def listing(changed: SweepChange, objectives: Sequence[Objective], most: int = 500) -> Table:
    """Return the pairs that differ, those that changed most first."""
    rows: list[tuple[float, list[Value | Cell]]] = []
    for old, new in changed.differences:
        cells: list[Value | Cell] = [str(new["model"]), designs.text(new), _status(old, new)]
        far = math.inf if old["status"] != new["status"] else 0.0
        for one in objectives:
            ratio = _ratios(values([old], one.name), values([new], one.name))
            far = max(far, *(abs(math.log(r)) for r in ratio), 0.0)
            cells.append(_percent(ratio[0] if ratio else None))
        rows.append((far, cells))
    rows.sort(key=lambda one: -one[0])
    columns = [
        *(Column("Model"), Column("Design"), Column("Status")),
        *(Column(one.title, "change", "+.2%") for one in objectives),
    ]
    caption = f"The first {most} of {len(rows):,}." if len(rows) > most else ""
    return Table(
        "Points that differ", columns, [cells for _, cells in rows[:most]], caption=caption
    )


def _status(old: Row, new: Row) -> str:
    same = old["status"] == new["status"]
    return str(new["status"]) if same else f"{old['status']} → {new['status']}"


def _ratios(old: np.ndarray, new: np.ndarray) -> list[float]:
    good = (old > 0) & (new > 0)
    return [float(one) for one in new[good] / old[good]]


def _mean(ratios: Sequence[float]) -> float | None:
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


def _percent(ratio: float | None) -> Value:
    return None if ratio is None else ratio - 1
