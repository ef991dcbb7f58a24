"""Figures of one run: its cycles by cause, energy by part, bytes by memory."""

from __future__ import annotations

import altair as alt

from covp.evaluation.documents import EnergyPartRecord, Run
from covp.report import theme
from covp.report.figures.style import colours, data, in_order, number, spec
from covp.report.page import Figure
from covp.report.quantities import rows

COLOURS = {
    "issue": theme.BLUE,
    "operand": theme.ORANGE,
    "branch": theme.MAGENTA,
    "multiply": theme.OLIVE,
    "access": theme.GREEN,
    "custom": theme.PURPLE,
    "fetch": theme.RED,
    "data": theme.TEAL,
    "cache": theme.CYAN,
    "waited": theme.GREY,
    "exceptions": theme.SAND,
}


def causes_figure(run: Run) -> Figure | None:
    """Return cycles by layer and cause; None where the device does not know them."""
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


def part_name(part: EnergyPartRecord) -> str:
    """Return a part and its unit, such as "gemm, MACs"."""
    return f"{part.what}, {part.unit}s"


def energy_figure(run: Run) -> Figure | None:
    """Draw energy by part; None where it is not known."""
    source = run.energy_source
    if source is None or not source.parts:
        return None
    bars = [
        {
            "row": part_name(part),
            "uj": part.joules * 1e6,
            "low": part.count * (part.low or part.pj) * 1e-6,
            "high": part.count * (part.high or part.pj) * 1e-6,
            "share": part.joules / run.energy_j if run.energy_j else None,
            "pj": part.pj,
            "count": part.count,
            "unit": part.unit,
        }
        for part in source.parts
    ]
    base = alt.Chart(data(bars)).encode(y=in_order([str(bar["row"]) for bar in bars]))
    filled = base.mark_bar(color=theme.BLUE).encode(
        x=number("uj", "µJ"),
        tooltip=[
            alt.Tooltip("row:N", title="part"),
            alt.Tooltip("uj:Q", title="µJ", format=",.3~g"),
            alt.Tooltip("share:Q", title="of the run", format=".1%"),
            alt.Tooltip("count:Q", format=","),
            alt.Tooltip("unit:N"),
            alt.Tooltip("pj:Q", title="pJ each", format=",.3~g"),
        ],
    )
    spread = base.mark_rule(strokeWidth=1.5).encode(x="low:Q", x2="high:Q")
    return Figure(
        "energy",
        "Energy of an inference by part, µJ",
        spec(filled + spread, len(bars)),
        f"Estimated ({source.model}): {source.assumes}. Lines span the published figures where "
        "there are several; the error of the cycles comes on top.",
    )


_READS = (theme.BLUE, theme.TEAL, theme.OLIVE, theme.PURPLE, theme.CYAN)
_WRITES = (theme.ORANGE, theme.MAGENTA, theme.RED, theme.GREY, theme.SAND)


def traffic_figure(run: Run) -> Figure | None:
    """Draw loads and stores by layer; None where bytes were not counted."""
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
