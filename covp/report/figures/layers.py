"""The cycles of each layer by what they are spent on: stacked bars with error bars."""

from __future__ import annotations

from typing import Any

import altair as alt

from covp.evaluation.documents import LayerRecord, Run
from covp.report import theme
from covp.report.figures.style import colours, data, in_order, number, spec
from covp.report.page import Figure
from covp.report.quantities import PARTS, certainty, error, parts, rows, short

COLOURS = dict(
    zip(PARTS, (theme.BLUE, theme.CYAN, theme.TEAL, theme.ORANGE, theme.GREY), strict=True)
)


def layers_figure(run: Run) -> Figure | None:
    """Return cycles by layer and part; None where no layer has cycles."""
    bars, totals = [], []
    off = error(run)
    for name, cost in rows(run):
        split = parts(cost)
        total = sum(split.values())
        if not split or not run.cycles:
            continue
        about = {
            "row": name,
            "on": cost.target if isinstance(cost, LayerRecord) else "cpu",
            "tensor": short(cost.tensor) if isinstance(cost, LayerRecord) else "",
            "share": total / run.cycles,
            "total": total,
        }
        totals.append(
            about
            | {"low": total * (1 - (off or 0)), "high": total * (1 + (off or 0))}
            | {"text": f"{total / run.cycles:.1%}"}
        )
        order = enumerate(split.items())
        bars += [about | {"part": p, "cycles": c, "order": i} for i, (p, c) in order if c]
    if not bars:
        return None
    present = [part for part in PARTS if any(bar["part"] == part for bar in bars)]
    return Figure(
        "layers",
        "Cycles by layer",
        spec(_chart(bars, totals, present), len(totals)),
        _caption(run),
    )


def _chart(
    bars: list[dict[str, object]], totals: list[dict[str, object]], present: list[str]
) -> Any:
    names = [str(row["row"]) for row in totals]
    wide = alt.Scale(domain=[0, 1.25 * max(float(str(row["high"])) for row in totals)], nice=False)
    stacked = (
        alt.Chart(data(bars))
        .mark_bar()
        .encode(
            y=in_order(names),
            x=number("cycles", "core cycles", wide),
            color=alt.Color("part:N", title=None, scale=colours({p: COLOURS[p] for p in present})),
            order=alt.Order("order:Q"),
            tooltip=[
                alt.Tooltip("row:N", title="layer"),
                alt.Tooltip("tensor:N", title="output"),
                alt.Tooltip("on:N"),
                alt.Tooltip("part:N"),
                alt.Tooltip("cycles:Q", format=","),
                alt.Tooltip("total:Q", title="of the layer", format=","),
                alt.Tooltip("share:Q", title="of the run", format=".1%"),
            ],
        )
    )
    base = alt.Chart(data(totals)).encode(y=in_order(names))
    spread = base.mark_rule(strokeWidth=1.5).encode(x=alt.X("low:Q"), x2="high:Q")
    shares = base.mark_text(align="left", dx=6).encode(x=alt.X("high:Q"), text="text:N")
    return stacked + spread + shares


def _caption(run: Run) -> str:
    source = run.cycles_source
    model = f" {source.kind} ({source.model})" if source else ""
    known = certainty(run)
    if source and source.kind == "estimated":
        sure = (
            f"the line at the end of each bar is the model's largest known error, {known}"
            if source.error is not None
            else "unchecked: the model was never compared with a core"
        )
    else:
        sure = "no estimate"
    return (
        f"Cycles:{model}; {sure}. core: instructions on it; set-up: the driver before the jobs; "
        "compute: the unit computes; memory: its port takes longer than that; waiting: start-up, "
        "and until the core goes on. Numbers and kinds of layers are those that Netron shows."
    )
