"""Maps of the memory, and of the arena from layer to layer."""

from __future__ import annotations

import altair as alt

from covp.evaluation.documents import Run
from covp.report import theme
from covp.report.figures.style import SHORT, colours, data, in_order, number, spec
from covp.report.page import Figure
from covp.report.quantities import label, short

_PLACES = {
    "model: constants": theme.BLUE,
    "model: code": theme.CYAN,
    "runtime: code": theme.TEAL,
    "arena": theme.ORANGE,
    "stack": theme.MAGENTA,
}
_KINDS = {
    "input": theme.TEAL,
    "tensor": theme.BLUE,
    "output": theme.MAGENTA,
    "scratch": theme.GREY,
    "state": theme.ORANGE,
}


def memory_figure(run: Run) -> Figure | None:
    """Return bytes in use by memory region; None without a memory map."""
    bars = [
        {
            "row": region.name,
            "what": place.what,
            "bytes": place.bytes,
            "at": f"0x{place.address:08x}",
            "share": place.bytes / region.size_bytes,
        }
        for region in run.memory_map
        for place in region.used
    ]
    if not bars:
        return None
    names = list(dict.fromkeys(str(bar["row"]) for bar in bars))
    seen = list(dict.fromkeys(str(bar["what"]) for bar in bars))
    known = {what: colour for what, colour in _PLACES.items() if what in seen}
    others = (what for what in seen if what not in known)
    known |= dict(zip(others, (theme.OLIVE, theme.PURPLE, theme.RED, theme.GREY), strict=False))
    chart = (
        alt.Chart(data(bars))
        .mark_bar()
        .encode(
            y=in_order(names),
            x=number("bytes", "bytes in use"),
            color=alt.Color("what:N", title=None, scale=colours(known)),
            tooltip=[
                alt.Tooltip("row:N", title="region"),
                alt.Tooltip("what:N"),
                alt.Tooltip("at:N", title="from"),
                alt.Tooltip("bytes:Q", format=","),
                alt.Tooltip("share:Q", title="of the region", format=".1%"),
            ],
        )
    )
    return Figure(
        "memory",
        "Memory in use, bytes",
        spec(chart, len(names)),
        "As linked and loaded: exact. What is free is in the table.",
    )


def arena_figure(run: Run) -> Figure | None:
    """Return tensors in the arena over the layers; None without lifetimes."""
    if not run.arena or not run.layers:
        return None
    count = len(run.layers)
    boxes = [
        {"name": short(t.name), "kind": t.kind, "from": t.first, "to": t.last + 1,
         "low": t.offset, "high": t.offset + t.bytes, "bytes": t.bytes,
         "first": label(run.layers[min(t.first, count - 1)]),
         "last": label(run.layers[min(t.last, count - 1)])}
        for t in run.arena
    ]  # fmt: skip
    present = {str(box["kind"]) for box in boxes}
    kinds = {kind: colour for kind, colour in _KINDS.items() if kind in present}
    numbers = {str(i): str(layer.index) for i, layer in enumerate(run.layers)}
    ticks = list(range(0, count, max(1, -(-count // 24))))
    axis = alt.Axis(
        values=[tick + 0.5 for tick in ticks],
        labelExpr=f"{list(numbers.values())}[floor(datum.value)]",
        grid=False,
        ticks=False,
    )
    places = alt.Axis(labelExpr=SHORT, tickCount=5)
    chart = (
        alt.Chart(data(boxes))
        .mark_rect(opacity=0.8, stroke=theme.GREY, strokeWidth=0.7)
        .encode(
            x=alt.X("from:Q", title="layer (operator number)", axis=axis,
                    scale=alt.Scale(domain=[0, count], nice=False)),
            x2="to:Q",
            y=alt.Y("low:Q", title="offset in the arena, bytes", axis=places,
                    scale=alt.Scale(domain=[0, run.memory.arena_bytes], nice=False)),
            y2="high:Q",
            color=alt.Color("kind:N", title=None, scale=colours(kinds)),
            tooltip=[
                alt.Tooltip("name:N"),
                alt.Tooltip("kind:N"),
                alt.Tooltip("bytes:Q", format=","),
                alt.Tooltip("low:Q", title="offset", format=","),
                alt.Tooltip("first:N", title="first used by"),
                alt.Tooltip("last:N", title="last used by"),
            ],
        )
    )  # fmt: skip
    return Figure(
        "arena",
        "Arena by lifetime, bytes",
        spec(chart, pixels=280),
        f"Each box is a tensor, from the first layer that uses it to the last; the arena has "
        f"{run.memory.arena_bytes:,} bytes. Where a layer works in place, two boxes overlap.",
    )
