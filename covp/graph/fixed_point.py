"""gemmlowp's fixed-point functions (fixedpoint/fixedpoint.h), vectorized and exact.

A raw int32 with k integer bits represents raw / 2**(31 - k). All arrays are int64 that hold int32
values. TFLM's softmax, logistic and tanh are built from these.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from covp.graph.quantization import (
    INT32_MAX,
    INT32_MIN,
    rounding_divide_by_pot,
    rounding_doubling_high_mul,
)

Raw = NDArray[Any]

# exp(-2**e) with 0 integer bits, from e = -2
_EXP_FACTORS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
_EXP_MINUS_ONE_EIGHTH = 1895147668
_ONE_THIRD = 715827883
_48_OVER_17 = 1515870810  # 2 integer bits
_MINUS_32_OVER_17 = -1010580540


def saturating_shift_left(raw: ArrayLike, bits: int) -> Raw:
    """raw * 2**bits, saturated to int32: SaturatingRoundingMultiplyByPOT."""
    return np.asarray(np.clip(np.asarray(raw, np.int64) << bits, INT32_MIN, INT32_MAX))


def exp_on_negative_values(raw: ArrayLike, integer_bits: int) -> Raw:
    """exp(a) for a <= 0; the result has 0 integer bits. ``integer_bits`` up to 5."""
    a = np.asarray(raw, np.int64)
    fraction_bits = 31 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    offset = (a & (quarter - 1)) - quarter
    result = _exp_between_minus_quarter_and_0(saturating_shift_left(offset, integer_bits))
    remainder = offset - a
    for exponent, factor in enumerate(_EXP_FACTORS, start=-2):
        if integer_bits > exponent:
            chosen = (remainder & (1 << (fraction_bits + exponent))) != 0
            result = np.where(chosen, rounding_doubling_high_mul(result, factor), result)
    return np.where(a == 0, INT32_MAX, result)


def _exp_between_minus_quarter_and_0(a: Raw) -> Raw:
    """Taylor's series around -1/8."""
    x = a + (1 << 28)
    x2 = rounding_doubling_high_mul(x, x)
    x3 = rounding_doubling_high_mul(x2, x)
    x4 = rounding_doubling_high_mul(x2, x2)
    cubic = rounding_doubling_high_mul(rounding_divide_by_pot(x4, 2) + x3, _ONE_THIRD)
    series = x + rounding_divide_by_pot(cubic + x2, 1)
    return _EXP_MINUS_ONE_EIGHTH + rounding_doubling_high_mul(_EXP_MINUS_ONE_EIGHTH, series)


def _half_reciprocal(raw: Raw) -> Raw:
    """2 / (1 + a) for a in [0, 1], with 2 integer bits: three Newton-Raphson steps."""
    half_denominator = (raw + INT32_MAX + 1) >> 1  # RoundingHalfSum of what is not negative
    x = _48_OVER_17 + rounding_doubling_high_mul(half_denominator, _MINUS_32_OVER_17)
    for _ in range(3):
        error = (1 << 29) - rounding_doubling_high_mul(half_denominator, x)
        x = x + saturating_shift_left(rounding_doubling_high_mul(x, error), 2)
    return x


def one_over_one_plus_x(raw: ArrayLike) -> Raw:
    """1 / (1 + a) for a in [0, 1], 0 integer bits on both sides."""
    return saturating_shift_left(_half_reciprocal(np.asarray(raw, np.int64)), 1)


def logistic(raw: ArrayLike, integer_bits: int) -> Raw:
    """1 / (1 + exp(-a)); the result has 0 integer bits."""
    a = np.asarray(raw, np.int64)
    positive = one_over_one_plus_x(exp_on_negative_values(-np.abs(a), integer_bits))
    signed = np.where(a > 0, positive, INT32_MAX - positive)
    return np.where(a == 0, 1 << 30, signed)


def tanh(raw: ArrayLike, integer_bits: int) -> Raw:
    """tanh(a); the result has 0 integer bits."""
    a = np.asarray(raw, np.int64)
    # doubling the argument is one integer bit more on the same raw value
    exponential = exp_on_negative_values(-np.abs(a), integer_bits + 1)
    magnitude = saturating_shift_left(_half_reciprocal(exponential) - (1 << 29), 2)
    return np.where(a == 0, 0, np.where(a < 0, -magnitude, magnitude))


def input_radius(integer_bits: int, left_shift: int) -> int:
    """The largest difference that does not overflow: CalculateInputRadius."""
    largest = ((1 << integer_bits) - 1) * (1 << (31 - integer_bits))
    return math.floor(largest / 2.0**left_shift)
