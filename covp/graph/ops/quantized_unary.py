"""int8 and int16 functions of one element: LiteRT's reference arithmetic, to the byte.

Sources: tensorflow/lite/kernels/{elementwise,exp,activations}.cc, kernels/internal/common.h
(LUTPopulate: a float function of the dequantized value, rounded half away from zero),
reference/hard_swish.h. What they leave undefined: a negative number has the root 0 and the inverse
root of 0.

int16: tables of 513 values with interpolation (common.h: LUTPopulate<int16_t>, LUTLookup), single
precision. GELU of int8: LUTPopulateInt8 with GeluTransform (kernels/internal/reference/gelu.h).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from covp.errors import ModelError
from covp.graph.fixed_point import inverse_root
from covp.graph.graph import Op
from covp.graph.ops.definition import LIMITS, Array
from covp.graph.ops.int16 import MAX, MIN, lookup
from covp.graph.ops.pointwise import INT16, POINTWISE, QUANTIZED
from covp.graph.ops.unary import FLOAT_FUNCTIONS
from covp.graph.quantization import (
    activation_range,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    rounding_divide_by_pot,
)

Function = Callable[[Op, Array], Array]
_SINGLE = np.float32
STEPS = 512

INTERPOLATED: dict[str, Function] = {}
"""The function of float64 values of each kind."""


def _round_half_away(x: Array) -> Array:
    """Round half away from zero."""
    wide = x.astype(np.float64)
    return np.asarray(np.trunc(wide + np.copysign(0.5, wide)).astype(_SINGLE))


def interpolation_table(op: Op) -> Array:
    """Return the 513 samples: half of the error mid-step is taken from the step's left end."""
    source, out = op.input(0), op.output
    low, high = (_SINGLE(source.scale) * _SINGLE(end - source.zero_point) for end in (MIN, MAX))
    ends = [_SINGLE(out.scale) * _SINGLE(end - out.zero_point) for end in (MIN, MAX)]
    inverse = _SINGLE(MAX - MIN + 1) / (ends[1] - ends[0])
    step = (high - low) / _SINGLE(STEPS)
    i = np.arange(STEPS, dtype=_SINGLE)

    def scale(x: Array) -> Array:
        value = INTERPOLATED[op.kind](op, x.astype(np.float64)).astype(_SINGLE)
        return np.asarray(value * inverse)

    left = _round_half_away(scale(low + i * step))
    middle = _round_half_away(scale(low + i * step + step / _SINGLE(2)))
    interpolated = _round_half_away((scale(low + (i + _SINGLE(1)) * step) + left) / _SINGLE(2))
    samples = left - _round_half_away((interpolated - middle) / _SINGLE(2))
    table = np.concatenate([samples, _round_half_away(scale(np.array([high], _SINGLE)))])
    # values out of range keep only the side that they are on
    return np.asarray(np.clip(np.nan_to_num(table, nan=MAX), MIN, MAX).astype(np.int64))


def interpolate(op: Op, x: Array) -> Array:
    """Return the function of stored values."""
    return lookup(x.astype(np.int64), interpolation_table(op)).astype(np.int16)


def _log_16(op: Op, x: Array) -> Array:
    least = (MIN - op.output.zero_point) * float(_SINGLE(op.output.scale))
    return np.where(x <= 0, least, np.log(np.where(x <= 0, 1, x)))


def _rsqrt_16(op: Op, x: Array) -> Array:
    most = float(_SINGLE(MAX) * _SINGLE(op.output.scale))
    return np.where(x <= 0, most, 1 / np.sqrt(np.where(x <= 0, 1, x)))


INTERPOLATED |= {"EXP": lambda op, x: np.exp(x), "LOG": _log_16, "RSQRT": _rsqrt_16}


_INT16 = np.iinfo(np.int16)
_RSQRT_BITS = 20


