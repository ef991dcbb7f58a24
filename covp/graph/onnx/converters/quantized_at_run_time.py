"""Quantized operators whose scales come at run time, run along an axis or blocks; integer sums.

They become the operators that the ONNX standard defines them by: subtractions of zero points and
sums in integers, the scales in float32, rounded half to even.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from covp.errors import ModelError
from covp.graph.attributes import Elementwise
from covp.graph.graph import Tensor
from covp.graph.onnx.converters.products import matmul
from covp.graph.onnx.converters.registry import CONVERTERS, register
from covp.graph.onnx.importer import Importer
from covp.graph.onnx.node import OnnxNode
from covp.graph.onnx.quantized_values import ScaleAndZeroPoint, limits_of
from covp.graph.onnx.values import dtype_of
from covp.graph.ops.half_even import UNSIGNED

_EXACT = 1 << 24
"""Sums up to this are exact in float32."""


def quantize_by_definition(node: OnnxNode, importer: Importer) -> Tensor:
    """Convert QuantizeLinear: saturate(round(x / scale) + zero point)."""
    source, scale, point = node.input(0), node.input(1), node.optional(2)
    if source.dtype != np.float32:
        raise ModelError(f"QuantizeLinear of {source.dtype}; only float32 is supported")
    number = node.get("output_dtype", 0)
    dtype = dtype_of(number, "the output") if number else np.dtype(np.uint8)
    if point is not None:
        dtype = point.dtype
    view, by = _align(node, source.shape, scale)
    steps = importer.add("DIV", importer.reshape(source, view), importer.reshape(scale, by))
    point = None if point is None else importer.reshape(point, by)
    return importer.reshape(_round(importer, steps, point, dtype), source.shape)


def dequantize_by_definition(node: OnnxNode, importer: Importer) -> Tensor:
    """Convert DequantizeLinear: (x - zero point) * scale."""
    source, scale, point = node.input(0), node.input(1), node.optional(2)
    if scale.dtype != np.float32:
        raise ModelError(f"DequantizeLinear to {scale.dtype}; only float32 is supported")
    view, by = _align(node, source.shape, scale)
    point = None if point is None else importer.reshape(point, by)
    centred = _subtract_zero_point(importer, importer.reshape(source, view), point)
    single = importer.add("CAST", centred, dtype=np.float32)
    result = importer.add("MUL", single, importer.reshape(scale, by), attributes=Elementwise())
    return importer.reshape(result, source.shape)


def _align(
    node: OnnxNode, shape: Sequence[int], scale: Tensor
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shapes of the values and of the scales that broadcast to each other."""
    view, block = tuple(shape), node.get("block_size", 0)
    if scale.size == 1:
        return view, (1,) * len(view)
    axis = node.get("axis", 1)
    if not -len(view) <= axis < len(view):
        raise ModelError(f"there is no axis {axis} in {view}")
    axis %= len(view)
    before, after = view[:axis], view[axis + 1 :]
    if not block:
        if scale.size != view[axis]:
            raise ModelError(f"{scale.size} scales for axis {axis} of {view}")
        return view, ((1,) * axis + (scale.size,) + (1,) * len(after))
    if view[axis] % block or scale.shape != (*before, view[axis] // block, *after):
        raise ModelError(f"scales of shape {scale.shape} for blocks of {block} in {view}")
    blocks = view[axis] // block
    return (*before, blocks, block, *after), (*before, blocks, 1, *after)


def _subtract_zero_point(importer: Importer, source: Tensor, point: Tensor | None) -> Tensor:
    """Add int32 values minus their zero points."""
    wide = importer.add("CAST", source, dtype=np.int32)
    if point is None or (point.data is not None and not point.data.any()):
        return wide
    zero = importer.add("CAST", point, dtype=np.int32)
    return importer.add("SUB", wide, zero, attributes=Elementwise())


def _round(
    importer: Importer,
    levels: Tensor,
    point: Tensor | None,
    dtype: np.dtype[Any],
    limits: tuple[int, int] | None = None,
) -> Tensor:
    """Round float32 levels half to even, add a zero point, saturate to limits or to ``dtype``."""
    info = np.iinfo(dtype)
    result = importer.add("ROUND", levels)
    if point is not None:
        zero = importer.add("CAST", point, dtype=np.float32)
        result = importer.add("ADD", result, zero, attributes=Elementwise())
    bounds = [
        importer.constant(np.array(value, np.float32)) for value in limits or (info.min, info.max)
    ]
    return importer.add("CAST", importer.add("CLIP", result, *bounds), dtype=dtype)


@register("MatMulInteger")
def _matmul_integer(node: OnnxNode, importer: Importer) -> Tensor:
    return _matmul_sums(importer, node.input(0), node.optional(2), node.input(1), node.optional(3))


def _matmul_sums(
    importer: Importer, a: Tensor, a_zero: Tensor | None, b: Tensor, b_zero: Tensor | None
) -> Tensor:
    """Add int32 sums of products; zero points may be per row of ``a`` and per column of ``b``."""
    if a_zero is not None and a_zero.size > 1 and len(a_zero.shape) == 1:
        a_zero = importer.reshape(a_zero, (a_zero.size, 1))
    return matmul(
        importer,
        _subtract_zero_point(importer, a, a_zero),
        _subtract_zero_point(importer, b, b_zero),
    )


@register("ConvInteger")
def _conv_integer(node: OnnxNode, importer: Importer) -> Tensor:
    return _conv_sums(node, importer, (0, 2), (1, 3))


def _conv_sums(
    node: OnnxNode, importer: Importer, source: tuple[int, int], filters: tuple[int, int]
) -> Tensor:
    """Add the int32 sums of a convolution, computed in float32, from the inputs at these positions.

    Raises:
        ModelError: sums might be larger than what float32 holds exactly.
    """
    weights, point = node.input(filters[0]), node.optional(filters[1])
    if point is not None and point.size > 1:
        point = importer.reshape(point, (point.size, *(1,) * (len(weights.shape) - 1)))
    y = _subtract_zero_point(importer, weights, point)
    largest = 255 * 255 * prod(weights.shape[1:])
    if y.data is not None:
        axes = tuple(range(1, y.data.ndim))
        largest = 255 * int(np.abs(y.data.astype(np.int64)).sum(axis=axes).max(initial=0))
    if largest > _EXACT:
        raise ModelError("its sums may leave 24 bits; give constant scales and weights")
    x = _subtract_zero_point(importer, node.input(source[0]), node.optional(source[1]))
    both: list[Tensor | None] = [importer.add("CAST", t, dtype=np.float32) for t in (x, y)]
    found = CONVERTERS["", "Conv"](replace(node, kind="Conv", inputs=both), importer)
    sums = found if isinstance(found, Tensor) else found[0]
    assert sums is not None
    return importer.add("CAST", sums, dtype=np.int32)


def conv_by_definition(node: OnnxNode, importer: Importer) -> Tensor:
    """Convert a QLinearConv whose scales or weights come at run time."""
    sums = _conv_sums(node, importer, (0, 2), (3, 5))
    shape = (-1, *(1,) * (len(sums.shape) - 2))
    bias = node.optional(8)
    if bias is not None:
        per_channel = importer.reshape(bias, (bias.size, *shape[1:]))
        sums = importer.add("ADD", sums, per_channel, attributes=Elementwise())
    scale = node.input(4)
    if scale.size > 1:
        scale = importer.reshape(scale, (scale.size, *shape[1:]))
    return _requantize(node, importer, sums, node.input(1), scale)


def matmul_by_definition(node: OnnxNode, importer: Importer) -> Tensor:
    """Convert a QLinearMatMul whose scales or matrices come at run time."""
    sums = _matmul_sums(importer, node.input(0), node.input(2), node.input(3), node.input(5))
    first = node.input(1)
    if first.size > 1 and len(first.shape) == 1:
        first = importer.reshape(first, (first.size, 1))
    return _requantize(node, importer, sums, first, node.input(4))


def _requantize(
    node: OnnxNode, importer: Importer, sums: Tensor, first: Tensor, second: Tensor
) -> Tensor:
    """Add sums * (first scale * second scale / result scale), rounded, plus the zero point."""
    scale, zero = node.input(6), node.input(7)
    product = importer.add("MUL", first, second, attributes=Elementwise())
    factor = importer.add("DIV", product, scale)
    single = importer.add("CAST", sums, dtype=np.float32)
    levels = importer.add("MUL", single, factor, attributes=Elementwise())
    return _round(importer, levels, zero, zero.dtype, _limits(node))


def _limits(node: OnnxNode) -> tuple[int, int] | None:
    """Return the limits of a Clip after it; `fuse_qdq` joins one to a constant scale only."""
    if node.get("clip_low") is None and node.get("clip_high") is None:
        return None
    to = ScaleAndZeroPoint(node, 6, 7, "the output")
    low, high = (limit + UNSIGNED * to.is_unsigned for limit in limits_of(node, to))
    return low, high
