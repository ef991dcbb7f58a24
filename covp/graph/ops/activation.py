"""LOGISTIC, TANH, RELU, RELU6 and LEAKY_RELU: int8 through tables of 256 results.

int16 in the same arithmetic, but for LOGISTIC and TANH (`covp.graph.ops.int16`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from covp.errors import ModelError
from covp.graph.fixed_point import input_radius, logistic, tanh
from covp.graph.graph import Op
from covp.graph.index_map import elementwise
from covp.graph.ops.definition import OPS, Array, OpDefinition, Shape, given, ieee, of_one_type
from covp.graph.ops.int16 import check_int16, sigmoid_factor
from covp.graph.ops.int16 import logistic as logistic16
from covp.graph.ops.int16 import tanh as tanh16
from covp.graph.quantization import (
    activation_range,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    rounding_divide_by_pot,
)

_INPUT_BITS = 4


def unary_table(op: Op) -> NDArray[np.int8]:
    """Return the int8 result for each input from -128 to 127, for the five kinds of this file.

    Source: tensorflow/lite/kernels/internal/reference/integer_ops/{logistic,tanh}.h,
    reference/leaky_relu.h and micro/kernels/activations_common.cc.
    """
    centred = np.arange(-128, 128, dtype=np.int64) - op.input(0).zero_point
    if op.kind in ("LOGISTIC", "TANH"):
        return _saturating_function(op, centred)
    if op.kind == "LEAKY_RELU":
        return _leaky(op, centred)
    return _clamp(op, centred)


def _saturating_function(op: Op, centred: Array) -> NDArray[np.int8]:
    multiplier, shift = quantize_multiplier(op.input(0).scale * (1 << (31 - _INPUT_BITS)))
    radius = input_radius(_INPUT_BITS, shift)
    inside = np.clip(centred, -radius + 1, radius - 1)
    raw = multiply_by_quantized_multiplier(inside, multiplier, shift)
    if op.kind == "LOGISTIC":
        result = rounding_divide_by_pot(logistic(raw, _INPUT_BITS), 31 - 8) - 128
    else:
        result = rounding_divide_by_pot(tanh(raw, _INPUT_BITS), 31 - 7)
    result = np.where(centred <= -radius, -128, np.where(centred >= radius, 127, result))
    return np.clip(result, -128, 127).astype(np.int8)


def _leaky(op: Op, centred: Array) -> Array:
    """Compute QuantizeLeakyRelu; the factors are in single precision.

    A negative slope's product is that of the positive one, negated: ties round the other way.
    """
    first, second = leaky_factors(op)
    positive = multiply_by_quantized_multiplier(centred, *first)
    scaled = multiply_by_quantized_multiplier(centred, *second)
    negative = -scaled if op.attributes.alpha < 0 else scaled
    result = np.where(centred >= 0, positive, negative) + op.output.zero_point
    info = np.iinfo(op.output.dtype)
    return np.asarray(np.clip(result, info.min, info.max).astype(op.output.dtype))


def leaky_factors(op: Op) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return LEAKY_RELU's multiplier and shift from the zero point up, and for |slope| below it.

    In single precision: micro/kernels/leaky_relu_common.cc.
    """
    source, out = np.float32(op.input(0).scale), np.float32(op.output.scale)
    slope = np.float32(source * np.float32(op.attributes.alpha))
    return quantize_multiplier(float(source / out)), quantize_multiplier(abs(float(slope / out)))


def rectifier_factor(op: Op) -> tuple[int, int]:
    """Return multiplier and shift of RELU and RELU6, in single precision: activations_common.cc."""
    return quantize_multiplier(float(np.float32(op.input(0).scale) / np.float32(op.output.scale)))


def _clamp(op: Op, centred: Array) -> Array:
    """Compute RELU and RELU6: rescale, then clamp as a fused activation does (ReluQuantized)."""
    out = op.output
    scaled = multiply_by_quantized_multiplier(centred, *rectifier_factor(op)) + out.zero_point
    limits = activation_range(op.kind.lower(), out.scale, out.zero_point, out.dtype)
    return np.clip(scaled, *limits).astype(out.dtype)


def _int16(op: Op, x: Array) -> Array:
    """Return the results of int16."""
    centred = x.astype(np.int64) - op.input(0).zero_point
    functions = {"LOGISTIC": logistic16, "TANH": tanh16, "LEAKY_RELU": _leaky}
    return functions.get(op.kind, _clamp)(op, x if op.kind in ("LOGISTIC", "TANH") else centred)


def _reference(op: Op, values: Sequence[Array | None]) -> list[Array]:
    x = given(values, 0)
    if x.dtype == np.int8:
        return [unary_table(op)[x.astype(np.int64) + 128]]
    if x.dtype == np.int16:
        return [_int16(op, x)]
    with ieee():
        return [_float(op, x).astype(np.float32)]


def _float(op: Op, x: Array) -> Array:
    if op.kind == "LOGISTIC":
        # the exponential may be infinite: its inverse is 0, as required
        return np.asarray(1 / (1 + np.exp(-x.astype(np.float64))))
    if op.kind == "TANH":
        return np.asarray(np.tanh(x))
    if op.kind == "LEAKY_RELU":
        return np.where(x >= 0, x, x * np.float32(op.attributes.alpha))
    return np.clip(x, 0, 6 if op.kind == "RELU6" else np.inf)


def _shape(op: Op) -> list[Shape]:
    dtype = op.input(0).dtype
    if dtype not in (np.int8, np.int16, np.float32):
        raise ModelError(f"{op.kind} of {dtype}; only int8, int16 and float32 are supported")
    if op.kind in ("LOGISTIC", "TANH"):
        check_int16(op.input(0), op.output)
        if dtype == np.int16:
            sigmoid_factor(op)
    return [op.input(0).shape]


for _kind in ("LOGISTIC", "TANH", "LEAKY_RELU", "RELU", "RELU6"):
    OPS[_kind] = OpDefinition(
        _shape, _reference, types=of_one_type("int8", "int16", "float32"), reads=elementwise
    )
