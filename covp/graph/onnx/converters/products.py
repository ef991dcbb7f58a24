"""Gemm and MatMul."""

from __future__ import annotations

import numpy as np

from covp.errors import ModelError
from covp.graph.attributes import Elementwise, FullyConnected
from covp.graph.graph import Tensor
from covp.graph.onnx.converters.registry import register
from covp.graph.onnx.importer import Importer
from covp.graph.onnx.node import OnnxNode
from covp.graph.ops.matmul import BatchMatMul


@register("MatMul")
def _matmul(node: OnnxNode, importer: Importer) -> Tensor:
    return matmul(importer, node.input(0), node.input(1))


def matmul(importer: Importer, first: Tensor, second: Tensor) -> Tensor:
    """Add numpy.matmul: a vector is a row on the left and a column on the right."""
    x = importer.reshape(first, (1, *first.shape)) if len(first.shape) == 1 else first
    y = importer.reshape(second, (*second.shape, 1)) if len(second.shape) == 1 else second
    result = _product(importer, x, y)
    shape = list(result.shape)
    if len(second.shape) == 1:
        del shape[-1]
    if len(first.shape) == 1:
        del shape[-1 if len(second.shape) == 1 else -2]
    return importer.reshape(result, shape)


@register("Gemm")
def _gemm(node: OnnxNode, importer: Importer) -> Tensor:
    """Convert Gemm: alpha * A' * B' + beta * C, where C broadcasts to the product."""
    x, y, c = node.input(0), node.input(1), node.optional(2)
    swap_x, swap_y = bool(node.get("transA", 0)), bool(node.get("transB", 0))
    alpha, beta = node.get("alpha", 1.0), node.get("beta", 1.0)
    if y.constant and alpha != 1:
        y, alpha = _scale(importer, y, alpha), 1.0
    if c is not None and c.constant:
        c, beta = _scale(importer, c, beta), 1.0
    columns = y.shape[0] if swap_y else y.shape[-1]
    is_row = c is not None and (c.size == 1 or c.shape[-1] == c.size == columns)
    if c is not None and c.data is not None and is_row and y.constant:
        bias = importer.constant(np.resize(c.data.reshape(-1), columns), c.name)
        return _product(importer, x, y, swap_x, swap_y, bias)
    result = _scale(importer, _product(importer, x, y, swap_x, swap_y), alpha)
    if c is None:
        return result
    return importer.add("ADD", result, _scale(importer, c, beta), attributes=Elementwise())


def _product(
    importer: Importer,
    x: Tensor,
    y: Tensor,
    swap_x: bool = False,
    swap_y: bool = False,
    bias: Tensor | None = None,
) -> Tensor:
    """Add x @ y: a layer with weights if y is a constant float matrix, else BATCH_MATMUL."""
    if y.data is None or len(y.shape) != 2 or y.dtype != np.float32:
        return importer.add("BATCH_MATMUL", x, y, attributes=BatchMatMul(swap_x, swap_y))
    if swap_x:
        x = importer.transpose(x, (1, 0))
    if x.shape[-1] != y.shape[1 if swap_y else 0]:
        raise ModelError(f"shapes {x.shape} and {y.shape} do not fit a matrix product")
    weights = y if swap_y else importer.constant(np.ascontiguousarray(y.data.T), y.name)
    attributes = FullyConnected(keep_num_dims=True)
    return importer.add("FULLY_CONNECTED", x, weights, bias, attributes=attributes)


def _scale(importer: Importer, tensor: Tensor, factor: float) -> Tensor:
    if factor == 1:
        return tensor
    scale = importer.constant(np.array(factor, tensor.dtype))
    return importer.add("MUL", tensor, scale, attributes=Elementwise())
