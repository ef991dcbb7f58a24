"""Floats at the ends of their range, for networks whose results they do not make arbitrary."""

from __future__ import annotations

import numpy as np

from covp.evaluation.sample import Array, Sample
from covp.graph.arithmetic import is_tflm
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.passes.axis_orders import is_elementwise
from covp.graph.random_inputs import random_inputs

_VALUES = np.array(
    [np.nan, np.inf, -np.inf, 3.4028235e38, -3.4028235e38, 1e-40, -1e-40, 0.0, -0.0]
    + [sign * level for level in (0.49999997, 0.5, 1.5, 2.5, 3.0, 8388609.0) for sign in (1, -1)],
    np.float32,
)
_MOST_LEVELS = 1e6
_CHOOSING = frozenset(
    {
        *("QUANTIZE", "DEQUANTIZE", "REDUCE_MAX", "REDUCE_MIN", "MAX_POOL_2D", "MAX_POOL"),
        *("RESHAPE", "TRANSPOSE", "CONCATENATION", "GATHER", "SPLIT", "SPLIT_V", "STRIDED_SLICE"),
    }
)
"""Operators, beside elementwise ones, whose elements are not computed from several floats."""


def extreme_samples(graph: Graph, seed: int) -> list[Sample]:
    """Return an inference with NaN, infinities, subnormals and values next to half a step; or none.

    Where floats are added up, overflow depends on the order, so nothing can be expected.

    Args:
        graph: whose float inputs get such values.
        seed: of their places and of the other inputs.
    """
    floats = [tensor for tensor in graph.inputs if tensor.dtype == np.float32]
    if not floats or not all(map(_is_defined, graph.ops)):
        return []
    rng = np.random.default_rng(seed)
    inputs = random_inputs(graph.inputs, seed)
    drawn = [_drawn(graph, t, v, rng) for t, v in zip(graph.inputs, inputs, strict=True)]
    return [Sample.of(graph, drawn, "extremes of floats", seed)]


def _is_defined(op: Op) -> bool:
    tensors = (op.input(0), *op.outputs) if op.inputs else op.outputs
    if all(tensor.dtype.kind != "f" for tensor in tensors):
        return True
    return op.kind in _CHOOSING or is_elementwise(op)


def _drawn(graph: Graph, tensor: Tensor, value: Array, rng: np.random.Generator) -> Array:
    """Return probing values in steps of the QUANTIZE that reads the tensor, if one does."""
    if tensor.dtype != np.float32:
        return value
    read = [op for op in graph.consumers(tensor) if op.kind == "QUANTIZE"]
    step = np.float32(read[0].output.scale if read else 1)
    values = np.resize(rng.permutation(_VALUES), tensor.size)
    if any(is_tflm(op) for op in read):
        # levels beyond int32 are undefined in LiteRT's C
        values = np.where(np.abs(values) < _MOST_LEVELS, values, np.float32(_MOST_LEVELS))
    with np.errstate(all="ignore"):
        return np.asarray(values * step, np.float32).reshape(tensor.shape)
