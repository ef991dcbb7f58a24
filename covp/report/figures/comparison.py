"""Several runs side by side: in all, and layer by layer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import altair as alt

from covp.evaluation.documents import Run
from covp.report import theme
from covp.report.figures.style import colours, data, height, in_order, number, spec
from covp.report.page import Figure
from covp.report.quantities import certainty, error, rows

Named = tuple[str, Run]


def totals_figure(runs: Sequence[Named]) -> Figure | None:
    """Return cycles of each run with error bars; None where no run has cycles."""
    known = [(name, run) for name, run in runs if run.cycles]
    if not known:
        return None
    firsts = first_cycles(known)
    bars = []
    for name, run in known:
        cycles, off = run.cycles or 0, error(run) or 0
        bars.append(
            {
                "row": name,
                "cycles": cycles,
                "low": cycles * (1 - off),
                "high": cycles * (1 + off),
                "text": f"{firsts[run.model] / cycles:.2f}x" if run.model in firsts else "",
                "error": certainty(run),
            }
        )
    most = max(float(str(bar["high"])) for bar in bars)
    base = alt.Chart(data(bars)).encode(y=in_order([name for name, _ in known]))
    filled = base.mark_bar(color=theme.BLUE).encode(
        x=number("cycles", "core cycles", alt.Scale(domain=[0, 1.25 * most], nice=False)),
        tooltip=[
            alt.Tooltip("row:N", title="run"),
            alt.Tooltip("cycles:Q", format=","),
            alt.Tooltip("error:N"),
            alt.Tooltip("text:N", title="speed"),
        ],
    )
    spread = base.mark_rule(strokeWidth=1.5).encode(x="low:Q", x2="high:Q")
    speeds = base.mark_text(align="left", dx=6).encode(x="high:Q", text="text:N")
    return Figure(
        "totals",
        "Cycles of an inference",
        spec(filled + spread + speeds, len(bars)),
        "Beside each bar: how many times as fast in cycles as the first run of its model. Lines "
        "are the known errors of the timing models; those without one are unchecked.",
    )


def first_cycles(runs: Sequence[Named]) -> dict[str, int]:
    """Return the cycles of each model's first run: what its others are compared with.

    Of models with several runs that have cycles; one alone is compared with nothing.
    """
    times = Counter(run.model for _, run in runs if run.cycles)
    known = [run for _, run in reversed(runs) if run.cycles and times[run.model] > 1]
    return {run.model: run.cycles for run in known if run.cycles}


def by_layer_figure(runs: Sequence[Named]) -> Figure | None:
    """Return cycles by layer of runs of one model; None for several models or without cycles."""
    known = [(name, run) for name, run in runs if run.cycles]
    if len(known) < 2 or len({run.model for _, run in known}) > 1:
        return None
    bars = [
        {"row": row, "run": name, "cycles": cost.cycles, "place": i}
        for name, run in known
        for i, (row, cost) in enumerate(rows(run))
        if cost.cycles is not None
    ]
    names = layer_names([run for _, run in known])
    colour = dict(zip((name for name, _ in known), 3 * theme.PALETTE, strict=False))
    chart = (
        alt.Chart(data(bars))
        .mark_bar()
        .encode(
            y=in_order(names),
            yOffset=alt.YOffset("run:N", sort=list(colour)),
            x=number("cycles", "core cycles"),
            color=alt.Color("run:N", title=None, scale=colours(colour),
                            legend=alt.Legend(columns=1, labelLimit=600)),
            tooltip=[
                alt.Tooltip("row:N", title="layer"),
                alt.Tooltip("run:N"),
                alt.Tooltip("cycles:Q", format=","),
            ],
        )
    )  # fmt: skip
    made = spec(chart, pixels=max(height(len(names)), 9 * len(known) * len(names)))
    return Figure("by-layer", "Cycles by layer", made, "Layers by their numbers in the model file.")


def layer_names(runs: Sequence[Run]) -> list[str]:
    """Return the layers of all runs, by number; what lies between them last."""
    found = {row: i for run in runs for i, (row, _) in enumerate(rows(run))}
    return sorted(
        found, key=lambda row: (int(row.split()[0]) if row[0].isdigit() else 1 << 30, row)
    )
