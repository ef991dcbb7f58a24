"""Common style of the figures: data in the chart, heights of rows, axes in bytes and cycles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

_ROW, _FRAME = 22, 20
SHORT = "datum.value ? format(datum.value, '~s') : '0'"
"""The text of an axis of large numbers: "200k"; all of them in one unit would give "0k"."""


def data(rows: Sequence[Mapping[str, Any]]) -> alt.InlineData:
    """Return rows that are written into the chart."""
    return alt.InlineData(values=[dict(row) for row in rows])


def height(rows: int) -> int:
    """Return the height in pixels of a chart with so many bars one above the other."""
    return _ROW * max(rows, 1) + _FRAME


def in_order(names: Sequence[str], **axis: Any) -> alt.Y:
    """Return the vertical axis of bars named "row", from top to bottom."""
    return alt.Y("row:N", sort=list(dict.fromkeys(names)), title=None, axis=alt.Axis(**axis))


def number(field: str, title: str, scale: alt.Scale | None = None) -> alt.X:
    """Return a horizontal axis of large numbers, with few ticks: "200k"."""
    axis = alt.Axis(labelExpr=SHORT, tickCount=6)
    return alt.X(f"{field}:Q", title=title, axis=axis, scale=scale or alt.Scale())


def colours(names: Mapping[str, str]) -> alt.Scale:
    """Return a scale of names and their colours, in this order."""
    return alt.Scale(domain=list(names), range=list(names.values()))


def spec(chart: Any, rows: int | None = None, pixels: int = 300) -> dict[str, Any]:
    """Vega-Lite of a chart that fills the page's width.

    Args:
        chart: of Altair, single or layered.
        rows: bars one above the other, which give the height;
        pixels: else the height.
    """
    high = height(rows) if rows is not None else pixels
    made: dict[str, Any] = chart.properties(width="container", height=high).to_dict()
    made.pop("config", None)  # the page has its own
    return made