def _store(op: Op, values: Array) -> Array:
    """Return whole numbers, without the zero point, as stored values of the output."""
    out = op.output
    info = np.iinfo(out.dtype)
    return np.asarray(np.clip(values + out.zero_point, info.min, info.max).astype(out.dtype))


def _real(op: Op, x: Array) -> Array:
    """Return the dequantized input in single precision."""
    centred = x.astype(np.int64) - op.input(0).zero_point
    return np.asarray(_SINGLE(op.input(0).scale) * centred.astype(_SINGLE))


def _by_table(function: Callable[[Op, Array], Array]) -> Callable[[Op, Array], Array]:
    """Return a reference that rounds a float64 function as LUTPopulate does."""

    def compute(op: Op, x: Array) -> Array:
        result = function(op, _real(op, x).astype(np.float64)).astype(_SINGLE)
        steps = result * (_SINGLE(1) / _SINGLE(op.output.scale))
        # in double precision, where half a step more is exact
        rounded = np.trunc(steps + np.copysign(np.float64(0.5), steps))
        return _store(op, np.nan_to_num(rounded, posinf=1e9, neginf=-1e9))

    return compute


def _log(op: Op, x: Array) -> Array:
    out = op.output
    least = (np.iinfo(out.dtype).min - out.zero_point) * _SINGLE(out.scale)
    return np.where(x <= 0, np.float64(least), np.log(np.where(x <= 0, 1, x)))


def _abs(op: Op, x: Array) -> Array:
    value = np.abs(x.astype(np.int64) - op.input(0).zero_point)
    ratio = _SINGLE(op.input(0).scale) / _SINGLE(op.output.scale)
    if ratio != 1:
        value = multiply_by_quantized_multiplier(value, *quantize_multiplier(float(ratio)))
    return _store(op, value)


def _neg(op: Op, x: Array) -> Array:
    """Negate the stored values, with wraparound."""
    scales = [(t.scale, t.zero_point) for t in (op.input(0), op.output)]
    if scales[0] != scales[1] or scales[0][1]:
        raise ModelError("its input and output need the same scale and zero point 0, as in TFLite")
    return np.asarray(-x)


def _sqrt(op: Op, x: Array) -> Array:
    """Cut, not rounded."""
    root = np.sqrt(np.maximum(_real(op, x), _SINGLE(0)))
    return _store(op, np.trunc(root / _SINGLE(op.output.scale)).astype(np.int64))


def _rsqrt(op: Op, x: Array) -> Array:
    value = np.maximum(x.astype(np.int64) - op.input(0).zero_point, 0)
    real = 1.0 / float(np.sqrt(_SINGLE(op.input(0).scale)) * _SINGLE(op.output.scale))
    multiplier, shift = quantize_multiplier(real)
    inverse, left = inverse_root(value)
    data = multiply_by_quantized_multiplier(np.ones_like(value), inverse, left + _RSQRT_BITS)
    scaled = multiply_by_quantized_multiplier(data, multiplier, shift - _RSQRT_BITS)
    most = np.iinfo(op.output.dtype).max
    return np.where(value == 0, most, _store(op, scaled))


def _int16_multiplier(real: float) -> tuple[int, int]:
    multiplier, shift = quantize_multiplier(real)
    return min((multiplier + (1 << 15)) >> 16, int(_INT16.max)), shift


def _saturate(value: Array) -> Array:
    return np.asarray(np.clip(value, _INT16.min, _INT16.max))


def _high_multiply(a: Array, b: Any) -> Array:
    """Compute gemmlowp's SaturatingRoundingDoublingHighMul of int16."""
    product = a * b
    nudge = np.where(product >= 0, 1 << 14, 1 - (1 << 14))
    return _saturate(np.trunc((product + nudge) / (1 << 15)).astype(np.int64))


