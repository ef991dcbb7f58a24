"""Quantized operators whose scales or zero points come at run time, and those with integer results.

They are composed of plain operators: sums of products of integers, exact, then one float32 factor
and rounding half to even, as onnxruntime's kernels do. Scales that are constant are
`quantized.py`'s and `quantized_layers.py`'s.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from covp.errors import ModelError
from covp.frontend.onnx.converters import quantized, quantized_layers, windows  # noqa: F401
from covp.frontend.onnx.converters.registry import CONVERTERS, Converter, register
from covp.frontend.onnx.importer import Importer
from covp.frontend.onnx.node import Node
from covp.frontend.onnx.values import dtype_of
from covp.graph.attributes import Elementwise
from covp.graph.graph import Tensor
from covp.graph.ops.matmul import BatchMatMul

_EXACT = 2**24
"""float32 holds every integer up to this one."""


def _where_computed(kind: str, positions: Sequence[int], convert: Converter) -> None:
    """Convert the nodes of a kind with ``convert`` that have a run-time value at a position."""
    constant = CONVERTERS["", kind]

    @register(kind)
    def choose(node: Node, importer: Importer) -> Tensor | Sequence[Tensor | None]:
        figures = [node.optional(position) for position in positions]
        computed = any(t is not None and t.data is None for t in figures)
        several = kind.endswith("uantizeLinear") and node.input(1).size > 1
        known = node.input(0).constant and not computed
        return (convert if computed or (several and not known) else constant)(node, importer)


@dataclass(frozen=True)
class _Blocks:
    """Shapes in which a tensor and its scales broadcast.

    Attributes:
        data: of the tensor; one that is quantized in blocks has an axis more, within the block.
        figures: of scales and zero points.
    """

    data: tuple[int, ...]
    figures: tuple[int, ...]

    @staticmethod
    def of(node: Node) -> _Blocks:
        """Raises ModelError where the scales do not fit the tensor."""
        shape, scale = node.input(0).shape, node.input(1)
        if scale.size == 1:
            return _Blocks(shape, ())
        axis, block = node.get("axis", 1), node.get("block_size", 0)
        if not -len(shape) <= axis < len(shape):
            raise ModelError(f"there is no axis {axis} in {shape}")
        axis %= len(shape)
        before, after = shape[:axis], shape[axis + 1 :]
        if not block:
            if scale.size != shape[axis]:
                raise ModelError(f"scales {scale.shape} do not fit axis {axis} of {shape}")
            return _Blocks(shape, (scale.size, *(1,) * len(after)))
        count = shape[axis] // block
        if scale.shape != (*before, count, *after) or count * block != shape[axis]:
            raise ModelError(f"scales {scale.shape} do not fit blocks of {block} in {shape}")
        return _Blocks((*before, count, block, *after), (*before, count, 1, *after))


def _quantize(node: Node, importer: Importer) -> Tensor:
    """saturate(round(x / scale) + zero point)."""
    source, point = node.input(0), node.optional(2)
    dtype = np.dtype(np.uint8) if point is None else point.dtype
    if point is None and node.get("output_dtype", 0):
        dtype = dtype_of(node.get("output_dtype"), "the output")
    blocks = _Blocks.of(node)
    parts = importer.reshape(source, blocks.data)
    scaled = _binary(importer, "DIV", parts, importer.reshape(node.input(1), blocks.figures))
    shift = None if point is None else importer.reshape(point, blocks.figures)
    return importer.reshape(_rounded(importer, scaled, shift, dtype), source.shape)


def _dequantize(node: Node, importer: Importer) -> Tensor:
    """(x - zero point) * scale."""
    source, point = node.input(0), node.optional(2)
    blocks = _Blocks.of(node)
    parts = importer.reshape(source, blocks.data)
    shift = None if point is None else importer.reshape(point, blocks.figures)
    centred = _centred(importer, parts, shift, np.float32)
    scale = importer.reshape(node.input(1), blocks.figures)
    return importer.reshape(_binary(importer, "MUL", centred, scale), source.shape)


def _conv(node: Node, importer: Importer) -> Tensor:
    x, w = node.input(0), node.input(3)
    sums = _integer_conv(node, importer, x, w, node.optional(2), node.optional(5))
    bias = node.optional(8)
    if bias is not None:
        column = importer.reshape(_cast(importer, bias, np.float32), _channels(bias, len(x.shape)))
        sums = _binary(importer, "ADD", sums, column)
    by = importer.reshape(node.input(4), _channels(node.input(4), len(x.shape)))
    return _requantized(node, importer, sums, node.input(1), by)


def _matmul(node: Node, importer: Importer) -> Tensor:
    x, y = node.input(0), node.input(3)
    sums = _integer_matmul(importer, x, y, node.optional(2), node.optional(5))
    return _requantized(
        node, importer, _cast(importer, sums, np.float32), node.input(1), node.input(4)
    )


@register("ConvInteger")
def _conv_integer(node: Node, importer: Importer) -> Tensor:
    x, w = node.input(0), node.input(1)
    sums = _integer_conv(node, importer, x, w, node.optional(2), node.optional(3))
    return _cast(importer, sums, np.int32)


@register("MatMulInteger")
def _matmul_integer(node: Node, importer: Importer) -> Tensor:
    x, y = node.input(0), node.input(1)
    return _integer_matmul(importer, x, y, node.optional(2), node.optional(3))


def _integer_conv(
    node: Node,
    importer: Importer,
    x: Tensor,
    w: Tensor,
    x_point: Tensor | None,
    w_point: Tensor | None,
) -> Tensor:
    """Sums of products of centred values, in float32, which holds them."""
    most = math.prod(w.shape[1:]) * 255 * 255
    if most > _EXACT:
        raise ModelError(
            f"sums of {math.prod(w.shape[1:])} products may be larger than float32 holds exactly; "
            "make the scales constant"
        )
    if w_point is not None and w_point.size > 1:
        w_point = importer.reshape(w_point, (w_point.size, *(1,) * (len(w.shape) - 1)))
    inputs: list[Tensor | None] = [
        _centred(importer, x, x_point, np.float32),
        _centred(importer, w, w_point, np.float32),
    ]
    found = CONVERTERS["", "Conv"](replace(node, kind="Conv", inputs=inputs), importer)
    assert isinstance(found, Tensor)
    return found


def _integer_matmul(
    importer: Importer, x: Tensor, y: Tensor, x_point: Tensor | None, y_point: Tensor | None
) -> Tensor:
    if x_point is not None and x_point.size > 1:  # one for each row
        x_point = importer.reshape(x_point, (*x_point.shape, 1))
    factors = [
        _centred(importer, x, x_point, np.int32),
        _centred(importer, y, y_point, np.int32),
    ]
    return importer.add("BATCH_MATMUL", *factors, attributes=BatchMatMul())


def _requantized(node: Node, importer: Importer, sums: Tensor, of: Tensor, by: Tensor) -> Tensor:
    """Of QLinearConv and QLinearMatMul: the output's scale and zero point are inputs 6 and 7."""
    factor = _binary(importer, "DIV", _binary(importer, "MUL", of, by), node.input(6))
    scaled = _binary(importer, "MUL", sums, factor)
    point = node.input(7)
    return _rounded(importer, scaled, point, point.dtype)


