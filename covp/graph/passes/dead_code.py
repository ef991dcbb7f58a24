"""Dead code elimination: operators whose results are unused."""

from __future__ import annotations

from covp.graph.graph import Graph


def remove_dead_ops(graph: Graph) -> None:
    """Drop every operator that no output and no state of the graph depends on."""
    needed = {id(tensor) for tensor in graph.results}
    kept = []
    for op in reversed(graph.ops):
        if any(id(tensor) in needed for tensor in op.outputs):
            kept.append(op)
            needed |= {id(tensor) for tensor in op.inputs if tensor is not None}
    graph.ops = kept[::-1]