def _hard_swish_factors(op: Op) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the factors of the output, and of the factor from 0 to 1.

    The output's factor has to be below 1 for inputs with 7 more fraction bits.
    """
    source, out = _SINGLE(op.input(0).scale), _SINGLE(op.output.scale)
    fine_scale = _SINGLE(1 / 128) * source
    multiplier, shift = _int16_multiplier(float(fine_scale / out))
    if shift > 0:
        raise ModelError(
            f"its output has scale {out:g}; HARD_SWISH of int8 needs more than 1/128 of its "
            f"input's, {source:g}, as LiteRT does; quantize the model again"
        )
    return (multiplier, shift), _int16_multiplier(float(fine_scale / _SINGLE(3 / 32768)))


def _hard_swish(op: Op, x: Array) -> Array:
    (out_multiplier, out_shift), (relu_multiplier, relu_shift) = _hard_swish_factors(op)
    fine = (x.astype(np.int64) - op.input(0).zero_point) << 7
    scaled = _high_multiply(fine, out_multiplier)
    relu = _saturate(fine << (relu_shift - 1)) if relu_shift > 0 else fine
    relu = _high_multiply(relu, relu_multiplier)
    relu = _saturate(relu << 1) if relu_shift > 0 else relu
    relu = rounding_divide_by_pot(relu, -relu_shift) if relu_shift < 0 else relu
    relu = (relu + (1 << 15)) >> 1
    product = np.trunc(relu * scaled / (1 << 15)).astype(np.int64)
    return _store(op, rounding_divide_by_pot(product, -out_shift))


def _clamp(op: Op, x: Array) -> Array:
    """Compute RELU_N1_TO_1 and RELU_0_TO_1: rescale, then clamp."""
    out = op.output
    factor = quantize_multiplier(op.input(0).scale / out.scale)
    centred = x.astype(np.int64) - op.input(0).zero_point
    scaled = multiply_by_quantized_multiplier(centred, *factor) + out.zero_point
    low, high = activation_range("relu_n1_to_1", out.scale, out.zero_point, out.dtype)
    if op.kind == "RELU_0_TO_1":
        low = activation_range("relu", out.scale, out.zero_point, out.dtype)[0]
    return np.clip(scaled, low, high).astype(out.dtype)


def _cast(op: Op, x: Array) -> Array:
    """Return the stored values, whatever they stand for."""
    return np.asarray(x.astype(op.output.dtype))


QUANTIZED["CAST"] = _cast
TABLES = {
    "ABS": _abs,
    "ELU": _by_table(FLOAT_FUNCTIONS["ELU"]),
    "EXP": _by_table(FLOAT_FUNCTIONS["EXP"]),
    "HARD_SWISH": _hard_swish,
    "LOG": _by_table(_log),
    "NEG": _neg,
    "RELU_0_TO_1": _clamp,
    "RELU_N1_TO_1": _clamp,
    "RSQRT": _rsqrt,
    "SQRT": _sqrt,
}
"""The rule of each kind; cores look up a table of its 256 results."""
QUANTIZED.update(TABLES)
LIMITS["HARD_SWISH"] = _hard_swish_factors
INT16.update({"SQRT": _sqrt, **dict.fromkeys(INTERPOLATED, interpolate)})


def _gelu(op: Op, x: Array) -> Array:
    source, out = op.input(0), op.output
    real = np.float32(source.scale) * (x.astype(np.int32) - source.zero_point).astype(np.float32)
    value = POINTWISE["GELU"].compute(op, real).astype(np.float32)
    scaled = value * (np.float32(1) / np.float32(out.scale))
    rounded = np.trunc(scaled + np.copysign(np.float32(0.5), scaled))
    # 0.49999997 + 0.5 rounds up to 1 in float32
    rounded = np.where(np.abs(scaled) < math.nextafter(0.5, 0), 0, rounded)
    info = np.iinfo(out.dtype)
    return np.clip(rounded.astype(np.int64) + out.zero_point, info.min, info.max)


QUANTIZED["GELU"] = _gelu
