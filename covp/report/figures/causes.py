"""Causes of the cycles of each layer."""

from __future__ import annotations

import altair as alt

from covp.evaluation.documents import Run
from covp.report import theme
from covp.report.figures.style import colours, data, in_order, number, spec
from covp.report.page import Figure
from covp.report.quantities import rows

COLOURS = {
    "issue": theme.BLUE,
    "operand": theme.ORANGE,
    "branch": theme.MAGENTA,
    "multiply": theme.OLIVE,
    "custom": theme.PURPLE,
    "fetch": theme.RED,
    "data": theme.TEAL,
    "cache": theme.CYAN,
    "waited": theme.GREY,
    "exceptions": theme.SAND,
}


def causes_figure(run: Run) -> Figure | None:
    """Cycles by layer and cause; None where the device does not know them."""
    bars = [
        {"row": name, "cause": cause, "cycles": cycles, "share": cycles / (cost.cycles or 1)}
        for name, cost in rows(run)
        for cause, cycles in (cost.cycles_by_cause or {}).items()
        if cycles
    ]
    if not bars:
        return None
    names = [str(bar["row"]) for bar in bars]
    seen = {str(bar["cause"]) for bar in bars}
    known = {cause: colour for cause, colour in COLOURS.items() if cause in seen}
    known |= dict.fromkeys(sorted(seen - known.keys()), theme.GREY)
    order = {cause: i for i, cause in enumerate(known)}
    chart = (
        alt.Chart(data([bar | {"order": order[str(bar["cause"])]} for bar in bars]))
        .mark_bar()
        .encode(
            y=in_order(names),
            x=number("cycles", "core cycles"),
            color=alt.Color("cause:N", title=None, scale=colours(known)),
            order=alt.Order("order:Q"),
            tooltip=[
                alt.Tooltip("row:N", title="layer"),
                alt.Tooltip("cause:N"),
                alt.Tooltip("cycles:Q", format=","),
                alt.Tooltip("share:Q", title="of the layer", format=".1%"),
            ],
        )
    )
    return Figure(
        "causes",
        "Cycles by what they passed with",
        spec(chart, len(dict.fromkeys(names))),
        "Every cycle has one cause, and they add up to the layer's cycles. issue: an instruction "
        "issued; operand: a result was not there yet; waited: for an accelerator or another "
        "peripheral.",
    )
