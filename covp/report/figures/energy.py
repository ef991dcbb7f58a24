"""The parts of the energy of an inference, with the span of published figures."""

from __future__ import annotations

import altair as alt

from covp.evaluation.documents import EnergyPartRecord, Run
from covp.report import theme
from covp.report.figures.style import data, in_order, number, spec
from covp.report.page import Figure


def part_name(part: EnergyPartRecord) -> str:
    """Such as "gemm, MACs"."""
    return f"{part.what}, {part.unit}s"


def energy_figure(run: Run) -> Figure | None:
    """Energy by part; None where it is not known."""
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
