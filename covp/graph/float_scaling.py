"""Quantized inference as onnxruntime computes it: float32 factors, ties to even.

Sources: onnxruntime's core/mlas/lib/quantize.cpp (MlasRequantizeOutput, MlasQuantizeLinear). All
functions are exact: numpy's float32 operations round once, as those of a processor do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FAR = 1 << 20
"""Bound to which levels are clipped: beyond every clamp of 8 or 16 bits."""


def rescale(sums: ArrayLike, factor: ArrayLike) -> NDArray[np.int64]:
    """Return float32(sum) * factor, rounded half to even: the output before zero point and clamp.

    Args:
        sums: int32 values.
        factor: float32; broadcast with ``sums``.
    """
    with np.errstate(all="ignore"):
        product = np.asarray(sums, np.int64).astype(np.float32) * np.asarray(factor, np.float32)
    return np.rint(np.clip(product, -FAR, FAR)).astype(np.int64)


def requantization_factor(
    source: ArrayLike, weights: ArrayLike, result: ArrayLike
) -> NDArray[np.float32]:
    """Return (source scale * weight scale) / output scale in float32 steps; overflow gives inf.

    Source: QLinearConv::ComputeOutputScale, QLinearMatMul and QGemm of onnxruntime.
    """
    with np.errstate(over="ignore"):
        product = np.asarray(source, np.float32) * np.asarray(weights, np.float32)
        return np.asarray(product / np.asarray(result, np.float32), np.float32)


def quantize(
    values: ArrayLike, scale: float, zero_point: int, dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Compute QuantizeLinear: value / scale in float32, half to even, zero point, saturated.

    A NaN becomes the least value, as the conversion of an x86 processor does.
    """
    info = np.iinfo(dtype)
    with np.errstate(all="ignore"):
        ratio = np.asarray(values, np.float32) / np.float32(scale)
    least = info.min - zero_point
    inside = np.clip(np.where(np.isnan(ratio), least, ratio), least, info.max - zero_point)
    return np.asarray((np.rint(inside).astype(np.int64) + zero_point).astype(dtype))


def dequantize(stored: ArrayLike, scale: float, zero_point: int) -> NDArray[np.float32]:
    """Compute DequantizeLinear: float32(stored - zero point) * scale."""
    centred = np.asarray(stored).astype(np.int64) - zero_point
    return np.asarray(centred.astype(np.float32) * np.float32(scale))


def multiply_add(values: ArrayLike, factor: np.float32, addend: ArrayLike) -> NDArray[np.float32]:
    """Return values * factor + addend, rounded once; exact products need small integers."""
    product = np.asarray(values, np.float64) * np.float64(factor)
    return np.asarray((product + np.asarray(addend, np.float64)).astype(np.float32))


def saturate(levels: ArrayLike, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Round float32 levels, zero point included, half to even and saturate them to ``dtype``."""
    info = np.iinfo(dtype)
    return np.asarray(np.rint(np.clip(levels, info.min, info.max)).astype(dtype))
