"""int8 L2_NORMALIZATION and LOG_SOFTMAX: LiteRT's reference arithmetic, to the byte.

Sources: tensorflow/lite/kernels/internal/reference/integer_ops/{l2normalization,log_softmax}.h,
activations.cc (LogSoftmaxPrepare), internal/quantization_util.cc
(PreprocessLogSoftmaxScalingExp), internal/common.h (log_x_for_x_greater_than_or_equal_to_1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from covp.errors import ModelError
from covp.graph.fixed_point import (
    exp_on_negative_values,
    input_radius,
    inverse_root,
    one_over_one_plus_x,
    saturating_shift_left,
)
from covp.graph.graph import Op
from covp.graph.ops.definition import LIMITS, Array
from covp.graph.ops.normalization import INT8
from covp.graph.quantization import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    rounding_divide_by_pot,
    rounding_doubling_high_mul,
)

DIFFERENCE_BITS = 5
SUM_BITS = 12
L2_BITS = 7
"""Fractional bits of L2_NORMALIZATION's output."""
MOST_SQUARES = 1 << 15
"""Largest length of a row whose squares are guaranteed to fit in 31 bits."""
LOG_2, SQRT_HALF, FOURTH_ROOT_OF_HALF = 1488522236, 1518500250, 1805811301
QUARTER = 536870912
ALPHA_N, ALPHA_D, ALPHA_I, ALPHA_F = 117049297, 127690142, 1057819769, 638450708
"""Constants of the logarithm's rational function, with 0 integer bits."""


def check_squares(op: Op) -> None:
    """Raise ModelError for a row whose sum of squares may leave 31 bits."""
    depth = op.input(0).shape[-1]
    if depth > MOST_SQUARES:
        raise ModelError(f"a row of {depth} values; at most {MOST_SQUARES} are supported")


def l2_normalization(op: Op, x: Array) -> Array:
    """Multiply each value by the inverse root of its row's sum of squares."""
    value = x.astype(np.int64) - op.input(0).zero_point
    multiplier, shift = inverse_root((value * value).sum(axis=-1, keepdims=True))
    scaled = multiply_by_quantized_multiplier(value, multiplier, shift + L2_BITS)
    return np.asarray(np.clip(scaled, -128, 127))


@dataclass(frozen=True)
class LogSoftmaxFactors:
    """Factors that follow from the scale of the input.

    Attributes:
        factor: from differences of stored values to 5 integer bits.
        reverse: the other way round.
        least: differences below it do not count.
    """

    factor: tuple[int, int]
    reverse: tuple[int, int]
    least: int


def log_softmax_factors(op: Op) -> LogSoftmaxFactors:
    """Return the factors of int8 LOG_SOFTMAX: LogSoftmaxPrepare.

    Raises:
        ModelError: a row is too long for the sum of its exponentials, or the input's scale is not
            above 2**-26, so that it would need a shift to the right: LiteRT ends there as well.
    """
    if op.input(0).shape[-1] >= 1 << SUM_BITS:
        raise ModelError(
            f"LOG_SOFTMAX of int8 over {op.input(0).shape[-1]} values, {(1 << SUM_BITS) - 1} are "
            "the most"
        )
    real = op.input(0).scale * (1 << (31 - DIFFERENCE_BITS))
    multiplier, shift = quantize_multiplier(min(real, (1 << 31) - 1.0))
    if real <= 1:
        raise ModelError(
            f"its input has scale {op.input(0).scale:g}; LOG_SOFTMAX of int8 takes scales "
            "above 2**-26; quantize the model again"
        )
    reverse = quantize_multiplier((1 << (31 - shift)) / multiplier)
    return LogSoftmaxFactors((multiplier, shift), reverse, -input_radius(DIFFERENCE_BITS, shift))


def exponentials(op: Op) -> Array:
    """Return exp of 0 ... 255 steps below the maximum, 12 integer bits; 0 below ``least``."""
    k = log_softmax_factors(op)
    differences = -np.arange(256, dtype=np.int64)
    kept = differences >= k.least
    rescaled = multiply_by_quantized_multiplier(np.where(kept, differences, 0), *k.factor)
    powers = exp_on_negative_values(rescaled, DIFFERENCE_BITS)
    return np.where(kept, rounding_divide_by_pot(powers, SUM_BITS), 0)


def _headroom(raw: Array) -> Array:
    """Return the leading zeros of 32 bits."""
    return np.asarray(32 - np.vectorize(int.bit_length, otypes=[np.int64])(raw))


def logarithm(raw: Array) -> Array:
    """Return the logarithm of a number from 1 on with 12 integer bits; the result has 5."""
    zeros = _headroom(raw)
    first = saturating_shift_left(rounding_doubling_high_mul(raw << (zeros - 1), SQRT_HALF), 1)
    quarter = rounding_divide_by_pot(QUARTER, DIFFERENCE_BITS + 1)
    unit = 31 - (DIFFERENCE_BITS + 1)
    first_power = ((SUM_BITS - zeros) << unit) + quarter
    room = _headroom(rounding_doubling_high_mul(raw, SQRT_HALF)) - 1
    second = saturating_shift_left(raw, room)
    second_power = ((SUM_BITS - room) << unit) - quarter
    r, power = np.minimum(first, second), np.maximum(first_power, second_power)
    p, q = (r + FOURTH_ROOT_OF_HALF + 1) >> 1, (r - FOURTH_ROOT_OF_HALF) * 2
    product = rounding_doubling_high_mul
    square = product(q, q)
    above = product(q, r) + product(product(q, square), ALPHA_N)
    below = product(p, ALPHA_I + q + product(ALPHA_D, square)) + product(ALPHA_F, q)
    ratio = product(rounding_divide_by_pot(above, DIFFERENCE_BITS + 1), one_over_one_plus_x(below))
    return saturating_shift_left(product(power, LOG_2) + ratio, 1)


def log_softmax(op: Op, x: Array) -> Array:
    """Return the distance from the maximum less the logarithm of the sum, in steps of 1/16."""
    k, wide = log_softmax_factors(op), x.astype(np.int64)
    distance = wide - wide.max(axis=-1, keepdims=True)
    total = logarithm(exponentials(op)[-distance].sum(axis=-1, keepdims=True))
    reach = multiply_by_quantized_multiplier(total - (1 << 31), *k.reverse)
    kept = distance > np.maximum(k.least - 1, reach)
    rescaled = multiply_by_quantized_multiplier(np.where(kept, distance, 0), *k.factor)
    result = rounding_divide_by_pot(rescaled - total, 31 - DIFFERENCE_BITS - 4) + 127
    return np.where(kept, np.clip(result, -128, 127), -128)


LIMITS.update({"L2_NORMALIZATION": check_squares, "LOG_SOFTMAX": log_softmax_factors})
INT8.update({"L2_NORMALIZATION": l2_normalization, "LOG_SOFTMAX": log_softmax})
