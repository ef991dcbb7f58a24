"""QLinearAdd and QLinearMul, pools, Softmax, Concat and functions of one value."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from covp.errors import ModelError
from covp.graph.attributes import Concatenation, Elementwise, Mean, Pad, Pool2D, Softmax
from covp.graph.float_scaling import dequantize
from covp.graph.graph import Rounding, Tensor
from covp.graph.onnx.converters.quantized import EVERY_BYTE, MICROSOFT, ROUNDING, lookup
from covp.graph.onnx.converters.reductions import reduced_axes, stated_axes
from covp.graph.onnx.converters.registry import register
from covp.graph.onnx.importer import Importer
from covp.graph.onnx.node import OnnxNode
from covp.graph.onnx.proto_graph import OWN_DOMAIN
from covp.graph.onnx.quantized_values import (
    ScaleAndZeroPoint,
    activation_of,
    as_int8,
    finish,
    is_fused,
    limits_of,
)
from covp.graph.onnx.quantized_windows import NodeWindows, from_image, to_image
from covp.graph.ops.definition import ieee
from covp.graph.ops.half_even import UNSIGNED


@register("QLinearAdd", "QLinearMul", domain=MICROSOFT)
def _binary(node: OnnxNode, importer: Importer) -> Tensor:
    first, second = (
        ScaleAndZeroPoint(node, 1, 2, "input 0"),
        ScaleAndZeroPoint(node, 4, 5, "input 1", 3),
    )
    to = ScaleAndZeroPoint(node, 6, 7, "the output")
    activation, limits = activation_of(node, to)
    result = importer.add(
        "ADD" if node.kind == "QLinearAdd" else "MUL",
        as_int8(importer, node.input(0), first),
        as_int8(importer, node.input(3), second),
        attributes=Elementwise(activation),
        quantization=to.quantization,
        rounding=_rounding(node, to),
    )
    return finish(importer, result, to, limits)


def _rounding(node: OnnxNode, to: ScaleAndZeroPoint, columns: bool = False) -> Rounding:
    """Return the rounding of a function that adds the zero point or leaves it to QuantizeLinear."""
    if not is_fused(node, to):
        return replace(ROUNDING, unfused=True, by_columns=columns)
    return replace(ROUNDING, offset=UNSIGNED if to.is_unsigned else 0)


@register("QLinearAveragePool", domain=MICROSOFT)
def _average(node: OnnxNode, importer: Importer) -> Tensor:
    of, to = ScaleAndZeroPoint(node, 1, 2, "the input"), ScaleAndZeroPoint(node, 3, 4, "the output")
    source = as_int8(importer, node.input(0), of)
    if node.get("channels_last", 0):
        raise ModelError("channels_last is not supported; leave it to the runtime")
    windows = NodeWindows(node, source.shape[2:])
    if windows.dilation != (1, 1):
        raise ModelError("dilations of an average pool are not supported")
    image, padding = to_image(importer, source), windows.padding
    if node.get("count_include_pad", 0) and padding.any:
        if node.get("ceil_mode", 0):
            raise ModelError("count_include_pad with ceil_mode is not supported")
        sides = ((0, 0), (padding.top, padding.bottom), (padding.left, padding.right), (0, 0))
        image = importer.add(
            "PAD",
            image,
            attributes=Pad(sides, float(image.zero_point)),
            quantization=image.quantization,
        )
        padding = type(padding)()
    columns = node.get("opset", 19) < 19 and windows.stride[1] <= 2
    result = importer.add(
        "AVERAGE_POOL_2D",
        image,
        attributes=Pool2D(windows.filter, windows.stride, padding),
        quantization=to.quantization,
        rounding=_rounding(node, to, columns),
    )
    result = from_image(importer, result, len(source.shape))
    return finish(importer, result, to, limits_of(node, to))


@register("QLinearGlobalAveragePool", domain=MICROSOFT)
def _global_average(node: OnnxNode, importer: Importer) -> Tensor:
    of, to = ScaleAndZeroPoint(node, 1, 2, "the input"), ScaleAndZeroPoint(node, 3, 4, "the output")
    source = as_int8(importer, node.input(0), of)
    if node.get("channels_last", 0):
        raise ModelError("channels_last is not supported; leave it to the runtime")
    result = importer.add(
        "MEAN",
        to_image(importer, source),
        importer.constant(np.array([1, 2], np.int32)),
        attributes=Mean((1, 2), True),
        quantization=to.quantization,
        rounding=ROUNDING,
    )
    result = from_image(importer, result, len(source.shape))
    return finish(importer, result, to, limits_of(node, to))


@register("ReduceMean", "ReduceSum", domain=OWN_DOMAIN)
def _reduction(node: OnnxNode, importer: Importer) -> Tensor:
    of, to = ScaleAndZeroPoint(node, 1, 2, "the input"), ScaleAndZeroPoint(node, 3, 4, "the output")
    source = as_int8(importer, node.input(0), of)
    axes = reduced_axes(stated_axes(node, 5), len(source.shape))
    result = importer.add(
        "MEAN" if node.kind == "ReduceMean" else "SUM",
        source,
        importer.constant(np.array(axes, np.int32)),
        attributes=Mean(axes, bool(node.get("keepdims", 1))),
        quantization=to.quantization,
        rounding=ROUNDING,
    )
    return finish(importer, result, to, limits_of(node, to))


@register("QLinearSigmoid", "QLinearLeakyRelu", domain=MICROSOFT)
def _unary(node: OnnxNode, importer: Importer) -> Tensor:
    of, to = ScaleAndZeroPoint(node, 1, 2, "the input"), ScaleAndZeroPoint(node, 3, 4, "the output")
    x = dequantize(EVERY_BYTE, *of.one)
    if node.kind == "QLinearSigmoid":
        with ieee():
            values = (1 / (1 + np.exp(-x.astype(np.float64)))).astype(np.float32)
    else:
        values = np.where(x >= 0, x, x * np.float32(node.get("alpha", 0.01)))
    return lookup(node, importer, of, to, values, node.kind.removeprefix("QLinear"))


@register("QLinearSoftmax", domain=MICROSOFT)
def _softmax(node: OnnxNode, importer: Importer) -> Tensor:
    of, to = ScaleAndZeroPoint(node, 1, 2, "the input"), ScaleAndZeroPoint(node, 3, 4, "the output")
    source = as_int8(importer, node.input(0), of)
    old = node.get("opset", 13) < 13
    rank = len(source.shape)
    axis = node.get("axis", 1 if old else -1) % rank
    order = [i for i in range(rank) if i != axis] + [axis]
    rows = importer.transpose(source, order)
    if old:  # all axes from this one on together
        order = list(range(rank))
        lines = int(np.prod(source.shape[:axis]))
        rows = importer.reshape(source, (lines, source.size // lines))
    result = importer.add(
        "SOFTMAX", rows, attributes=Softmax(), quantization=to.quantization, rounding=ROUNDING
    )
    if old:
        result = importer.reshape(result, source.shape)
    else:
        result = importer.transpose(result, np.argsort(order).tolist())
    return finish(importer, result, to, limits_of(node, to))


@register("QLinearConcat", domain=MICROSOFT)
def _concat(node: OnnxNode, importer: Importer) -> Tensor:
    to = ScaleAndZeroPoint(node, 0, 1, "the output", like=2)
    parts = []
    for position in range(2, len(node.inputs), 3):
        of = ScaleAndZeroPoint(node, position + 1, position + 2, f"input {position // 3}", position)
        parts.append(as_int8(importer, node.input(position), of))
    axis = int(node.get("axis", 1)) % len(parts[0].shape)
    result = importer.add(
        "CONCATENATION",
        *parts,
        attributes=Concatenation(axis),
        quantization=to.quantization,
        rounding=ROUNDING,
    )
    return finish(importer, result, to, limits_of(node, to))
