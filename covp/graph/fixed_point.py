"""gemmlowp's fixed-point functions (fixedpoint/fixedpoint.h), vectorized and exact.

A raw int32 with k integer bits represents raw / 2**(31 - k), a raw int16 raw / 2**(15 - k). All
arrays are int64 that hold values of ``width`` bits, 32 or 16. TFLM's softmax, logistic and tanh are
built from the former, LiteRT's LSTM from the latter.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from covp.graph.quantization import (
    INT32_MAX,
    rounding_divide_by_pot,
    rounding_doubling_high_mul,
)

Raw = NDArray[Any]

EXP_FACTORS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
"""exp(-2**e) with 0 integer bits, from e = -2."""
EXP_MINUS_ONE_EIGHTH = 1895147668
ONE_THIRD = 715827883
FORTY_EIGHT_OVER_17 = 1515870810
"""48 / 17 with 2 integer bits, as -32 / 17 below."""
MINUS_32_OVER_17 = -1010580540


def saturating_shift_left(raw: ArrayLike, bits: int | Raw, width: int = 32) -> Raw:
    """Return raw * 2**bits, saturated: SaturatingRoundingMultiplyByPOT."""
    most = (1 << (width - 1)) - 1
    return np.asarray(np.clip(np.asarray(raw, np.int64) << bits, -most - 1, most))


def _product(a: ArrayLike, b: ArrayLike, width: int) -> Raw:
    """Return SaturatingRoundingDoublingHighMul of values of 16 or 32 bits."""
    if width == 32:
        return rounding_doubling_high_mul(a, b)
    product = np.asarray(a, np.int64) * np.asarray(b, np.int64)
    return np.asarray(np.minimum((product + (1 << (width - 2))) >> (width - 1), 0x7FFF))


def constant(raw: int, width: int) -> int:
    """Return a constant of gemmlowp, which states all with 32 bits: RescaleConstantInitializer."""
    return int(rounding_divide_by_pot(raw, 32 - width))


def exp_on_negative_values(raw: ArrayLike, integer_bits: int, width: int = 32) -> Raw:
    """Return exp(a) for a <= 0 with 0 integer bits; a below -32 gives 0."""
    a = np.asarray(raw, np.int64)
    fraction_bits = width - 1 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    offset = (a & (quarter - 1)) - quarter
    scaled = saturating_shift_left(offset, integer_bits, width)
    result = _exp_between_minus_quarter_and_0(scaled, width)
    remainder = offset - a
    for exponent, factor in enumerate(EXP_FACTORS, start=-2):
        if integer_bits > exponent:
            chosen = (remainder & (1 << (fraction_bits + exponent))) != 0
            smaller = _product(result, constant(factor, width), width)
            result = np.where(chosen, smaller, result)
    result = np.where(a < least_exponent(integer_bits, width), 0, result)
    return np.where(a == 0, (1 << (width - 1)) - 1, result)


def least_exponent(integer_bits: int, width: int) -> int:
    """Return -32 as a raw value, exp's least argument; with up to 5 integer bits none is less."""
    return -32 << (width - 1 - integer_bits)


def _exp_between_minus_quarter_and_0(a: Raw, width: int) -> Raw:
    """Return exp(a) for a in [-1/4, 0): the Taylor series around -1/8."""
    x = a + (1 << (width - 4))
    x2 = _product(x, x, width)
    x3 = _product(x2, x, width)
    x4 = _product(x2, x2, width)
    third = constant(ONE_THIRD, width)
    cubic = _product(rounding_divide_by_pot(x4, 2) + x3, third, width)
    series = x + rounding_divide_by_pot(cubic + x2, 1)
    middle = constant(EXP_MINUS_ONE_EIGHTH, width)
    result = middle + _product(middle, series, width)
    return np.asarray(np.minimum(result, (1 << (width - 1)) - 1))


