"""Integer arithmetic of quantized inference, as TFLite Micro's reference kernels do it.

Source: tensorflow/lite/kernels/internal/common.h and quantization_util.cc (double rounding:
saturating rounding doubling high multiply, then rounding divide by a power of two), gemmlowp's
fixedpoint.h. All functions are vectorized over int32 arrays and exact.

`covp.hardware.arithmetic.requantize` computes the same from the same sources and shares no code
with this module on purpose: a hardware model is compared with the reference, and an error in
common code would be in both.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1


@lru_cache(maxsize=8192)  # the channels of a model are resolved again for every input
def quantize_multiplier(real: float) -> tuple[int, int]:
    """Return a real factor as (multiplier, shift): real = multiplier / 2**31 * 2**shift.

    ``multiplier`` is 0 or in [2**30, 2**31); ``shift`` is positive to the left. As
    QuantizeMultiplier: round half away from zero, factors below 2**-31 become zero.
    """
    if real == 0.0:
        return 0, 0
    fraction, shift = math.frexp(real)
    scaled = fraction * (1 << 31)
    multiplier = math.floor(scaled + 0.5) if scaled >= 0 else math.ceil(scaled - 0.5)
    if multiplier == 1 << 31:
        multiplier //= 2
        shift += 1
    if shift < -31:
        return 0, 0
    if shift > MOST_SHIFT:
        return INT32_MAX, MOST_SHIFT
    return multiplier, shift


MOST_SHIFT = 30
"""The largest shift of `quantize_multiplier`."""


def rounding_doubling_high_mul(a: ArrayLike, b: ArrayLike) -> NDArray[np.int64]:
    """Return round(a * b / 2**31), ties up: gemmlowp's SaturatingRoundingDoublingHighMul."""
    product = np.asarray(np.asarray(a, np.int64) * np.asarray(b, np.int64))
    product += 1 << 30
    product >>= 31
    return np.minimum(product, INT32_MAX, out=product)


def rounding_divide_by_pot(x: ArrayLike, exponent: ArrayLike) -> NDArray[np.int64]:
    """Return round(x / 2**exponent), ties away from zero: gemmlowp's RoundingDivideByPOT."""
    value = np.asarray(x, np.int64)
    shift = np.asarray(exponent, np.int64)
    half = np.left_shift(1, shift, dtype=np.int64) >> 1
    # subtract 1 below zero, so that ties go down there; an exponent of 0 has no ties
    result = np.asarray((value >> 63) & -(half > 0).astype(np.int64))
    result += value
    result += half
    result >>= shift
    return result


def multiply_by_quantized_multiplier(
    x: ArrayLike, multiplier: ArrayLike, shift: ArrayLike
) -> NDArray[np.int64]:
    """Return x * multiplier / 2**31 * 2**shift with TFLM's two roundings.

    Args:
        x: int32 values; a left shift wraps to 32 bits, as the C code does on every target in use.
        multiplier: 0 or in [2**30, 2**31); broadcast with ``x``.
        shift: -31 to 30, positive to the left; broadcast with ``x``.
    """
    shift = np.asarray(shift, np.int64)
    left = np.maximum(shift, 0)
    right = np.maximum(-shift, 0)
    value = np.asarray(x, np.int64) << left if left.any() else np.asarray(x)
    shifted = value.astype(np.int32, copy=False)
    return rounding_divide_by_pot(rounding_doubling_high_mul(shifted, multiplier), right)


def multiply_by_reduced_multiplier(
    x: ArrayLike, multiplier: ArrayLike, shift: ArrayLike
) -> NDArray[np.int64]:
    """Return x * multiplier / 2**31 * 2**shift for 64-bit x and 16 bits of the multiplier.

    Source: MultiplyByQuantizedMultiplier(int64_t, ...), tensorflow/lite/kernels/internal/common.cc:
    one rounding, ties up; the result wraps to 32 bits.

    Args:
        x: int64 values below 2**47 in magnitude.
        multiplier: 0 or in [2**30, 2**31); broadcast with ``x``.
        shift: -31 to `MOST_REDUCED_SHIFT`, positive to the left; broadcast with ``x``.
    """
    total = 15 - np.asarray(shift, np.int64)
    product = np.asarray(x, np.int64) * reduced_multiplier(multiplier)
    rounded = (product + np.left_shift(1, total - 1, dtype=np.int64)) >> total
    return np.asarray(rounded.astype(np.int32), np.int64)


MOST_REDUCED_SHIFT = 7
"""The largest shift that TFLM's form for 64 bits takes."""


def reduced_multiplier(multiplier: ArrayLike) -> NDArray[np.int64]:
    """Return a multiplier of 31 bits rounded to 15."""
    value = np.asarray(multiplier, np.int64)
    return np.where(value < 0x7FFF0000, (value + (1 << 15)) >> 16, 0x7FFF)


def activation_range(
    activation: str, scale: float, zero_point: int, dtype: np.dtype[Any]
) -> tuple[int, int]:
    """Return the clamp of a fused activation in stored units: CalculateActivationRangeQuantized.

    Args:
        activation: "none", "relu", "relu6" or "relu_n1_to_1".
        scale, zero_point: of the output.
        dtype: of the output, an integer type; bounds the clamp.

    Returns:
        The lowest and the highest stored value.
    """
    info = np.iinfo(dtype)

    def store(real: float) -> int:
        value = np.float32(real) / np.float32(scale)
        rounded = math.floor(abs(float(value)) + 0.5) * (1 if value >= 0 else -1)
        return zero_point + rounded

    low, high = int(info.min), int(info.max)
    if activation == "relu":
        return max(low, store(0.0)), high
    if activation == "relu6":
        return max(low, store(0.0)), min(high, store(6.0))
    if activation == "relu_n1_to_1":
        return max(low, store(-1.0)), min(high, store(1.0))
    return low, high


def float_activation_range(activation: str) -> tuple[float, float]:
    """Return the clamp of a fused activation in float: CalculateActivationRange."""
    return {
        "relu": (0.0, math.inf),
        "relu6": (0.0, 6.0),
        "relu_n1_to_1": (-1.0, 1.0),
    }.get(activation, (-math.inf, math.inf))
