"""`pareto`: two objectives against each other; the front drawn out, what it dominates faint.

The front is worked out by the chart itself, as the reader chooses which points are shown. It is the
front of `covp.base.pareto`: of each model by itself, and of equal points the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from covp.report.extra import altair
from covp.report.objectives import Objective
from covp.report.point_columns import SWEEP, PointColumn
from covp.report.theme import GREY

POINTS = "points"
"""The name of the data that figures share: those of `covp.report.point_columns.records`."""
_TIMES = ("cycles", "seconds")
# the page's script gives values their titles and formats, for the one point that is shown
_WHOLE_POINT = {"content": "data"}


def pareto(
    x: Objective, y: Objective, columns: Sequence[PointColumn], colour_by: str | None = None
) -> Any:
    """Return an Altair chart; drag across it to choose points (selection ``brush``).

    Args:
        x, y: the objectives.
        columns: of the points; all are shown when the pointer rests on a point.
        colour_by: the key of the column that gives the colours, with a legend; None: the field
            ``colour`` of each point is its colour.
    """
    alt = altair()
    by_key = {column.key: column for column in columns}
    brush = alt.selection_interval(name="brush")
    place = alt.Chart().encode(x=_axis(alt.X, by_key[x.name]), y=_axis(alt.Y, by_key[y.name]))
    points = place.encode(color=_colour(by_key, colour_by))
    on_front = "datum.on_front"
    layers = [
        points.mark_circle(size=_size(columns), tooltip=_WHOLE_POINT)
        .encode(opacity=alt.condition(brush, alt.value(0.35), alt.value(0.06)))
        .add_params(brush),
        place.transform_filter(on_front)
        .mark_line(interpolate="step-after", color=GREY, strokeWidth=1.2)
        .encode(detail=[f"{key}:N" for key in _groups(by_key)]),
        *_error(alt, points.transform_filter(on_front), x, y),
        points.transform_filter(on_front)
        .mark_circle(size=52, stroke="white", strokeWidth=0.6, tooltip=_WHOLE_POINT)
        .encode(opacity=alt.condition(brush, alt.value(1), alt.value(0.15))),
        *_model_names(alt, place, by_key),
    ]
    chart = alt.layer(*layers, data=alt.NamedData(POINTS), height=300, width="container")
    return _with_front(alt, chart, x, y, _groups(by_key))


def _size(columns: Sequence[PointColumn]) -> int:
    """Return the size of a dominated point in square pixels: the fewer, the larger."""
    count = len(columns[0].cells)
    return 40 if count < 300 else 26 if count < 2000 else 16


def _groups(by_key: dict[str, PointColumn]) -> list[str]:
    """Return the columns whose values have a front each: sweep and model."""
    return [key for key in (SWEEP, "model") if key in by_key]


def _with_front(alt: Any, chart: Any, x: Objective, y: Objective, groups: list[str]) -> Any:
    """Mark the front: in the order of x, where y is better than all before."""
    order = [_direction(one) for one in (x, y)]
    sort = [
        *(alt.SortField(one.name, order=o) for one, o in zip((x, y), order, strict=True)),
        alt.SortField("i"),
    ]
    so_far = alt.WindowFieldDef(
        op="max" if y.most else "min", field=y.name, **{"as": "best_so_far"}
    )
    before = alt.WindowFieldDef(op="lag", field="best_so_far", **{"as": "best_before"})
    better = f"datum.{y.name} {'>' if y.most else '<'} datum.best_before"
    return (
        chart.transform_filter(f"isValid(datum.{x.name}) && isValid(datum.{y.name})")
        .transform_window([so_far], frame=[None, 0], sort=sort, groupby=groups)
        .transform_window([before], sort=sort, groupby=groups)
        .transform_calculate(on_front=f"!isValid(datum.best_before) || {better}")
    )


def _direction(objective: Objective) -> str:
    return "descending" if objective.most else "ascending"


def _axis(channel: Any, column: PointColumn) -> Any:
    """Logarithmic where the greatest is more than ten times the least."""
    levels = column.levels
    wide = levels[0] > 0 and levels[-1] > 10 * levels[0]
    scale = {"type": "log", "nice": False} if wide else {"zero": False}
    form = "~s" if column.key != "accuracy" else "~g"
    return channel(
        f"{column.key}:Q", title=column.title, scale=scale, axis={"format": form, "tickCount": 6}
    )


def _colour(by_key: dict[str, PointColumn], colour_by: str | None) -> Any:
    alt = altair()
    if colour_by is None:
        return alt.Color("colour:N", scale=None)
    return alt.Color(f"{colour_by}:N", title=by_key[colour_by].title)


def _error(alt: Any, base: Any, x: Objective, y: Objective) -> list[Any]:
    """Return a bar as long as the timing model's known error, along the axis of the cycles."""
    bars = []
    for name, channel, one in (("x", alt.X, x), ("y", alt.Y, y)):
        if one.name in _TIMES:
            error = f"datum.{one.name} * (datum.cycles_error || 0)"
            ends = {f"low_{name}": f"datum.{one.name} - {error}"}
            ends[f"high_{name}"] = f"datum.{one.name} + {error}"
            bar = base.transform_calculate(**ends).mark_rule(strokeWidth=2, opacity=0.7)
            bars.append(
                bar.encode(**{name: channel(f"low_{name}:Q"), f"{name}2": f"high_{name}:Q"})
            )
    return bars


def _model_names(alt: Any, place: Any, by_key: dict[str, PointColumn]) -> list[Any]:
    """At the first point of each front, where there is more than one."""
    if len(by_key["model"].levels) < 2:
        return []
    return [
        place.transform_filter("!isValid(datum.best_before)")
        .mark_text(align="left", dx=6, dy=-8, fontWeight=600)
        .encode(text="model:N")
    ]
