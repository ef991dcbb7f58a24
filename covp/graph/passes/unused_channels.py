"""Unused channels: a convolution's weights for an input channel are all zero.

Trained networks hold many of them (over half of vww's multiplications). Such a channel is removed
from the tensor, and with it the filters that compute it, back through depthwise layers. Zero
times anything is zero, so the outputs are bit-exact.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.graph.graph import Graph, Op, Quantization, Tensor

_MULTIPLE = 4
"""Kernels move channels in words of four bytes: a tensor keeps a multiple of this many."""

Indices = NDArray[np.int64]


def remove_unused_channels(graph: Graph) -> None:
    """Remove channels that nothing reads, from the last layer to the first."""
    for op in reversed(list(graph.ops)):
        if op.kind == "CONV_2D" and op.input(1).data is not None:
            keep = _read_channels(op)
            chain = _chain(graph, op)
            if chain and keep.size < op.input(0).shape[3]:
                _narrow(op, chain, keep)


def _read_channels(op: Op) -> Indices:
    """Return input channels with a nonzero weight, filled up to whole words with others."""
    weights = op.input(1).data
    assert weights is not None
    parameters = op.input(1).quantization
    if parameters is not None and parameters.zero_point.any():
        return np.arange(weights.shape[3])
    read = (weights != 0).any(axis=(0, 1, 2))
    count = min(-(-max(int(read.sum()), 1) // _MULTIPLE) * _MULTIPLE, read.size)
    # used channels first, both groups in their original order
    chosen = np.argsort(~read, kind="stable")[:count]
    return np.sort(chosen)


def _chain(graph: Graph, op: Op) -> list[Op]:
    """Return the layers before ``op`` that can lose channels, the nearest first; ends in a CONV_2D.

    Empty where a tensor on the way has other readers or comes from something else.
    """
    chain: list[Op] = []
    reader = op
    while True:
        tensor = reader.input(0)
        producer = graph.producer(tensor)
        shared = len(graph.consumers(tensor)) != 1 or graph.is_result(tensor)
        if producer is None or shared or not _may_lose(producer):
            return []
        chain.append(producer)
        if producer.kind == "CONV_2D":
            return chain
        reader = producer


def _may_lose(op: Op) -> bool:
    if op.kind == "DEPTHWISE_CONV_2D":
        simple = op.attributes.depth_multiplier == 1
    else:
        simple = op.kind == "CONV_2D"
    return simple and all(t is None or t.data is not None for t in op.inputs[1:])


def _narrow(op: Op, chain: list[Op], keep: Indices) -> None:
    """Replace tensors by narrower ones; others may share the old ones, so none is changed."""
    op.inputs[1] = _select(op.input(1), keep, 3)
    reader = op
    for producer in chain:
        narrow = _select(producer.output, keep, len(producer.output.shape) - 1)
        reader.inputs[0] = narrow
        producer.outputs = [narrow]
        axis = 3 if producer.kind == "DEPTHWISE_CONV_2D" else 0
        producer.inputs[1] = _select(producer.input(1), keep, axis)
        if len(producer.inputs) > 2 and producer.inputs[2] is not None:
            producer.inputs[2] = _select(producer.input(2), keep, 0)
        reader = producer


def _select(tensor: Tensor, keep: Indices, axis: int) -> Tensor:
    """Return the tensor with some of its channels, and their scales."""
    data: NDArray[Any] | None = None
    if tensor.data is not None:
        data = np.ascontiguousarray(np.take(tensor.data, keep, axis))
    shape = (*tensor.shape[:axis], len(keep), *tensor.shape[axis + 1 :])
    quantization = tensor.quantization
    if quantization is not None and quantization.per_channel and quantization.axis == axis:
        quantization = Quantization(quantization.scale[keep], quantization.zero_point[keep], axis)
    return replace(tensor, shape=shape, quantization=quantization, data=data)
