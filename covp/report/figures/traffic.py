"""Bytes that each layer moves, by memory and direction."""

from __future__ import annotations

import altair as alt

from covp.evaluation.documents import Run
from covp.report import theme
from covp.report.figures.style import colours, data, in_order, number, spec
from covp.report.page import Figure
from covp.report.quantities import rows

_READS = (theme.BLUE, theme.TEAL, theme.OLIVE, theme.PURPLE, theme.CYAN)
_WRITES = (theme.ORANGE, theme.MAGENTA, theme.RED, theme.GREY, theme.SAND)


def traffic_figure(run: Run) -> Figure | None:
    """Loads and stores by layer; None where bytes were not counted."""
    if run.bytes is None:
        return None
    bars = [
        {"row": name, "what": f"{memory}, {way}", "by": master, "bytes": count}
        for name, cost in rows(run)
        for master, memories in (cost.bytes_by_master or {}).items()
        for memory, one in memories.items()
        for way, count in (("read", one.read), ("written", one.write))
        if count
    ]
    if not bars:
        return None
    names = [str(bar["row"]) for bar in bars]
    known = _colours(run, {str(bar["what"]) for bar in bars})
    chart = (
        alt.Chart(data(bars))
        .mark_bar()
        .encode(
            y=in_order(names),
            x=number("bytes", "bytes"),
            color=alt.Color("what:N", title=None, scale=colours(known)),
            tooltip=[
                alt.Tooltip("row:N", title="layer"),
                alt.Tooltip("what:N"),
                alt.Tooltip("by:N"),
                alt.Tooltip("bytes:Q", format=","),
            ],
        )
    )
    return Figure(
        "traffic",
        "Bytes moved by layer and memory",
        spec(chart, len(dict.fromkeys(names))),
        "Loads and stores of core and units, exact; instruction fetches are in the table.",
    )


def _colours(run: Run, seen: set[str]) -> dict[str, str]:
    memories = list(run.bytes or {})
    found = {}
    for i, memory in enumerate(memories):
        found[f"{memory}, read"] = _READS[i % len(_READS)]
        found[f"{memory}, written"] = _WRITES[(i + len(_WRITES) - 1) % len(_WRITES)]
    return {what: colour for what, colour in found.items() if what in seen}