def _half_reciprocal(raw: Raw, width: int) -> Raw:
    """Return 2 / (1 + a) for a in [0, 1], with 2 integer bits: three Newton-Raphson steps."""
    # RoundingHalfSum of non-negative values
    half_denominator = (raw + (1 << (width - 1))) >> 1
    slope = constant(MINUS_32_OVER_17, width)
    x = constant(FORTY_EIGHT_OVER_17, width) + _product(half_denominator, slope, width)
    for _ in range(3):
        error = (1 << (width - 3)) - _product(half_denominator, x, width)
        x = x + saturating_shift_left(_product(x, error, width), 2, width)
    return x


def one_over_one_plus_x(raw: ArrayLike, width: int = 32) -> Raw:
    """Return 1 / (1 + a) for a in [0, 1]; argument and result have 0 integer bits."""
    return saturating_shift_left(_half_reciprocal(np.asarray(raw, np.int64), width), 1, width)


def logistic(raw: ArrayLike, integer_bits: int, width: int = 32) -> Raw:
    """Return 1 / (1 + exp(-a)) with 0 integer bits."""
    a = np.asarray(raw, np.int64)
    exponential = exp_on_negative_values(-np.abs(a), integer_bits, width)
    positive = one_over_one_plus_x(exponential, width)
    signed = np.where(a > 0, positive, (1 << (width - 1)) - 1 - positive)
    return np.where(a == 0, 1 << (width - 2), signed)


def tanh(raw: ArrayLike, integer_bits: int, width: int = 32) -> Raw:
    """Return tanh(a) with 0 integer bits."""
    a = np.asarray(raw, np.int64)
    # one more integer bit on the same raw value doubles the argument
    exponential = exp_on_negative_values(-np.abs(a), integer_bits + 1, width)
    half = _half_reciprocal(exponential, width)
    magnitude = saturating_shift_left(half - (1 << (width - 3)), 2, width)
    return np.where(a == 0, 0, np.where(a < 0, -magnitude, magnitude))


def input_radius(integer_bits: int, left_shift: int) -> int:
    """Return the largest difference that does not overflow: CalculateInputRadius."""
    largest = ((1 << integer_bits) - 1) * (1 << (31 - integer_bits))
    return math.floor(largest / 2.0**left_shift)


def _bits(x: Raw) -> Raw:
    """Return the bit length of each non-negative integer."""
    return np.asarray(np.vectorize(int.bit_length, otypes=[np.int64])(x))


def reciprocal(x: ArrayLike) -> tuple[Raw, Raw]:
    """Return 1 / x of positive integers as (raw, bits), raw / 2**31 / 2**bits: GetReciprocal."""
    value = np.asarray(x, np.int64)
    headroom = 32 - _bits(value)
    return one_over_one_plus_x((value << headroom) - (1 << 31)), 31 - headroom


def inverse_root(x: ArrayLike) -> tuple[Raw, Raw]:
    """Return 1 / sqrt(x) of integers as (multiplier, left shift).

    GetInvSqrtQuantizedMultiplierExp: five Newton-Raphson steps; 0 counts as 1.
    """
    value = np.asarray(x, np.int64)
    pairs_down = np.maximum(0, (_bits(value) - 28) // 2)
    reduced = np.maximum(value >> (2 * pairs_down), 2)
    pairs_up = (31 - _bits(reduced)) // 2 - 1
    shift = 11 + pairs_down - pairs_up
    half_input = rounding_divide_by_pot((reduced << (2 * pairs_up)) >> 1, 1)
    root = np.full(value.shape, 1 << 28, np.int64)
    for _ in range(5):
        square = rounding_doubling_high_mul(root, root)  # 6 integer bits
        cube = saturating_shift_left(rounding_doubling_high_mul(square, root), 6)  # 9, then 3
        grown = rounding_doubling_high_mul((1 << 28) + (1 << 27), root)
        root = saturating_shift_left(grown - rounding_doubling_high_mul(half_input, cube), 3)
    root = rounding_doubling_high_mul(root, 1518500250)
    root = root << np.maximum(-shift, 0)
    one = value <= 1
    return np.where(one, INT32_MAX, root), np.where(one, 0, -np.maximum(shift, 0))
