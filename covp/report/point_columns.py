"""`PointColumn`: what a report shows of each point, as columns that figures and tables share.

The names of parameters have dots, which mean nesting to Vega; so columns have keys and titles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Literal

from covp.exploration.sweep.points import FIGURES
from covp.report.designs import FACTORS, factor, parameters
from covp.report.objectives import OBJECTIVES, Row
from covp.report.page import Figure, script_json
from covp.report.theme import PALETTE

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Points:
    """The data, and the filters; one in a page, with a `PointTable`."""

    columns: Sequence[PointColumn]

    def html(self) -> str:
        """Return the data and an empty element, in which the script makes the filters."""
        data = script_json(dataset(self.columns) | {"palette": PALETTE})
        return (
            "<div id=points-filters></div>"
            f'<script type=application/json id="points-data">{data}</script>'
        )


@dataclass(frozen=True)
class PointTable:
    """The points that the filters leave, a page at a time; all of them are copied."""

    title: str

    def html(self) -> str:
        """Return an empty element, in which the script makes the table."""
        return f"<div class=table><h3>{escape(self.title)}</h3><div id=points-table></div></div>"


@dataclass(frozen=True)
class Grid:
    """Figures side by side where there is room."""

    figures: Sequence[Figure]

    def html(self) -> str:
        """Return the figures side by side."""
        return f"<div class=grid>{''.join(figure.html() for figure in self.figures)}</div>"


def script() -> str:
    """Return the script that runs before the page's own."""
    return (_FOLDER / "points.js").read_text(encoding="utf-8")


def style() -> str:
    """Return the style that comes after the page's own."""
    return (_FOLDER / "points.css").read_text(encoding="utf-8")


Role = Literal["factor", "parameter", "objective", "other"]
SI, INTEGER, FRACTION = ".4~s", ",.0f", ".6~g"
SWEEP = "sweep"
"""The key that a row gets where a report is of several sweeps: the sweep's label."""


@dataclass(frozen=True)
class PointColumn:
    """One column.

    Attributes:
        key: its field in the figures' data.
        title: for people, with the unit.
        role: what it is: what a point is made of, what it is weighed by, or anything else.
        format: of numbers, in d3's notation; empty for text.
        cells: of each row; None where there is none.
    """

    key: str
    title: str
    role: Role
    format: str
    cells: tuple[Any, ...]

    @property
    def levels(self) -> list[Any]:
        """The different cells, numbers by size, names as they come; without None."""
        found = list(dict.fromkeys(cell for cell in self.cells if cell is not None))
        return sorted(found) if self.format else found


def columns_of(rows: Sequence[Row]) -> list[PointColumn]:
    """Return all columns in which the rows have anything, what a point is first.

    Args:
        rows: in the order in which they are shown.
    """
    found = [_column(SWEEP, "Sweep", "factor", rows, _cell(SWEEP))]
    for name, title in FACTORS.items():
        found.append(_column(name, title, "factor", rows, _factor(name)))
    for i, name in enumerate(parameters(rows)):
        found.append(_column(f"v{i}", name, "parameter", rows, _factor(name)))
    for one in OBJECTIVES.values():
        found.append(_column(one.name, one.label, "objective", rows, _cell(one.name)))
    for name, (title, read) in _OTHERS.items():
        found.append(_column(name, title, "other", rows, read))
    return [column for column in found if column.levels]


def certainty(row: Row) -> str | None:
    """Return how far the cycles may be off, or that it is not known; None: it failed."""
    if row.get("status") != "ok":
        return None
    error = row.get("cycles_error")
    return "unchecked" if error is None else f"±{100 * error:.2g} %"


def _cell(name: str) -> Callable[[Row], Any]:
    return lambda row: row.get(name)


def _factor(name: str) -> Callable[[Row], Any]:
    return lambda row: factor(row, name)


def _outputs(row: Row) -> str | None:
    matches = row.get("matches_reference")
    return None if matches is None else "as the reference" if matches else "wrong"


def _short_key(row: Row) -> str | None:
    return (row.get("key") or "")[:12] or None


_OTHERS: dict[str, tuple[str, Callable[[Row], Any]]] = {
    "certainty": ("Error of cycles", certainty),
    "cycles_error": ("Relative error of cycles", _cell("cycles_error")),
    "units_error": ("Relative error of accelerators' cycles", _cell("units_error")),
    "cycles_model": ("Timing model", _cell("cycles_model")),
    "how": ("How", _cell("how")),
    **{
        name: (one.label, _cell(name))
        for name, one in FIGURES.items()
        if not one.rank and name != "mean_error"
    },
    "reference": ("Outputs", _outputs),
    "status": ("Status", _cell("status")),
    "reason": ("Reason", _cell("reason")),
    "key": ("Key", _short_key),
    "covp_version": ("covp", _cell("covp_version")),
}


def _column(
    key: str, title: str, role: Role, rows: Sequence[Row], read: Callable[[Row], Any]
) -> PointColumn:
    cells = [read(row) for row in rows]
    some = [cell for cell in cells if cell is not None]
    numbers = all(isinstance(c, (int, float)) and not isinstance(c, bool) for c in some)
    if not numbers:
        cells = [None if cell is None else str(cell) for cell in cells]
    return PointColumn(key, title, role, _format(key, role, some) if numbers else "", tuple(cells))


def _format(key: str, role: Role, cells: Sequence[float]) -> str:
    if all(float(cell).is_integer() for cell in cells):
        return INTEGER
    return (
        FRACTION
        if role == "parameter" or key in ("accuracy", "cycles_error", "units_error")
        else SI
    )


def dataset(columns: Sequence[PointColumn]) -> dict[str, Any]:
    """Return the columns for the page's script: few different cells as levels, floats rounded.

    Returns:
        JSON: ``columns``, each with its description, ``levels`` or None, and ``cells``.
    """
    return {"columns": [_encode(column) for column in columns]}


def _encode(column: PointColumn) -> dict[str, Any]:
    levels, cells = column.levels, [_round_cell(cell) for cell in column.cells]
    few = len(levels) * 4 <= len(cells) or not column.format
    place = {_round_cell(level): i for i, level in enumerate(levels)}
    return {
        "key": column.key,
        "title": column.title,
        "role": column.role,
        "format": column.format,
        "levels": [_round_cell(level) for level in levels] if few else None,
        "cells": [None if c is None else place[c] for c in cells] if few else cells,
    }


def _round_cell(cell: Any) -> Any:
    """Return six digits of a fraction: more than any of these figures is known to."""
    if not isinstance(cell, float):
        return cell
    return int(cell) if cell.is_integer() and abs(cell) < 1e15 else float(f"{cell:.6g}")


def records(columns: Sequence[PointColumn]) -> list[dict[str, Any]]:
    """Return the rows as figures read them: what the page's script makes of `dataset`."""
    cells = [[_round_cell(cell) for cell in column.cells] for column in columns]
    keys = [column.key for column in columns]
    return [
        dict(zip(keys, row, strict=True)) | {"i": i}
        for i, row in enumerate(zip(*cells, strict=True))
    ]
