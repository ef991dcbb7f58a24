"""QLinearConv, QLinearMatMul and QGemm: integer weights, int32 sums, one float32 factor."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.errors import ModelError
from covp.graph.attributes import Conv2D, DepthwiseConv2D, FullyConnected
from covp.graph.graph import Quantization, Tensor
from covp.graph.onnx.converters.quantized import MICROSOFT, ROUNDING, all_constant
from covp.graph.onnx.converters.quantized_at_run_time import (
    conv_by_definition,
    matmul_by_definition,
)
from covp.graph.onnx.converters.registry import register
from covp.graph.onnx.importer import Importer
from covp.graph.onnx.node import OnnxNode
from covp.graph.onnx.quantized_values import (
    ScaleAndZeroPoint,
    activation_of,
    as_int8,
    finish,
    limits_of,
)
from covp.graph.onnx.quantized_windows import NodeWindows, filters, from_image, to_image
from covp.graph.ops.half_even import UNSIGNED
from covp.graph.ops.matmul import BatchMatMul


@register("QLinearConv")
def _conv(node: OnnxNode, importer: Importer) -> Tensor:
    if not all_constant(node, *range(1, 9)):
        return conv_by_definition(node, importer)
    of, by, to = (ScaleAndZeroPoint(node, *positions) for positions in _OPERANDS)
    weights = _subtract_zero_point(node, 3, by, axis=0)
    source = as_int8(importer, node.input(0), of)
    rank, groups = len(source.shape), node.get("group", 1)
    if weights.ndim != rank or source.shape[1] != weights.shape[1] * groups:
        raise ModelError(f"shapes {source.shape} and {weights.shape} with {groups} groups")
    windows = NodeWindows(node, source.shape[2:], weights.shape[2:])
    image = to_image(importer, source)
    if rank == 3:
        weights = weights[:, :, None]
    data = filters(weights, groups, image.shape[3])
    depthwise = groups > 1 and weights.shape[1] == 1
    activation, limits = activation_of(node, to)
    attributes: Any
    if depthwise:
        multiplier = weights.shape[0] // groups
        attributes = DepthwiseConv2D(
            windows.stride, windows.padding, windows.dilation, multiplier, activation
        )
    else:
        attributes = Conv2D(windows.stride, windows.padding, windows.dilation, activation)
    bias = node.optional(8)
    result = importer.add(
        "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D",
        image,
        _weights(node, importer, data, by, 3 if depthwise else 0),
        None if bias is None else _bias(importer, bias, weights.shape[0]),
        attributes=attributes,
        quantization=to.quantization,
        rounding=ROUNDING,
    )
    return finish(importer, from_image(importer, result, rank), to, limits)


_OPERANDS = ((1, 2, "the input"), (4, 5, "the weights", 3), (6, 7, "the output"))


@register("QLinearMatMul")
def _matmul(node: OnnxNode, importer: Importer) -> Tensor:
    if not all_constant(node, *range(1, 8)) or len(node.input(3).shape) != 2:
        return _matmul_at_run_time(node, importer)
    of, by, to = (ScaleAndZeroPoint(node, *positions) for positions in _OPERANDS)
    weights = np.swapaxes(_subtract_zero_point(node, 3, by, axis=-1), -1, -2)
    return _product(node, importer, as_int8(importer, node.input(0), of), weights, None, by, to)


def _matmul_at_run_time(node: OnnxNode, importer: Importer) -> Tensor:
    """Add BATCH_MATMUL if scales and zero points are constant scalars, else the definition."""
    scales = (1, 2, 4, 5, 6, 7)
    known = all_constant(node, *scales) and all(node.input(i).size == 1 for i in scales)
    matrices = all(len(node.input(i).shape) > 1 for i in (0, 3))
    if not known or not matrices:
        return matmul_by_definition(node, importer)
    of, by, to = (ScaleAndZeroPoint(node, *positions) for positions in _OPERANDS)
    result = importer.add(
        "BATCH_MATMUL",
        as_int8(importer, node.input(0), of),
        as_int8(importer, node.input(3), by),
        attributes=BatchMatMul(),
        quantization=to.quantization,
        rounding=ROUNDING,
    )
    return finish(importer, result, to, limits_of(node, to))


@register("QGemm", domain=MICROSOFT)
def _gemm(node: OnnxNode, importer: Importer) -> Tensor:
    of, by = (
        ScaleAndZeroPoint(node, 1, 2, "the input"),
        ScaleAndZeroPoint(node, 4, 5, "the weights", 3),
    )
    to = ScaleAndZeroPoint(node, 7, 8, "the output")
    swapped = bool(node.get("transB", 0))
    weights = _subtract_zero_point(node, 3, by, axis=0 if swapped else 1)
    source = as_int8(importer, node.input(0), of)
    if node.get("transA", 0):
        source = importer.transpose(source, (1, 0))
    alpha = np.float32(node.get("alpha", 1.0))
    if alpha != 1:  # the same bytes with the scale that the factor begins with
        scaled = Quantization(of.scale * alpha, of.quantization.zero_point)
        source = importer.add("RESHAPE", source, shape=source.shape, quantization=scaled)
    rows = weights if swapped else weights.T
    bias = node.optional(6)
    return _product(node, importer, source, rows, bias, by, to)


def _product(
    node: OnnxNode,
    importer: Importer,
    source: Tensor,
    rows: NDArray[np.int16],
    bias: Tensor | None,
    by: ScaleAndZeroPoint,
    to: ScaleAndZeroPoint,
) -> Tensor:
    """Add FULLY_CONNECTED with weights (outputs, depth)."""
    activation, limits = activation_of(node, to)
    result = importer.add(
        "FULLY_CONNECTED",
        source,
        _weights(node, importer, np.ascontiguousarray(rows), by, 0),
        None if bias is None else _bias(importer, bias, rows.shape[0]),
        attributes=FullyConnected(activation, keep_num_dims=True),
        quantization=to.quantization,
        rounding=ROUNDING,
    )
    return finish(importer, result, to, limits)


def _subtract_zero_point(
    node: OnnxNode, position: int, by: ScaleAndZeroPoint, axis: int
) -> NDArray[np.int16]:
    """Return the weights minus their zero points."""
    weights = node.constant(position, "the weights")
    if weights.dtype.itemsize != 1:
        raise ModelError(f"weights are {weights.dtype}; int8 and uint8 are supported")
    point = by.zero_point.astype(np.int16)
    if point.size > 1:
        shape = [1] * weights.ndim
        shape[axis] = -1
        if weights.shape[axis] != point.size:
            raise ModelError(f"{point.size} scales for weights of shape {weights.shape}")
        point = point.reshape(shape)
    return np.asarray(weights.astype(np.int16) - point)


def _weights(
    node: OnnxNode, importer: Importer, data: NDArray[np.int16], by: ScaleAndZeroPoint, axis: int
) -> Tensor:
    """Return the int8 tensor, with a zero point only if int8 cannot hold the weights without."""
    several = by.scale.size > 1
    point = np.zeros(by.scale.shape, np.int32)
    if data.size and (data.min() < -128 or data.max() > 127):
        point = by.zero_point.astype(np.int32) - UNSIGNED * by.is_unsigned
    along = [1] * data.ndim
    along[axis] = -1
    stored = data + (point.reshape(along) if several else point)
    scales = Quantization(by.scale, point, axis if several else 0)
    weights = importer.constant(stored.astype(np.int8), node.input(3).name, scales)
    if node.input(3).bits == 4 and stored.min(initial=0) >= -8 and stored.max(initial=0) <= 7:
        weights.bits = 4
    return weights


def _bias(importer: Importer, bias: Tensor, outputs: int) -> Tensor:
    if bias.data is None or bias.dtype != np.int32:
        raise ModelError(f"bias {bias.name} must be constant int32")
    data = bias.data.reshape(-1)
    if data.size not in (1, outputs):
        raise ModelError(f"a bias of shape {bias.shape} for {outputs} outputs is not supported")
    return importer.constant(np.resize(data, outputs), bias.name)
