"""`sensitivity`: the share of an objective's variance by parameter; `levels`: in which way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from covp.report.effects import Effect
from covp.report.extra import altair
from covp.report.figures.pareto import POINTS
from covp.report.objectives import OBJECTIVES, Objective
from covp.report.point_columns import PointColumn


def sensitivity(effects: Sequence[Effect], titles: dict[str, str]) -> Any:
    """Return an Altair chart: bars for a parameter alone, a line on to its share with interactions.

    Args:
        effects: of any groups; the reader chooses one.
        titles: of parameters that have another one than their name.
    """
    alt = altair()
    data = [
        {
            "group": one.group,
            "objective": OBJECTIVES[one.objective].title,
            "parameter": titles.get(one.parameter, one.parameter),
            "share": round(one.share, 6),
            "total": None if one.total is None else round(max(one.total, one.share), 6),
            "ratio": None if one.ratio is None else round(one.ratio, 4),
            "method": one.method,
            "points": one.points,
        }
        for one in effects
    ]
    groups = list(dict.fromkeys(one.group for one in effects))
    group = alt.param("group", value=groups[0], bind=_select(groups, groups, "Points of"))
    base = (
        alt.Chart()
        .transform_filter("datum.group == group")
        .encode(
            y=alt.Y(
                "parameter:N", title=None, sort=alt.EncodingSortField("share", "max", "descending")
            ),
            yOffset=alt.YOffset("objective:N", sort=None),
            color=alt.Color("objective:N", title=None, sort=None),
            tooltip=[
                alt.Tooltip("parameter:N", title="Parameter"),
                alt.Tooltip("objective:N", title="Objective"),
                alt.Tooltip("share:Q", title="Alone", format=".1%"),
                alt.Tooltip("total:Q", title="With interactions", format=".1%"),
                alt.Tooltip("ratio:Q", title="Greatest mean by least", format=".3~f"),
                alt.Tooltip("method:N", title="Is the"),
                alt.Tooltip("points:Q", title="Points"),
            ],
        )
    )
    share = alt.X(
        "share:Q",
        title="share of the variance",
        axis={"format": "%", "tickCount": 5},
        scale={"domain": [0, 1]},
    )
    layers = [
        base.mark_bar().encode(x=share),
        base.transform_filter("datum.total > datum.share + 0.001")
        .mark_rule(strokeWidth=2, opacity=0.7)
        .encode(x=share, x2="total:Q"),
    ]
    count = max(sum(one["group"] == g for one in data) for g in groups)
    chart = alt.layer(
        *layers, data=alt.Data(values=data), width="container", height=20 + 13 * count
    )
    return (
        chart.add_params(group)
        if len(groups) > 1
        else chart.add_params(alt.param("group", value=groups[0]))
    )


def levels(columns: Sequence[PointColumn], objectives: Sequence[Objective]) -> Any:
    """Return an Altair chart: an objective's median at each value of a parameter.

    Every model's median is given relative to its least, so that models can be compared; the band
    holds the middle half of its points.

    Args:
        columns: of the points.
        objectives: to choose from; those of which more is better are left out.
    """
    alt = altair()
    varied = [
        c
        for c in columns
        if c.role in ("parameter", "factor") and c.key != "model" and len(c.levels) > 1
    ]
    least = [one for one in objectives if not one.most]
    parameter = alt.param(
        "parameter",
        value=(sorted(varied, key=lambda c: c.role != "parameter")[0]).key,
        bind=_select([c.key for c in varied], [c.title for c in varied], "Parameter"),
    )
    objective = alt.param(
        "objective",
        value=least[0].name,
        bind=_select([one.name for one in least], [one.title for one in least], "Objective"),
    )
    base = (
        alt.Chart(alt.NamedData(POINTS))
        .transform_calculate(level="datum[parameter]", value="datum[objective]")
        .transform_filter("isValid(datum.level) && isValid(datum.value)")
        .transform_aggregate(
            middle="median(value)", low="q1(value)", high="q3(value)", groupby=["model", "level"]
        )
        .transform_joinaggregate(least="min(middle)", groupby=["model"])
        .transform_calculate(
            middle="datum.middle / datum.least",
            low="datum.low / datum.least",
            high="datum.high / datum.least",
        )
        .transform_filter("datum.least > 0")
        .encode(
            x=alt.X("level:O", title=None, axis={"labelAngle": 0, "labelOverlap": True}),
            color=alt.Color("model:N", title=None, legend=None),
        )
    )
    middle = alt.Y("middle:Q", title="median, by the least of the model", scale={"zero": False})
    tooltip = [
        "model:N",
        "level:N",
        alt.Tooltip("middle:Q", format=".3f"),
        alt.Tooltip("low:Q", format=".3f", title="lower quartile"),
        alt.Tooltip("high:Q", format=".3f", title="upper quartile"),
    ]
    layers = [
        base.mark_rule(strokeWidth=6, opacity=0.15).encode(y=alt.Y("low:Q"), y2="high:Q"),
        base.mark_line(point={"size": 55}).encode(y=middle, tooltip=tooltip),
    ]
    return alt.layer(*layers, width="container", height=260).add_params(parameter, objective)


def _select(options: Sequence[str], labels: Sequence[str], name: str) -> Any:
    return altair().binding_select(options=list(options), labels=list(labels), name=name)
