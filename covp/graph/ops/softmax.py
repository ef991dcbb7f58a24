"""SOFTMAX along the last axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from covp.errors import ModelError
from covp.graph.arithmetic import by_rule
from covp.graph.fixed_point import exp_on_negative_values, input_radius, one_over_one_plus_x
from covp.graph.graph import Op
from covp.graph.index_map import rows_of
from covp.graph.ops import half_even, int16
from covp.graph.ops.definition import OPS, Array, OpDefinition, Shape, given, ieee, of_one_type
from covp.graph.quantization import (
    quantize_multiplier,
    rounding_divide_by_pot,
    rounding_doubling_high_mul,
)

DIFFERENCE_BITS = 5
"""Integer bits of input differences."""
SUM_BITS = 12
"""Integer bits of the sum of exponentials."""


def exponentials(op: Op) -> Array:
    """Return exp(-d * scale * beta) for d = 0 ... 255 steps below the row's maximum.

    int64 array of 256 values with 0 integer bits; differences that TFLM leaves out are 0.
    Source: PreprocessSoftmaxScaling and reference_ops::Softmax.
    """
    real = op.attributes.beta * op.input(0).scale * (1 << (31 - DIFFERENCE_BITS))
    multiplier, shift = quantize_multiplier(min(real, (1 << 31) - 1.0))
    shift = max(shift, 0)
    differences = -np.arange(256, dtype=np.int64)
    lowest = -input_radius(DIFFERENCE_BITS, shift)
    kept = differences >= lowest
    rescaled = rounding_doubling_high_mul(np.where(kept, differences, 0) << shift, multiplier)
    return np.where(kept, exp_on_negative_values(rescaled, DIFFERENCE_BITS), 0)


def _reference(op: Op, values: Sequence[Array | None]) -> list[Array]:
    x = given(values, 0)
    if x.dtype == np.float32:
        with ieee():
            shifted = (x - x.max(axis=-1, keepdims=True)) * np.float32(op.attributes.beta)
            powers = np.exp(shifted)
            return [(powers / powers.sum(axis=-1, keepdims=True)).astype(np.float32)]
    if x.dtype == np.int16:
        return [int16.softmax(op, x)]
    wide = x.astype(np.int64)
    powers = exponentials(op)[wide.max(axis=-1, keepdims=True) - wide]
    total = rounding_divide_by_pot(powers, SUM_BITS).sum(axis=-1, keepdims=True)
    # the sum as 2**bits * (1 + fraction)
    leading_zeros = 32 - np.vectorize(int.bit_length, otypes=[np.int64])(total)
    scale = one_over_one_plus_x((total << leading_zeros) - (1 << 31))
    out = op.output.dtype
    exponent = SUM_BITS - leading_zeros + 31 - 8 * out.itemsize
    scaled = rounding_divide_by_pot(rounding_doubling_high_mul(scale, powers), exponent)
    info = np.iinfo(out)
    return [np.clip(scaled + info.min, info.min, info.max).astype(out)]


def _shape(op: Op) -> list[Shape]:
    check_depth(op)
    return [op.input(0).shape]


def check_depth(op: Op) -> None:
    """Raise ModelError for a scalar, and where a product or TFLM's sum would leave int32.

    Each is at most 1, which is 2**(31 - SUM_BITS): a flat row of 2**SUM_BITS values overflows;
    of int16 it is 2**15.
    """
    source = op.input(0)
    if source.dtype == np.int16:
        int16.check_int16(source, op.output)
        int16.softmax_factor(op)
    if not source.shape:
        raise ModelError("SOFTMAX of a scalar: it needs an axis")
    most = {"int8": (1 << SUM_BITS) - 1, "int16": 1 << 16}.get(source.dtype.name, source.size)
    if source.shape[-1] > most:
        raise ModelError(
            f"SOFTMAX of {source.dtype} over {source.shape[-1]} values, at most {most} are "
            "supported: TFLM's sum of their exponentials overflows; use a float32 SOFTMAX"
        )


def _types(op: Op) -> None:
    """Check that types are equal, or int8 with a result of int16 in units of 2**-16."""
    if op.input(0).dtype != np.int8 or op.output.dtype != np.int16:
        _OF_ONE_TYPE(op)


_OF_ONE_TYPE = of_one_type("int8", "int16", "float32")
OPS["SOFTMAX"] = OpDefinition(
    _shape, by_rule(_reference, half_even.softmax), types=_types, reads=rows_of
)
