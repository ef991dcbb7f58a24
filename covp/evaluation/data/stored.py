"""Real values to a tensor's stored integers, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.graph import float_scaling
from covp.graph.arithmetic import is_half_even
from covp.graph.graph import Graph, Tensor

Array = NDArray[Any]


Quantizer = Callable[[Array, Tensor], Array]
"""Conversion of finite float32 values to a tensor's dtype, scale and zero point, saturated."""


def quantizer(graph: Graph) -> Quantizer:
    """Return the quantization of a network's inputs by the library whose results it has."""
    return quantize_half_even if is_half_even(graph) else quantize


def quantize_half_even(values: Array, tensor: Tensor) -> Array:
    """Return round(value / scale) + zero point as ONNX's QuantizeLinear: halves go to even."""
    return float_scaling.quantize(values, tensor.scale, tensor.zero_point, tensor.dtype)


def quantize(values: Array, tensor: Tensor) -> Array:
    """Return round(value / scale) + zero point in float32; halves go away from zero.

    Source: AffineQuantize of tensorflow/lite/kernels/internal/reference/quantize.h, whose
    TfLiteRound is std::round.
    """
    with np.errstate(over="ignore"):
        steps = np.asarray(values, np.float32) / np.float32(tensor.scale)
    whole = np.trunc(steps)
    # the difference is exact; adding a half before would round 0.49999997 up
    whole += np.copysign(np.abs(steps - whole) >= 0.5, steps)
    info = np.iinfo(tensor.dtype)
    stored: Array = np.clip(whole.astype(np.float64) + tensor.zero_point, info.min, info.max)
    return stored.astype(tensor.dtype)


def real(stored: Array, tensor: Tensor) -> Array:
    """Return the real values of stored ones: (stored - zero point) * scale in float32.

    Args:
        stored: of the tensor's dtype, any shape.
        tensor: whose scale they have; values of one without a scale are what they are.

    Returns:
        float32; values without a scale in their own dtype.
    """
    if tensor.quantization is None:
        return stored
    return float_scaling.dequantize(stored, tensor.scale, tensor.zero_point)
