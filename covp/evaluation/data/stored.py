"""Real values to a tensor's stored integers, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.graph import float_scaling
from covp.graph.graph import Tensor

Array = NDArray[Any]


def quantize(values: Array, tensor: Tensor, half_to_even: bool = False) -> Array:
    """Return round(value / scale) + zero point in float32, saturated.

    Halves go away from zero: AffineQuantize of tensorflow/lite/kernels/internal/reference/
    quantize.h, whose TfLiteRound is std::round; with ``half_to_even`` to the even neighbour, as
    ONNX's QuantizeLinear.

    Args:
        values: float32, finite.
        tensor: of an integer type, whose scale and zero point they get.
        half_to_even: see above.

    Returns:
        The tensor's dtype, in the shape of the values.
    """
    if half_to_even:
        return float_scaling.quantize(values, tensor.scale, tensor.zero_point, tensor.dtype)
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
