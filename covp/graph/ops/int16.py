"""LOGISTIC, TANH and SOFTMAX of int16: TFLM's tables with interpolation.

Sources: tensorflow/lite/kernels/internal/reference/integer_ops/{logistic,tanh}.h,
reference/softmax.h (SoftmaxInt16), common.h (LUTPopulate, LUTLookup), and the parameters from
micro/kernels/{logistic_common,tanh,softmax_common}.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from covp.errors import ModelError
from covp.graph.graph import Op, Tensor
from covp.graph.ops.definition import Array
from covp.graph.quantization import multiply_by_quantized_multiplier, quantize_multiplier

MAX = 32767
MIN = -32768


def check_int16(*tensors: Tensor) -> None:
    """Raise ModelError for a tensor of int16 with a zero point, where TFLM has none."""
    for tensor in tensors:
        if tensor.dtype == np.int16 and tensor.quantization is not None and tensor.zero_point:
            raise ModelError(
                f"tensor {tensor.name} is int16 with zero point {tensor.zero_point}, which must be "
                "0; convert the model again",
                tensor=tensor.name,
            )


@cache
def sigmoid_table() -> NDArray[np.uint16]:
    """Return 65536 / (1 + exp(-i / 24)) for i = 0 ... 255: TFLM's table of LOGISTIC and TANH.

    Half of the error that linear interpolation makes in the middle of a step is taken from its
    left end; the last entry is the largest number.
    """
    i = np.arange(256)
    left, middle, right = (65536 / (1 + np.exp(-(i + step) / 24)) for step in (0, 0.5, 1))
    table = np.round(left - ((left + right) / 2 - middle) / 2)
    table[-1] = 65535
    return table.astype(np.uint16)


def sigmoid_factor(op: Op) -> tuple[int, int]:
    """Return multiplier and right shift that bring an input of LOGISTIC or TANH to 1 / (3 * 4096).

    TFLM scales by 3 alone where the scale is a power of two that the table has.

    Raises:
        ModelError: the scale is larger than TFLM's 16-bit multiplier allows.
    """
    scale = op.input(0).scale
    fraction, exponent = math.frexp(scale)
    shift = 12 + exponent - 1
    exact = (0,) if op.kind == "LOGISTIC" else (0, 1)
    if fraction == 0.5 and shift in exact:
        return 3 << shift, 0
    multiplier, right = scale * 4096.0 * 3.0, 0
    while multiplier <= MAX / 2.0 and right <= 30:
        multiplier, right = multiplier * 2.0, right + 1
    if multiplier >= MAX + 1:
        raise ModelError(
            f"its input has scale {scale:g}; {(MAX + 1) / 4096 / 3:.3g} is the most that TFLM's "
            f"{op.kind} of int16 takes"
        )
    return int(multiplier), right


def logistic(op: Op, x: Array) -> Array:
    """Compute LOGISTIC with an output scale of 2**-15."""
    value, total = _interpolate_sigmoid(op, x, 9)
    result = np.where(value >= 0, total + 512, (1 << 25) - total + 511)
    return np.asarray((result >> 10).astype(np.int16))


def tanh(op: Op, x: Array) -> Array:
    """Compute TANH with an output scale of 2**-15: 2 * sigmoid(2 * x) - 1."""
    value, total = _interpolate_sigmoid(op, x, 8)
    result = np.where(value >= 0, total - (1 << 23) + 128, (1 << 23) - total + 127)
    return np.asarray((result >> 8).astype(np.int16))


def _interpolate_sigmoid(op: Op, x: Array, bits: int) -> tuple[Array, Array]:
    """Return the scaled input, and the sigmoid of its magnitude times 2**(16 + bits)."""
    multiplier, right = sigmoid_factor(op)
    half = 1 << (right - 1) if right else 0
    value = (x.astype(np.int64) * multiplier + half) >> right
    magnitude = np.abs(value)
    index = np.minimum(magnitude >> bits, 254)
    table = sigmoid_table().astype(np.int64)
    part = magnitude & ((1 << bits) - 1)
    total = (table[index] << bits) + part * (table[index + 1] - table[index])
    saturated = MAX << 10 if op.kind == "LOGISTIC" else 0xFFFF << 8
    return value, np.where(magnitude >> bits >= 255, saturated, total)


def _lookup_table(function: Callable[[Array], Array], low: float, high: float) -> Array:
    """Return 513 samples of a function from ``low`` to ``high`` at 2**-15, for `lookup`.

    In single precision as LUTPopulateInt16: half of the interpolation's error in the middle of a
    step is taken from its left end.
    """
    one = np.float32
    step = (one(high) - one(low)) / one(512)
    inverse = one(65536) / (one(2.0 / 65535) * one(MAX) - one(2.0 / 65535) * one(MIN))
    i = np.arange(512, dtype=np.float32)
    left = _round_half_away(function(one(low) + i * step) * inverse)
    middle = _round_half_away(function(one(low) + i * step + step / one(2)) * inverse)
    interpolated = _round_half_away(
        (function(one(low) + (i + one(1)) * step) * inverse + left) / one(2)
    )
    samples = left - _round_half_away((interpolated - middle) / one(2))
    last = _round_half_away(function(np.array([high], np.float32)) * inverse)
    return np.asarray(np.clip(np.concatenate([samples, last]), MIN, MAX).astype(np.int64))


def _round_half_away(x: Array) -> Array:
    """Round half away from zero."""
    return np.asarray(np.trunc(x + np.copysign(np.float32(0.5), x)))


@cache
def exponential_table() -> Array:
    """Return the table of exp(x) for x from -10 to 0."""
    scale = np.float32(10.0) / np.float32(65535)
    return _lookup_table(np.exp, float(scale * np.float32(MIN - MAX)), 0.0)


@cache
def reciprocal_table() -> Array:
    """Return the table of 1 / (1 + x) for x from 0 to 1."""
    one, steps = np.float32(1), np.float32(65535)
    return _lookup_table(lambda x: one / (one + x), 0.0, float(one / steps * steps))


def lookup(index: Array, table: Array) -> Array:
    """Return a value between two entries: LUTLookup. ``index`` is from -32768 to 32767."""
    at, part = 256 + (index >> 7), index & 0x7F
    return np.asarray(table[at] + (((table[at + 1] - table[at]) * part + 64) >> 7))


def softmax_factor(op: Op) -> tuple[int, int]:
    """Return the multiplier and shift that bring differences to 10 / 65535.

    Raises:
        ModelError: a difference of 65535 steps, shifted to the left, would leave 32 bits.
    """
    multiplier, shift = quantize_multiplier(
        op.input(0).scale * op.attributes.beta / (10.0 / 65535.0)
    )
    if shift > 15:
        raise ModelError(
            f"its input has scale {op.input(0).scale:g}; {5 / op.attributes.beta:g} and "
            "more overflow TFLM's SOFTMAX of int16; quantize the model again"
        )
    return multiplier, shift


def softmax(op: Op, x: Array) -> Array:
    """Compute SOFTMAX with an output scale of 2**-15."""
    wide = x.astype(np.int64)
    difference = wide - wide.max(axis=-1, keepdims=True)
    scaled = multiply_by_quantized_multiplier(difference, *softmax_factor(op))
    powers = lookup(np.clip(scaled + MAX, MIN, MAX), exponential_table())
    total = powers.sum(axis=-1, keepdims=True)
    leading_zeros = 32 - np.vectorize(int.bit_length, otypes=[np.int64])(total)
    shifted = ((total << (leading_zeros - 1)) + (1 << 13)) >> 14
    index = np.clip(shifted - (1 << 15) - (1 << 16), MIN, MAX)
    reciprocal = lookup(index, reciprocal_table())
    right = 31 - leading_zeros
    result = (powers * reciprocal + np.left_shift(1, right - 1, dtype=np.int64)) >> right
    return np.asarray(np.clip(result, 0, MAX).astype(np.int16))
