"""A graph of its own for the passes to change."""

from __future__ import annotations

from dataclasses import replace

from covp.graph.graph import Graph, Op


def copy_graph(graph: Graph) -> Graph:
    """Return a copy with new operators and lists; immutable tensors and attributes are shared."""
    ops: list[Op] = [
        replace(op, inputs=list(op.inputs), outputs=list(op.outputs)) for op in graph.ops
    ]
    return replace(
        graph,
        inputs=list(graph.inputs),
        outputs=list(graph.outputs),
        ops=ops,
        states=list(graph.states),
    )
