"""An objective over the values of one parameter, as curves, and of two, as a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from covp.report import theme
from covp.report.extra import altair
from covp.report.objectives import Objective, Row
from covp.report.page import Figure

_FEW = 12
"""Values of a parameter that an axis can name."""
_LOW, _HIGH = "#e8f1f8", "#0b4a75"


@dataclass(frozen=True)
class Line:
    """The points of one set-up; ``level``: one, which does not have the parameter."""

    name: str
    points: Sequence[Row]
    level: bool = False


def curves(name: str, parameter: str, lines: Sequence[Line], y: Objective, others: bool) -> Figure:
    """Return a parameter's figure; ``others``: there are more, which stay as in the best point."""
    alt = altair()
    data = [
        {"line": line.name, "x": row["vary"][parameter], "y": row[y.name]}
        for line in lines
        if not line.level
        for row in line.points
    ]
    levels = [{"line": line.name, "y": line.points[0][y.name]} for line in lines if line.level]
    titles = {line.name: line for line in lines}
    palette = dict(zip(titles, 9 * theme.PALETTE, strict=False))
    colour = alt.Color(
        "line:N",
        title=None,
        scale=alt.Scale(domain=list(palette), range=list(palette.values())),
        legend=alt.Legend(columns=1, labelLimit=400) if len(titles) > 1 else None,
    )
    along, scale = _x(alt, parameter, data), _scale([row["y"] for row in data + levels])
    up = alt.Y("y:Q", title=y.label, scale=scale, axis={"format": "~s", "tickCount": 6})
    tooltip = [alt.Tooltip("y:Q", title=y.label, format=",.6~g")]
    if len(titles) > 1:
        tooltip.insert(0, alt.Tooltip("line:N", title="of"))
    chart = (
        alt.Chart(alt.Data(values=data))
        .mark_line(point={"size": 55})
        .encode(
            x=along, y=up, color=colour, tooltip=[alt.Tooltip("x:N", title=parameter), *tooltip]
        )
    )
    if levels:
        rules = alt.Chart(alt.Data(values=levels)).mark_rule(strokeDash=[6, 4], strokeWidth=1.6)
        chart = chart + rules.encode(y=up, color=colour, tooltip=tooltip)
    said = "All other parameters as in the best point of each line. " if others else ""
    said += "Dashed: the core alone." if levels else ""
    spec = chart.properties(width="container", height=240).to_dict()
    spec.pop("config", None)
    return Figure(name, f"{y.label} over {parameter}", spec, said.strip())


def heat_map(
    name: str, rows: Sequence[Row], parameters: Sequence[str], y: Objective, of: str, caption: str
) -> Figure:
    """Return a figure of two parameters; each field has its number."""
    alt = altair()
    across, up = parameters
    data = [{"x": r["vary"][across], "y": r["vary"][up], "value": r[y.name]} for r in rows]
    scale = _scale([row["value"] for row in data])
    ends = [min(row["value"] for row in data), max(row["value"] for row in data)]
    middle = (ends[0] * ends[1]) ** 0.5 if scale.get("type") == "log" else sum(ends) / 2
    base = alt.Chart(alt.Data(values=data)).encode(
        x=alt.X("x:O", title=across, axis={"labelAngle": 0}),
        y=alt.Y("y:O", title=up, sort="descending"),
    )
    fields = base.mark_rect().encode(
        color=alt.Color("value:Q", title=y.label, legend=None,
                        scale=alt.Scale(type=scale.get("type", "linear"), domain=ends,
                                        range=[_LOW, _HIGH])),
        tooltip=[alt.Tooltip("x:N", title=across), alt.Tooltip("y:N", title=up),
                 alt.Tooltip("value:Q", title=y.label, format=",.6~g")],
    )  # fmt: skip
    form = ".3~s" if ends[1] >= 1000 else ".3~g"
    numbers = base.mark_text().encode(
        text=alt.Text("value:Q", format=form),
        color=alt.condition(f"datum.value > {middle}", alt.value("#fff"), alt.value("#1c2026")),
    )
    high = 34 * len({row["y"] for row in data}) + 40
    spec = (fields + numbers).properties(width="container", height=high).to_dict()
    spec.pop("config", None)
    said = f"{y.label} in each field, dark is more. {caption}".strip()
    return Figure(name, f"{y.label} by {across} and {up}{of and f': {of}'}", spec, said)


def _x(alt: Any, parameter: str, data: Sequence[dict[str, Any]]) -> Any:
    """Logarithmic where numbers grow by ratio; names one beside the other."""
    found = list(dict.fromkeys(row["x"] for row in data))
    if any(isinstance(x, (str, bool)) for x in found):
        return alt.X("x:N", title=parameter, axis={"labelAngle": 0})
    wide = min(found) > 0 and max(found) >= 8 * min(found)
    scale = {"type": "log", "base": 2, "nice": False} if wide else {"zero": False}
    axis = {"values": sorted(found)} if len(found) <= _FEW else {"tickCount": 6}
    return alt.X("x:Q", title=parameter, scale=scale, axis={"format": "~s", **axis})


def _scale(found: Sequence[float]) -> dict[str, Any]:
    """Return the scale of an objective: logarithmic beyond a factor of ten."""
    wide = min(found) > 0 and max(found) > 10 * min(found)
    return {"type": "log", "nice": True} if wide else {"zero": True}
