"""Fusions of a layer with what follows or precedes it: activations, padding, constants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.graph.attributes import Pad, Padding
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.ops import definition
from covp.graph.ops.definition import ieee

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


def fuse_pads(graph: Graph) -> None:
    """Fuse where that is bit-exact: rows and columns padded with the stored value of zero."""
    for op in graph.ops:
        if op.kind not in ("CONV_2D", "DEPTHWISE_CONV_2D"):
            continue
        pad = graph.producer(op.input(0))
        if pad is not None and pad.kind in ("PAD", "PADV2") and _may_fuse_pad(graph, pad):
            (top, bottom), (left, right) = pad.attributes.paddings[1:3]
            own = op.attributes.padding
            padding = Padding(
                own.top + top, own.bottom + bottom, own.left + left, own.right + right
            )
            op.attributes = replace(op.attributes, padding=padding)
            op.inputs[0] = pad.inputs[0]
    # pads that are unused now are removed as dead code


def _may_fuse_pad(graph: Graph, pad: Op) -> bool:
    attributes: Pad = pad.attributes
    source, result = pad.input(0), pad.output
    if len(source.shape) != 4 or any(map(any, (attributes.paddings[0], attributes.paddings[3]))):
        return False
    if source.quantization is None or result.quantization is None:
        return attributes.value == 0.0
    same = (source.scale, source.zero_point) == (result.scale, result.zero_point)
    return same and attributes.value == source.zero_point


_CHANNEL_AXIS = {
    **dict.fromkeys(("CONV_2D", "CONV_ND", "FULLY_CONNECTED", "TRANSPOSE_CONV"), 0),
    "DEPTHWISE_CONV_2D": 3,
}
"""Kind to the axis of its weights that runs along the output's last."""
_FOLDED = ("ADD", "SUB", "MUL", "DIV")


def fold_scales(graph: Graph) -> None:
    """Fold float32 MUL, DIV, ADD and SUB of a constant per channel into the layer before.

    The results are those of the graph before up to rounding.
    """
    for op in list(graph.ops):
        layer = _layer_before(graph, op)
        constant = None if layer is None else _per_channel(op)
        if layer is None or constant is None:
            continue
        activation = getattr(op.attributes, "activation", "none")
        if activation != "none" and not hasattr(layer.attributes, "activation"):
            continue
        if not _fold(layer, op.kind, constant):
            continue
        if activation != "none":
            layer.attributes = replace(layer.attributes, activation=activation)
        layer.outputs = list(op.outputs)
        graph.ops.remove(op)


def _layer_before(graph: Graph, op: Op) -> Op | None:
    """Return the layer that alone gives an operator its data, if its weights may change."""
    if op.kind not in _FOLDED or op.output.dtype != np.float32:
        return None
    data = [t for t in op.inputs if t is not None and t.data is None]
    layer = graph.producer(data[0]) if len(data) == 1 else None
    if layer is None or layer.kind not in _CHANNEL_AXIS or graph.is_result(data[0]):
        return None
    fixed = all(t is None or t.data is not None for t in layer.inputs[1:])
    plain = getattr(layer.attributes, "activation", "none") == "none"
    return layer if fixed and plain and graph.consumers(data[0]) == [op] else None


def _per_channel(op: Op) -> NDArray[Any] | None:
    """Return the constant operand, one element per channel; None where it is anything else."""
    first, second = op.input(0), op.input(1)
    data, constant = (first, second) if second.data is not None else (second, first)
    if data is second and op.kind in ("SUB", "DIV"):
        return None
    channels = data.shape[-1]
    along = constant.size == 1 or (constant.size == channels and constant.shape[-1] == channels)
    if constant.data is None or op.output.shape != data.shape or not along:
        return None
    values = np.broadcast_to(constant.data.reshape(-1), (channels,))
    with np.errstate(divide="ignore"):
        factor = 1 / values if op.kind == "DIV" else values
    return values if np.isfinite(factor).all() else None


def _fold(layer: Op, kind: str, constant: NDArray[Any]) -> bool:
    """Fold a constant into a layer; return False if weights would leave the range of float32."""
    weights = layer.input(1)
    bias = layer.inputs[2] if len(layer.inputs) > 2 else None
    assert weights.data is not None
    factor = np.ones_like(constant)
    term = np.zeros_like(constant)
    if kind in ("MUL", "DIV"):
        factor = constant if kind == "MUL" else 1 / constant
    else:
        term = constant if kind == "ADD" else -constant
    shape = [1] * weights.data.ndim
    shape[_CHANNEL_AXIS[layer.kind]] = -1
    old = np.zeros_like(constant) if bias is None or bias.data is None else bias.data
    name = f"{layer.name}_folded"
    with ieee():
        scaled = (weights.data * factor.reshape(shape)).astype(np.float32)
        data = (old * factor + term).astype(np.float32)
    if not (np.isfinite(scaled).all() and np.isfinite(data).all()):
        return False
    if kind in ("MUL", "DIV"):
        layer.inputs[1] = replace(weights, name=f"{weights.name}_of_{name}", data=scaled)
    if bias is not None or kind in ("ADD", "SUB"):
        layer.inputs[2:] = [Tensor(f"{name}_bias", data.shape, data.dtype, None, data)]
    return True
