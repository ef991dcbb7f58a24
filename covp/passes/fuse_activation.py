"""RELU and RELU6 move into the operator that computes their input."""

from __future__ import annotations

from dataclasses import replace

from covp.graph.graph import Graph, Op
from covp.graph.quantization import activation_range

_ACTIVATIONS = {"RELU": "relu", "RELU6": "relu6"}


def fuse_activations(graph: Graph) -> None:
    """Fuse where the bits stay: the same scale on both sides, and no other reader."""
    for op in list(graph.ops):
        if op.kind not in _ACTIVATIONS:
            continue
        producer = graph.producer(op.input(0))
        if producer is not None and _may_fuse(graph, producer, op):
            producer.attributes = replace(producer.attributes, activation=_ACTIVATIONS[op.kind])
            producer.outputs = list(op.outputs)
            graph.ops.remove(op)


def _may_fuse(graph: Graph, producer: Op, op: Op) -> bool:
    middle, result = op.input(0), op.output
    if getattr(producer.attributes, "activation", None) != "none":
        return False
    if len(graph.consumers(middle)) != 1 or any(middle is tensor for tensor in graph.outputs):
        return False
    if middle.dtype != result.dtype:
        return False
    if middle.quantization is None or result.quantization is None:
        return True
    if (middle.scale, middle.zero_point) != (result.scale, result.zero_point):
        return False
    # the wider clamp of the producer must not have cut what the activation would let through
    low, high = activation_range(
        _ACTIVATIONS[op.kind], result.scale, result.zero_point, result.dtype
    )
    return low <= high
