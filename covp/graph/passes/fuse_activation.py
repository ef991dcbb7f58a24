"""RELU and RELU6 move into the operator that computes their input."""

from __future__ import annotations

from dataclasses import replace

from covp.graph.graph import Graph, Op
from covp.graph.ops import definition

_ACTIVATIONS = {"RELU": "relu", "RELU6": "relu6"}


def fuse_activations(graph: Graph) -> None:
    """Fuse activations where it is bit-exact: the same scale on both sides and no other reader."""
    producers = {id(tensor): op for op in graph.ops for tensor in op.outputs}
    for op in list(graph.ops):
        if op.kind not in _ACTIVATIONS:
            continue
        producer = producers.get(id(op.input(0)))
        if producer is not None and _may_fuse(graph, producer, op):
            producer.attributes = replace(producer.attributes, activation=_ACTIVATIONS[op.kind])
            producer.outputs = list(op.outputs)
            producers[id(op.output)] = producer
            graph.ops.remove(op)


def _may_fuse(graph: Graph, producer: Op, op: Op) -> bool:
    middle, result = op.input(0), op.output
    if not definition(producer.kind).clamps or producer.attributes.activation != "none":
        return False
    if len(graph.consumers(middle)) != 1 or graph.is_result(middle):
        return False
    if middle.dtype != result.dtype:
        return False
    if middle.quantization is None or result.quantization is None:
        return True
    return (middle.scale, middle.zero_point) == (result.scale, result.zero_point)
