"""`ModelGraph`: a part of the page with the model's layers as boxes, from input to output."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from covp.errors import UsageError
from covp.evaluation.documents import LayerRecord, Run
from covp.report.quantities import certainty, label, short
from covp.report.theme import BLUE, PALETTE

_STEP, _HIGH, _WIDE, _LANE, _TOP = 40, 28, 400, 13, 12
_SHOWN = 560
"""Pixels that are shown of a long model, which is scrolled in its box."""
Edge = tuple[int, int]


@dataclass(frozen=True)
class ModelGraph:
    """The layers in the order in which they run; the stronger its colour, the more cycles."""

    run: Run

    def html(self) -> str:
        """Return an SVG in a box that scrolls."""
        layers = self.run.layers
        bends = lanes(edges(layers))
        wide = _WIDE + 24 + _LANE * (1 + max(bends.values(), default=0))
        high = _TOP * 2 + _STEP * len(layers) - (_STEP - _HIGH)
        drawn = "".join([*map(_edge, bends.items()), *map(self._box, range(len(layers)))])
        kind = self.run.cycles_source.kind if self.run.cycles_source else ""
        sure = ", ".join(dict.fromkeys(filter(None, (kind, certainty(self.run)))))
        shade = (
            f"The stronger the blue, the more of the run's cycles ({sure}). "
            if self.run.cycles
            else ""
        )
        order = "Lines are tensors from layer to layer. "
        if any(layer.inputs is None for layer in layers):
            order = "Lines are the order alone: this document is of an older covp. "
        rest = "Dashed: not on the core. The pointer on a layer shows its arena and output."
        return (
            '<figure id="graph"><h3>The model\'s graph</h3><div class=scroll tabindex=0 '
            f'style="max-height:{_SHOWN}px;overflow:auto"><svg role=img width={wide} height={high} '
            f'font-size=12 fill="currentColor" aria-label="layers and their tensors">{drawn}</svg>'
            f"</div><figcaption>{shade}{order}{rest}</figcaption></figure>"
        )

    def _box(self, place: int) -> str:
        layer, run = self.run.layers[place], self.run
        share = layer.cycles / run.cycles if layer.cycles is not None and run.cycles else None
        most = max((one.cycles or 0) for one in run.layers) / run.cycles if run.cycles else 0
        shade = 0.7 * share / most if share and most else 0
        live = "" if layer.live_bytes is None else f"{layer.live_bytes:,} bytes of the arena live"
        cycles = "" if layer.cycles is None else f"{layer.cycles:,} cycles"
        told = (label(layer), f"on {layer.target}", cycles, live, short(layer.tensor))
        y = _TOP + _STEP * place
        dashes = "" if layer.target == "cpu" else ' stroke-dasharray="5 3"'
        percent = "" if share is None else f"{share:.1%}"
        return (
            f"<g class=node><title>{escape(', '.join(filter(None, told)))}</title>"
            f'<rect x=1 y={y} width={_WIDE} height={_HIGH} rx=5 fill="{BLUE}" '
            f'fill-opacity="{shade:.3f}" stroke="currentColor" stroke-opacity=".45"{dashes} />'
            f"<text x=10 y={y + 18}>{escape(label(layer)[:28])}</text>"
            f"<text x=230 y={y + 18}>{escape(layer.target[:20])}</text>"
            f'<text x={_WIDE - 8} y={y + 18} text-anchor="end">{percent}</text></g>'
        )


def edges(layers: list[LayerRecord]) -> list[Edge]:
    """Return edges between layers' places; the order alone where inputs are not known."""
    if any(layer.inputs is None for layer in layers):
        return [(i, i + 1) for i in range(len(layers) - 1)]
    found: list[Edge] = []
    makers: dict[str, int] = {}
    for place, layer in enumerate(layers):
        found += [(makers[name], place) for name in layer.inputs or () if name in makers]
        if layer.tensor:
            makers[layer.tensor] = place
    return found


def lanes(found: list[Edge]) -> dict[Edge, int]:
    """Return each edge's lane beside the boxes, so that none cross; 0: straight down."""
    taken: list[Edge] = []
    lane: dict[Edge, int] = {}
    for edge in sorted(found, key=lambda one: (one[1] - one[0], one)):
        if edge[1] - edge[0] == 1:
            lane[edge] = 0
            continue
        used = {lane[one] for one in taken if one[0] < edge[1] and edge[0] < one[1]}
        lane[edge] = next(i for i in range(1, len(taken) + 2) if i not in used)
        taken.append(edge)
    return lane


def _edge(bend: tuple[Edge, int]) -> str:
    (start, end), lane = bend
    if lane == 0:
        x, top = _WIDE // 2, _TOP + _STEP * start + _HIGH
        path = f"M{x} {top}v{_STEP - _HIGH}m-4 -5l4 5l4 -5"
    else:
        out = 10 + _LANE * lane
        low, high = _TOP + _STEP * start + 20, _TOP + _STEP * end + 8
        path = f"M{_WIDE + 1} {low}h{out}V{high}h{-out}m5 -4l-5 4l5 4"
    return f'<path d="{path}" fill=none stroke="currentColor" stroke-opacity=".6" />'


_GRADIENT = [{"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": BLUE}]


def write_node_data(path: Path, run: Run) -> list[Path]:
    """Write the cycles to ``path``, and beside it the shares and the placement.

    Args:
        path: such as kws.json, which has kws-share.json and kws-placement.json beside it.
        run: of a model in a file; layers without a tensor are left out.

    Returns:
        The files.

    Raises:
        UsageError: a file cannot be written.
    """
    written = []
    for name, content in node_data(run).items():
        file = path if name == "cycles" else path.with_stem(f"{path.stem}-{name}")
        try:
            file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot be written: {error.strerror}", where=file) from None
        written.append(file)
    return written


def node_data(run: Run) -> dict[str, dict[str, Any]]:
    """Return the files' contents by name; cycles and shares only where the layers have cycles."""
    found: dict[str, dict[str, Any]] = {}
    layers = [layer for layer in run.layers if layer.tensor]
    if run.cycles and any(layer.cycles is not None for layer in layers):
        source = run.cycles_source
        kind = ", ".join(dict.fromkeys([source.kind if source else "", certainty(run)]))
        cycles = {str(one.tensor): one.cycles for one in layers if one.cycles is not None}
        shares = {name: round(100 * count / run.cycles, 4) for name, count in cycles.items()}
        found["cycles"] = _node_data(f"cycles ({kind})", cycles)
        found["share"] = _node_data(f"% of the cycles ({kind})", shares)
    targets = list(dict.fromkeys(layer.target for layer in layers))
    found["placement"] = {
        "name": "runs on",
        "results": {str(one.tensor): _target_colour(one, targets) for one in layers},
        "showLabelCountColumnsInChildrenStatsTable": True,
    }
    return found


def _node_data(name: str, values: dict[str, Any]) -> dict[str, Any]:
    results = {tensor: {"value": value} for tensor, value in values.items()}
    return {"name": name, "results": results, "gradient": _GRADIENT}


def _target_colour(layer: LayerRecord, targets: Sequence[str]) -> dict[str, str]:
    colour = PALETTE[targets.index(layer.target) % len(PALETTE)]
    return {"value": layer.target, "bgColor": colour}
