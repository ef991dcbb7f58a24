"""`write_node_data`: a run's layers as node data of Google's Model Explorer, on the model's graph.

A file has one value for each node: ``GraphNodeData`` in node_data_builder.py of
google-ai-edge/model-explorer, without a graph's name, which applies it to the graph that is shown.
A key is the name of a node's output tensor, so it fits whatever ids an adapter gives the nodes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from covp.errors import UsageError
from covp.evaluation.documents import LayerRecord, Run
from covp.report.quantities import certainty
from covp.report.theme import BLUE, PALETTE

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
    """The contents of the files by name; cycles and shares only where the layers have cycles."""
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
