"""Operators whose inputs are all constant."""

from __future__ import annotations

from dataclasses import replace

from covp.graph.graph import Graph, Tensor
from covp.graph.ops import definition


def fold_constants(graph: Graph) -> None:
    """Compute at compile time what does not depend on the graph's inputs.

    An output of the graph, or what a state becomes, stays computed at run time: it needs a place
    in memory.
    """
    known: dict[int, Tensor] = {}
    outputs = {id(tensor) for tensor in graph.results}
    kept = []
    for op in graph.ops:
        op.inputs = [t if t is None else known.get(id(t), t) for t in op.inputs]
        constant = all(tensor is None or tensor.constant for tensor in op.inputs)
        if not constant or any(id(tensor) in outputs for tensor in op.outputs):
            kept.append(op)
            continue
        values = [None if tensor is None else tensor.data for tensor in op.inputs]
        results = definition(op.kind).reference(op, values)
        for tensor, value in zip(op.outputs, results, strict=True):
            known[id(tensor)] = replace(tensor, data=value)
    graph.ops = kept
