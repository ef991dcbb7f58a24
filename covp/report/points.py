"""`Points`, `PointTable` and `Grid`: the parts of a page whose figures share the points of a sweep.

The data is in the page once. ``points.js`` gives it to every figure that reads `POINTS`, and to the
table; the filters above apply to all of them, as do the points that a brush in a figure chooses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from covp.report.page import Figure, script_json
from covp.report.point_columns import PointColumn, dataset
from covp.report.theme import PALETTE

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Points:
    """The data, and the filters; one in a page, with a `PointTable`."""

    columns: Sequence[PointColumn]

    def html(self) -> str:
        """The place of the filters, which the script makes from the data."""
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
        """The place of the table."""
        return f"<div class=table><h3>{escape(self.title)}</h3><div id=points-table></div></div>"


@dataclass(frozen=True)
class Grid:
    """Figures side by side where there is room."""

    figures: Sequence[Figure]

    def html(self) -> str:
        """All of them."""
        return f"<div class=grid>{''.join(figure.html() for figure in self.figures)}</div>"


def script() -> str:
    """Script of the page, before its own."""
    return (_FOLDER / "points.js").read_text(encoding="utf-8")


def style() -> str:
    """Style of the page, after its own."""
    return (_FOLDER / "points.css").read_text(encoding="utf-8")
