"""Functions of two or three elements with broadcasting: arithmetic, comparisons, logic, choice.

Integers wrap modulo their size. Where C and ONNX leave a result undefined there is one answer:
a division by zero and its remainder give 0, a shift by the type's width or more shifts all bits
out, a conversion saturates and makes 0 of a NaN.
Sources: the ONNX operator specifications; TFLite's reference kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from covp.graph.graph import Op
from covp.graph.ops.definition import Array
from covp.graph.ops.pointwise import ANYTHING, INTEGERS, NUMBERS, pointwise
from covp.graph.quantization import float_activation_range


@dataclass(frozen=True)
class Mod:
    """MOD: the remainder has the divisor's sign, with ``fmod`` the dividend's."""

    fmod: bool = False


@dataclass(frozen=True)
class BitShift:
    """BIT_SHIFT: to the left or to the right."""

    left: bool


def saturate(x: Array, dtype: np.dtype[Any]) -> Array:
    """Return floats truncated to integers and saturated to the type; NaN gives 0."""
    info = np.iinfo(dtype)
    whole = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0))
    inside = np.where((whole > float(info.min)) & (whole < float(info.max)), whole, 0.0)
    result = inside.astype(dtype)
    result = np.where(whole >= float(info.max), info.max, result)
    return np.where(whole <= float(info.min), info.min, result).astype(dtype)


def _divide(op: Op, x: Array, y: Array) -> Array:
    if x.dtype.kind == "f":
        activation = "none" if op.attributes is None else op.attributes.activation
        return np.clip(x / y, *float_activation_range(activation))
    safe = np.where(y == 0, 1, y).astype(y.dtype)
    quotient = np.floor_divide(x, safe)
    # numpy rounds down, ONNX towards zero
    inexact = (quotient * safe != x) & ((x < 0) != (safe < 0))
    return np.where(y == 0, 0, quotient + inexact)


def _floor_divide(op: Op, x: Array, y: Array) -> Array:
    if x.dtype.kind == "f":
        return np.asarray(np.floor(x / y))
    return np.where(y == 0, 0, np.floor_divide(x, np.where(y == 0, 1, y).astype(y.dtype)))


def _mod(op: Op, x: Array, y: Array) -> Array:
    remainder = np.fmod if op.attributes is not None and op.attributes.fmod else np.mod
    if x.dtype.kind == "f":
        return np.asarray(remainder(x, y))
    return np.where(y == 0, 0, remainder(x, np.where(y == 0, 1, y).astype(y.dtype)))


def _power(op: Op, x: Array, y: Array) -> Array:
    """Compute a power in the base's type; a negative power of an integer is truncated."""
    if x.dtype.kind == "f":
        return np.asarray(np.power(x.astype(np.float64), y.astype(np.float64)))
    if y.dtype.kind == "f":
        return saturate(np.power(x.astype(np.float64), y.astype(np.float64)), x.dtype)
    result, base, rest = np.ones_like(x + y), x + np.zeros_like(y), y + np.zeros_like(x)
    result, base = result.astype(x.dtype), base.astype(x.dtype)
    negative = rest < 0
    inverse = np.where(base == 1, 1, np.where(base == -1, 1 - 2 * (rest & 1), 0))
    rest = np.where(negative, 0, rest)
    while np.any(rest):
        result = np.where(rest & 1, result * base, result).astype(x.dtype)
        base, rest = base * base, rest >> 1
    return np.where(negative, inverse, result)


def _shift(op: Op, x: Array, y: Array) -> Array:
    bits = x.dtype.itemsize * 8
    outside = (y < 0) | (y >= bits)
    amount = np.where(outside, 0, y).astype(y.dtype)
    if op.attributes.left:
        return np.where(outside, 0, np.left_shift(x, amount))
    sign = -(x < 0).astype(x.dtype)
    return np.where(outside, sign, np.right_shift(x, amount))


def _right_shift(op: Op, x: Array, y: Array) -> Array:
    """Shift right as TFLite does: the amount is clamped to the type's bits."""
    return np.asarray(np.right_shift(x, np.clip(y, 0, x.dtype.itemsize * 8 - 1).astype(y.dtype)))


def _clip(op: Op, x: Array, low: Array | None = None, high: Array | None = None) -> Array:
    above = x if low is None else np.maximum(x, low)
    return np.asarray(above if high is None else np.minimum(above, high))


def _prelu(op: Op, x: Array, slope: Array) -> Array:
    return np.where(x < 0, x * slope, x)


def _cast(op: Op, x: Array) -> Array:
    to = op.output.dtype
    return saturate(x, to) if x.dtype.kind == "f" and to.kind in "iu" else x.astype(to)


def _squared_difference(op: Op, x: Array, y: Array) -> Array:
    return np.asarray((x - y) * (x - y))


pointwise("DIV", _divide, NUMBERS)
pointwise("FLOOR_DIV", _floor_divide, NUMBERS)
pointwise("MOD", _mod, NUMBERS)
pointwise("FLOOR_MOD", _mod, NUMBERS)
pointwise("POW", _power, NUMBERS, data=(0,))
pointwise("ATAN2", lambda op, y, x: np.arctan2(y.astype(np.float64), x.astype(np.float64)))
pointwise("SQUARED_DIFFERENCE", _squared_difference, NUMBERS)
pointwise("MAXIMUM", lambda op, x, y: np.maximum(x, y), ANYTHING)
pointwise("MINIMUM", lambda op, x, y: np.minimum(x, y), ANYTHING)
pointwise("CLIP", _clip, NUMBERS)
pointwise("PRELU", _prelu, NUMBERS)
pointwise("BIT_SHIFT", _shift, INTEGERS)
pointwise("RIGHT_SHIFT", _right_shift, INTEGERS)
pointwise("BITWISE_AND", lambda op, x, y: x & y, INTEGERS)
pointwise("BITWISE_OR", lambda op, x, y: x | y, INTEGERS)
pointwise("BITWISE_XOR", lambda op, x, y: x ^ y, "iub")
pointwise("LOGICAL_AND", lambda op, x, y: x & y, "b")
pointwise("LOGICAL_OR", lambda op, x, y: x | y, "b")
pointwise("LOGICAL_XOR", lambda op, x, y: x ^ y, "b")
pointwise("EQUAL", lambda op, x, y: x == y, ANYTHING, "bool")
pointwise("NOT_EQUAL", lambda op, x, y: x != y, ANYTHING, "bool")
pointwise("GREATER", lambda op, x, y: x > y, NUMBERS, "bool")
pointwise("GREATER_EQUAL", lambda op, x, y: x >= y, NUMBERS, "bool")
pointwise("LESS", lambda op, x, y: x < y, NUMBERS, "bool")
pointwise("LESS_EQUAL", lambda op, x, y: x <= y, NUMBERS, "bool")
pointwise("SELECT_V2", lambda op, c, x, y: np.where(c, x, y), ANYTHING, data=(1, 2))
pointwise("CAST", _cast, ANYTHING, "any")