def _rounded(
    importer: Importer, scaled: Tensor, point: Tensor | None, dtype: np.dtype[Any]
) -> Tensor:
    limits = np.iinfo(dtype)
    result = importer.add("ROUND", scaled)
    if point is not None:
        result = _binary(importer, "ADD", result, _cast(importer, point, np.float32))
    for kind, limit in (("MAXIMUM", limits.min), ("MINIMUM", limits.max)):
        result = _binary(importer, kind, result, importer.constant(np.float32(limit)))
    return _cast(importer, result, dtype)


def _centred(importer: Importer, x: Tensor, point: Tensor | None, dtype: DTypeLike) -> Tensor:
    value = _cast(importer, x, dtype)
    if point is None:
        return value
    return _binary(importer, "SUB", value, _cast(importer, point, dtype))


def _cast(importer: Importer, x: Tensor, dtype: DTypeLike) -> Tensor:
    return x if x.dtype == dtype else importer.add("CAST", x, dtype=dtype)


def _binary(importer: Importer, kind: str, x: Tensor, y: Tensor) -> Tensor:
    attributes = Elementwise() if kind in ("ADD", "SUB", "MUL", "DIV") else None
    return importer.add(kind, x, y, attributes=attributes)


def _channels(tensor: Tensor, rank: int) -> tuple[int, ...]:
    """Of one value for each channel of an image with channels first."""
    return (tensor.size, *(1,) * (rank - 2)) if tensor.size > 1 else ()


_where_computed("QuantizeLinear", (1, 2), _quantize)
_where_computed("DequantizeLinear", (1, 2), _dequantize)
_where_computed("QLinearConv", (1, 2, 3, 4, 5, 6, 7, 8), _conv)
_where_computed("QLinearMatMul", (1, 2, 4, 5, 6, 7), _matmul)
