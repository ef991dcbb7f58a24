"""AVERAGE_POOL_2D and MAX_POOL_2D."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from covp.errors import ModelError
from covp.graph.arithmetic import by_rule
from covp.graph.graph import Op
from covp.graph.index_map import IndexMap, Order, window
from covp.graph.ops import half_even
from covp.graph.ops.convolution import _patches
from covp.graph.ops.definition import OPS, Array, OpDefinition, Shape, given, ieee, of_one_type
from covp.graph.quantization import activation_range, float_activation_range


def _shape(op: Op) -> list[Shape]:
    a, source = op.attributes, op.input(0).shape
    if len(source) != 4:
        raise ModelError(f"shape {source} is not NHWC")
    pads = (a.padding.top + a.padding.bottom, a.padding.left + a.padding.right)
    out = tuple((source[i + 1] + pads[i] - a.filter[i]) // a.stride[i] + 1 for i in (0, 1))
    return [(source[0], *out, source[3])]


def _windows(op: Op, image: Array, outside: float) -> Array:
    """Return the windows: (batch, out height, out width, filter height, filter width, channels)."""
    a = op.attributes
    rows, columns = (a.padding.top, a.padding.bottom), (a.padding.left, a.padding.right)
    padded = np.pad(image, ((0, 0), rows, columns, (0, 0)), constant_values=outside)
    return _patches(padded, a.filter, a.stride, (1, 1))


def _clamp(op: Op, result: Array) -> list[Array]:
    out = op.output
    if out.dtype == np.float32:
        limits: tuple[float, float] = float_activation_range(op.attributes.activation)
    else:
        limits = activation_range(op.attributes.activation, out.scale, out.zero_point, out.dtype)
    return [np.clip(result, *limits).astype(out.dtype)]


def _average(op: Op, values: Sequence[Array | None]) -> list[Array]:
    """Compute averages that leave out padding; int8 rounds stored values half away from zero."""
    image = given(values, 0)
    count = _counts(op)
    if image.dtype == np.float32:
        with ieee():
            total = _windows(op, image, 0.0).sum(axis=(3, 4), dtype=np.float32)
            return _clamp(op, total / count)
    total = _windows(op, image.astype(np.int64), 0).sum(axis=(3, 4))
    if op.attributes.ties_up:
        return _clamp(op, (total + count // 2) // count)
    rounded = (np.abs(total) + count // 2) // count
    return _clamp(op, np.where(total > 0, rounded, -rounded))


def _counts(op: Op) -> Array:
    """Return the elements of each window."""
    ones = np.ones((1, *op.input(0).shape[1:3], 1), np.int64)
    return np.asarray(_windows(op, ones, 0).sum(axis=(3, 4)))


def _half_even_average(op: Op, values: Sequence[Array | None]) -> list[Array]:
    windows = _windows(op, given(values, 0).astype(np.int64), op.input(0).zero_point)
    return [half_even.average_pool(op, windows, _counts(op))]


def _max(op: Op, values: Sequence[Array | None]) -> list[Array]:
    """Compute MAX_POOL_2D like TFLM and LiteRT: a NaN is never the largest."""
    image = given(values, 0)
    if image.dtype != np.float32:
        return _clamp(op, _windows(op, image, np.iinfo(image.dtype).min).max(axis=(3, 4)))
    lowest = float(np.finfo(np.float32).min)
    image = np.fmax(image, lowest)
    return _clamp(op, _windows(op, image, lowest).max(axis=(3, 4)))


def _reads(op: Op, order: Order) -> list[IndexMap]:
    a = op.attributes
    return window(op, a.filter, a.stride, (a.padding.top, a.padding.left), order=order)


_TYPES = of_one_type("int8", "int16", "float32")
OPS["AVERAGE_POOL_2D"] = OpDefinition(
    _shape,
    by_rule(_average, _half_even_average),
    types=_TYPES,
    reads=lambda op: _reads(op, "sum"),
    clamps=True,
)
OPS["MAX_POOL_2D"] = OpDefinition(
    _shape, _max, types=_TYPES, reads=lambda op: _reads(op, "any order"), clamps=True
)
