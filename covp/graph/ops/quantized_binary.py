"""int8 functions of two elements: LiteRT's reference arithmetic, to the byte.

Sources: tensorflow/lite/kernels/internal/reference/{comparisons,div,prelu}.h,
kernels/{squared_difference,maximum_minimum,select}.cc. A division by zero, which they leave
undefined, gives the largest
or least value.
"""

from __future__ import annotations

import numpy as np

from covp.errors import ModelError
from covp.graph.fixed_point import reciprocal
from covp.graph.graph import Op
from covp.graph.ops.definition import LIMITS, Array
from covp.graph.ops.pointwise import QUANTIZED
from covp.graph.quantization import (
    activation_range,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    rounding_divide_by_pot,
    rounding_doubling_high_mul,
)

Factor = tuple[int, int]
COMPARED_BITS = 8
"""Bits by which comparisons shift their inputs left before scaling them."""
_SQUARED_BITS = {"int8": 7, "int16": 0}


def squared_bits(op: Op) -> int:
    """Return the bits by which SQUARED_DIFFERENCE shifts its inputs left."""
    return _SQUARED_BITS[op.input(0).dtype.name]


COMPARISONS = {
    "EQUAL": np.equal,
    "GREATER": np.greater,
    "GREATER_EQUAL": np.greater_equal,
    "LESS": np.less,
    "LESS_EQUAL": np.less_equal,
    "NOT_EQUAL": np.not_equal,
}


def subtract_zero_point(op: Op, position: int, x: Array) -> Array:
    """Return an input less its zero point."""
    return np.asarray(x.astype(np.int64) - op.input(position).zero_point)


def compared_factors(op: Op) -> tuple[Factor, Factor]:
    """Return the factors of both inputs of a comparison: their scales, which must be below 1."""
    for position in (0, 1):
        if op.input(position).scale >= 1:
            raise ModelError(
                f"tensor {op.input(position).name} has scale {op.input(position).scale:g}; "
                "comparisons take scales below 1, as in TFLite",
                tensor=op.input(position).name,
            )
    return quantize_multiplier(op.input(0).scale), quantize_multiplier(op.input(1).scale)


def _compare(op: Op, x: Array, y: Array) -> Array:
    first, second = compared_factors(op)
    a = multiply_by_quantized_multiplier(subtract_zero_point(op, 0, x) << COMPARED_BITS, *first)
    b = multiply_by_quantized_multiplier(subtract_zero_point(op, 1, y) << COMPARED_BITS, *second)
    return np.asarray(COMPARISONS[op.kind](a, b))


def _clip(op: Op, values: Array, activation: str = "none") -> Array:
    out = op.output
    limits = activation_range(activation, out.scale, out.zero_point, out.dtype)
    return np.asarray(np.clip(values + out.zero_point, *limits).astype(out.dtype))


def prelu_factors(op: Op) -> tuple[Factor, Factor]:
    """Return the factors of positive inputs, and of the products with the slope."""
    source, slope, out = (np.float32(t.scale) for t in (op.input(0), op.input(1), op.output))
    return (
        quantize_multiplier(float(source) / float(out)),
        quantize_multiplier(float(source) * float(slope) / float(out)),
    )


def _prelu(op: Op, x: Array, slope: Array) -> Array:
    positive, negative = prelu_factors(op)
    a, b = subtract_zero_point(op, 0, x), subtract_zero_point(op, 1, slope)
    above = multiply_by_quantized_multiplier(a, *positive)
    below = multiply_by_quantized_multiplier(a * b, *negative)
    return _clip(op, np.where(a >= 0, above, below))


def difference_factors(op: Op) -> tuple[Factor, Factor, Factor]:
    """Return the factors of both inputs, and of the square."""
    twice = 2.0 * max(op.input(0).scale, op.input(1).scale)
    return (
        quantize_multiplier(op.input(0).scale / twice),
        quantize_multiplier(op.input(1).scale / twice),
        quantize_multiplier(twice * twice / ((1 << 2 * squared_bits(op)) * op.output.scale)),
    )


def _squared_difference(op: Op, x: Array, y: Array) -> Array:
    first, second, last = difference_factors(op)
    bits = squared_bits(op)
    a = multiply_by_quantized_multiplier(subtract_zero_point(op, 0, x) << bits, *first)
    b = multiply_by_quantized_multiplier(subtract_zero_point(op, 1, y) << bits, *second)
    return _clip(op, multiply_by_quantized_multiplier((a - b) ** 2, *last))


def divide_factor(op: Op) -> Factor:
    """Return the factor of the quotient of stored values."""
    return quantize_multiplier(op.input(0).scale / (op.input(1).scale * op.output.scale))


def _divide(op: Op, x: Array, y: Array) -> Array:
    a, b = np.broadcast_arrays(subtract_zero_point(op, 0, x), subtract_zero_point(op, 1, y))
    a, b = np.where(b < 0, -a, a), np.abs(b)
    inverse, bits = reciprocal(np.maximum(b, 1))
    headroom = 31 - np.vectorize(int.bit_length, otypes=[np.int64])(np.where(a < 0, -a - 1, a))
    quotient = rounding_doubling_high_mul(a << headroom, inverse)
    multiplier, shift = divide_factor(op)
    # from 32 on the C is undefined; the quotient is below half a step there
    right = np.clip(bits + headroom - shift, 0, 62)
    scaled = rounding_divide_by_pot(rounding_doubling_high_mul(quotient, multiplier), right)
    ends = np.where(a < 0, -(1 << 20), 1 << 20)
    return _clip(op, np.where(b == 0, ends, scaled), op.attributes.activation)


LIMITS.update(dict.fromkeys(COMPARISONS, compared_factors))
QUANTIZED.update(
    {
        **dict.fromkeys(COMPARISONS, _compare),
        "DIV": _divide,
        "MAXIMUM": lambda op, x, y: np.maximum(x, y),
        "MINIMUM": lambda op, x, y: np.minimum(x, y),
        "PRELU": _prelu,
        "SELECT_V2": lambda op, c, x, y: np.where(c, x, y),
        "SQUARED_DIFFERENCE": _squared_difference,
    }
)
