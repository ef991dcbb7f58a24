"""The fixed tables of a sweep's report: the best designs, what failed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from covp.base.pareto import front
from covp.report import designs, objectives
from covp.report.objectives import Objective, Row, costs, values
from covp.report.point_columns import certainty
from covp.report.table import Cell, Column, Table, Value


def best_designs(rows: Sequence[Row], weighed: Sequence[Objective], constraints: str = "") -> Table:
    """Return each model's best point in each objective; of equal ones the best in the next.

    Args:
        rows: those that satisfy the constraints.
        weighed: the objectives, in the order in which they decide.
        constraints: as text, for the caption.
    """
    shown: list[list[Value | Cell]] = []
    for model in dict.fromkeys(str(row["model"]) for row in rows):
        members = [row for row in rows if row["model"] == model and row["status"] == "ok"]
        best_in: dict[int, tuple[Row, list[str]]] = {}
        for one in weighed:
            row = best(members, [one, *(other for other in weighed if other != one)])
            if row is not None:
                best_in.setdefault(id(row), (row, []))[1].append(one.title)
        for row, titles in best_in.values():
            figures = [_figure(row, one) for one in weighed]
            shown.append([model, ", ".join(titles), designs.text(row), *figures, certainty(row)])
    columns = [
        Column("Model"),
        Column("Best in"),
        Column("Design"),
        *(_column(o) for o in weighed),
        Column(
            "Error of cycles", note="of the timing model, on programs that it was not fitted on"
        ),
    ]
    return Table("Best designs", columns, shown, caption=constraints)


def best(rows: Sequence[Row], weighed: Sequence[Objective]) -> Row | None:
    """Return the row that is best in the order of the objectives; None where none has the first.

    A row that lacks another objective comes after equal ones that have it.
    """
    table = costs(rows, weighed)
    known = np.flatnonzero(~np.isnan(table[:, 0]))
    return rows[int(known[np.lexsort(table[known].T[::-1])[0]])] if len(known) else None


def front_designs(rows: Sequence[Row], weighed: Sequence[Objective], most: int = 40) -> Table:
    """Return each model's points that are not dominated in all objectives together."""
    shown: list[list[Value | Cell]] = []
    sizes, unknown = [], 0
    for model in dict.fromkeys(str(row["model"]) for row in rows):
        members = [row for row in rows if row["model"] == model]
        table = costs(members, weighed)
        chosen = np.flatnonzero(front(table))
        unknown += int(np.isnan(table[chosen]).any(axis=1).sum())
        sizes.append(f"{model} {len(chosen)}")
        for index in chosen[np.lexsort(table[chosen].T[::-1])][:most]:
            row = members[index]
            shown.append(
                [model, designs.text(row), *(_figure(row, o) for o in weighed), certainty(row)]
            )
    columns = [
        Column("Model"),
        Column("Design"),
        *(_column(o, bar=True) for o in weighed),
        Column("Error of cycles"),
    ]
    names = ", ".join(one.title.lower() for one in weighed)
    caption = f"Not dominated in {names}; points on the front: {', '.join(sizes)}."
    if any(int(size.split()[-1]) > most for size in sizes):
        caption += f" The first {most} of each model are listed."
    if unknown:
        caption += f" Of {unknown:,} of them a figure is not known, which counts as the worst."
    return Table("The front in all objectives", columns, shown, caption=caption)


def failures(rows: Sequence[Row]) -> Table:
    """Return points without figures by reason and set-up: how many, and the first's parameters."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if row["status"] != "ok":
            what = (str(row["model"]), str(row["platform"]), designs.setup(row))
            groups.setdefault((str(row.get("reason")), *what), []).append(row)
    columns = [
        Column("Reason"),
        Column("Model"),
        Column("Platform"),
        Column("Accelerators"),
        Column("Points", format=",d"),
        Column("First with"),
    ]
    shown: list[list[Value | Cell]] = [
        [*names, len(members), designs.values_text(members[0])] for names, members in groups.items()
    ]
    return Table("Points that failed", columns, shown)


def _figure(row: Row, objective: Objective) -> Value | Cell:
    value = float(values([row], objective.name)[0])
    if np.isnan(value):
        return None
    if objective.unit in ("J", "s"):
        return Cell(value, objectives.shown(value, objective.unit))
    return int(value) if value.is_integer() else value


def _column(objective: Objective, bar: bool = False) -> Column:
    """Return an objective's column; a unit that takes prefixes stands in each cell."""
    unit = "" if objective.unit in ("J", "s") else objective.unit
    form = ".4f" if objective.most else ",.0f"
    return Column(objective.title, unit, form, bar=bar)
