"""TFLite's builtin options into attribute objects: one converter a kind of operator.

A converter takes the operator (its tensors are set, its attributes are not) and the flatbuffer
table of its options; adding an entry to `CONVERTERS` teaches the reader a new operator.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import tflite

from covp.errors import ModelError
from covp.graph.attributes import (
    Activation,
    Concatenation,
    Conv2D,
    DepthwiseConv2D,
    Elementwise,
    FullyConnected,
    LeakyRelu,
    Mean,
    Pad,
    Padding,
    Pair,
    Pool2D,
    ResizeNearest,
    Softmax,
    Split,
    StridedSlice,
    Transpose,
)
from covp.graph.graph import Op, Tensor

Converter = Callable[[Op, Any], Any]

_ACTIVATIONS: dict[int, Activation] = {
    tflite.ActivationFunctionType.NONE: "none",
    tflite.ActivationFunctionType.RELU: "relu",
    tflite.ActivationFunctionType.RELU6: "relu6",
    tflite.ActivationFunctionType.RELU_N1_TO_1: "relu_n1_to_1",
}


def _options(kind: type[Any], table: Any) -> Any:
    """The typed view of an options table; defaults where the file leaves the table out."""
    if table is None:
        raise ModelError("its options are missing; convert the model again")
    options = kind()
    options.Init(table.Bytes, table.Pos)
    return options


def _activation(number: int) -> Activation:
    try:
        return _ACTIVATIONS[number]
    except KeyError:
        raise ModelError(
            f"fused activation {number} is not supported; known: "
            + ", ".join(_ACTIVATIONS.values())
        ) from None


def _image(tensor: Tensor) -> Pair:
    if len(tensor.shape) != 4:
        raise ModelError(f"tensor {tensor.name} has shape {tensor.shape}; NHWC is needed")
    return tensor.shape[1], tensor.shape[2]


def _constant(op: Op, position: int, what: str) -> list[int]:
    tensor = op.input(position)
    if tensor.data is None:
        raise ModelError(f"{what} ({tensor.name}) must be constant")
    return [int(value) for value in np.asarray(tensor.data).reshape(-1)]


def _positive(pair: Pair, what: str) -> Pair:
    if min(pair) < 1:
        raise ModelError(f"{what} {pair} is not positive")
    return pair


def same_padding(size: Pair, window: Pair, stride: Pair) -> Padding:
    """SAME pads as little as possible, the odd pixel at the end: ComputePaddingHeightWidth."""
    total = [
        max((-(-extent // step) - 1) * step + reach - extent, 0)
        for extent, reach, step in zip(size, window, stride, strict=True)
    ]
    top, left = total[0] // 2, total[1] // 2
    return Padding(top, total[0] - top, left, total[1] - left)


def _padding(kind: int, size: Pair, window: Pair, stride: Pair) -> Padding:
    if kind == tflite.Padding.VALID:
        return Padding()
    if kind != tflite.Padding.SAME:
        raise ModelError(f"padding {kind} is not supported")
    return same_padding(size, window, stride)


def dilated(kernel: Pair, dilation: Pair) -> Pair:
    """Rows and columns that a dilated kernel reaches over."""
    return (kernel[0] - 1) * dilation[0] + 1, (kernel[1] - 1) * dilation[1] + 1


def _conv2d(op: Op, table: Any) -> Conv2D:
    options = _options(tflite.Conv2DOptions, table)
    stride = _positive((options.StrideH(), options.StrideW()), "stride")
    dilation = _positive((options.DilationHFactor(), options.DilationWFactor()), "dilation")
    window = dilated(_image(op.input(1)), dilation)
    padding = _padding(options.Padding(), _image(op.input(0)), window, stride)
    return Conv2D(stride, padding, dilation, _activation(options.FusedActivationFunction()))


def _depthwise(op: Op, table: Any) -> DepthwiseConv2D:
    options = _options(tflite.DepthwiseConv2DOptions, table)
    stride = _positive((options.StrideH(), options.StrideW()), "stride")
    dilation = _positive((options.DilationHFactor(), options.DilationWFactor()), "dilation")
    window = dilated(_image(op.input(1)), dilation)
    padding = _padding(options.Padding(), _image(op.input(0)), window, stride)
    channels, outputs = op.input(0).shape[3], op.input(1).shape[3]
    # TFLM takes the multiplier from the shapes too; files may say 0
    if channels == 0 or outputs % channels:
        raise ModelError(f"{outputs} filters do not divide among {channels} input channels")
    activation = _activation(options.FusedActivationFunction())
    return DepthwiseConv2D(stride, padding, dilation, outputs // channels, activation)


def _fully_connected(op: Op, table: Any) -> FullyConnected:
    options = _options(tflite.FullyConnectedOptions, table)
    if options.WeightsFormat() != tflite.FullyConnectedOptionsWeightsFormat.DEFAULT:
        raise ModelError("its weights are shuffled; convert the model with default weights")
    return FullyConnected(
        _activation(options.FusedActivationFunction()), bool(options.KeepNumDims())
    )


def _pool(op: Op, table: Any) -> Pool2D:
    options = _options(tflite.Pool2DOptions, table)
    window = _positive((options.FilterHeight(), options.FilterWidth()), "filter")
    stride = _positive((options.StrideH(), options.StrideW()), "stride")
    padding = _padding(options.Padding(), _image(op.input(0)), window, stride)
    return Pool2D(window, stride, padding, _activation(options.FusedActivationFunction()))


def _elementwise(kind: type[Any]) -> Converter:
    def convert(op: Op, table: Any) -> Elementwise:
        if table is None:
            return Elementwise()
        return Elementwise(_activation(_options(kind, table).FusedActivationFunction()))

    return convert


def _axes(op: Op, position: int, rank: int) -> tuple[int, ...]:
    axes = _constant(op, position, "the axes")
    if any(not -rank <= axis < rank for axis in axes):
        raise ModelError(f"axes {axes} are outside a tensor of rank {rank}")
    return tuple(sorted({axis % rank for axis in axes}))


def _axis(value: int, rank: int) -> int:
    if not -rank <= value < rank:
        raise ModelError(f"axis {value} is outside a tensor of rank {rank}")
    return value % rank


def _mean(op: Op, table: Any) -> Mean:
    keep = table is not None and bool(_options(tflite.ReducerOptions, table).KeepDims())
    return Mean(_axes(op, 1, len(op.input(0).shape)), keep)


def _softmax(op: Op, table: Any) -> Softmax:
    beta = float(_options(tflite.SoftmaxOptions, table).Beta())
    if not (math.isfinite(beta) and beta > 0):
        raise ModelError(f"beta {beta:g} is not a positive number")
    return Softmax(beta)


def _leaky_relu(op: Op, table: Any) -> LeakyRelu:
    alpha = float(_options(tflite.LeakyReluOptions, table).Alpha())
    if not math.isfinite(alpha):
        raise ModelError(f"alpha {alpha:g} is not a number")
    return LeakyRelu(alpha)


def _nothing(op: Op, table: Any) -> None:
    return None


def _pad(op: Op, table: Any) -> Pad:
    source = op.input(0)
    flat = _constant(op, 1, "the paddings")
    if len(flat) != 2 * len(source.shape) or min(flat, default=0) < 0:
        raise ModelError(f"paddings {flat} do not fit the shape {source.shape}")
    # bytes are copied: the real 0 is what the output's quantization says
    out = op.output
    value: float = out.zero_point if out.quantization is not None else 0.0
    if len(op.inputs) > 2 and op.inputs[2] is not None:
        constant = op.input(2)
        if constant.data is None:
            raise ModelError(f"the padding value ({constant.name}) must be constant")
        value = float(np.asarray(constant.data).reshape(-1)[0])
    return Pad(tuple(zip(flat[::2], flat[1::2], strict=True)), value)


def _concatenation(op: Op, table: Any) -> Concatenation:
    options = _options(tflite.ConcatenationOptions, table)
    axis = _axis(options.Axis(), len(op.output.shape))
    if options.FusedActivationFunction() != tflite.ActivationFunctionType.NONE:
        raise ModelError("a fused activation is not supported; use a RELU operator")
    return Concatenation(axis)


def _transpose(op: Op, table: Any) -> Transpose:
    rank = len(op.input(0).shape)
    permutation = [_axis(axis, rank) for axis in _constant(op, 1, "the permutation")]
    if sorted(permutation) != list(range(rank)):
        raise ModelError(f"permutation {permutation} does not fit rank {rank}")
    return Transpose(tuple(permutation))


def _split(op: Op, table: Any) -> Split:
    axis = _constant(op, 0, "the axis")
    return Split(_axis(axis[0], len(op.input(1).shape)))


def _resize(op: Op, table: Any) -> ResizeNearest:
    options = _options(tflite.ResizeNearestNeighborOptions, table)
    _image(op.input(0))
    size = _constant(op, 1, "the size")
    if len(size) != 2:
        raise ModelError(f"the size {size} is not (height, width)")
    return ResizeNearest(
        _positive((size[0], size[1]), "the size"),
        bool(options.AlignCorners()),
        bool(options.HalfPixelCenters()),
    )


def _strided_slice(op: Op, table: Any) -> StridedSlice:
    options = _options(tflite.StridedSliceOptions, table)
    if options.EllipsisMask() or options.NewAxisMask():
        raise ModelError("ellipsis and new-axis masks are not supported; slice each axis")
    shape = op.input(0).shape
    begin, end, stride = (
        _constant(op, position, what)
        for position, what in ((1, "begin"), (2, "end"), (3, "the strides"))
    )
    if not len(begin) == len(end) == len(stride) == len(shape):
        raise ModelError(f"begin, end and strides do not have the rank of {shape}")
    slices: list[tuple[int, int | None, int]] = []
    shrink = []
    for axis, extent in enumerate(shape):
        bit = 1 << axis
        if stride[axis] == 0:
            raise ModelError(f"stride 0 on axis {axis}")
        if options.ShrinkAxisMask() & bit:
            at = _axis(begin[axis], extent)
            slices.append((at, at + 1, 1))
            shrink.append(axis)
            continue
        wanted = slice(
            None if options.BeginMask() & bit else begin[axis],
            None if options.EndMask() & bit else end[axis],
            stride[axis],
        )
        start, stop, step = wanted.indices(extent)
        slices.append((start, None if stop < 0 else stop, step))
    return StridedSlice(tuple(slices), tuple(shrink))


CONVERTERS: dict[str, Converter] = {
    "ADD": _elementwise(tflite.AddOptions),
    "AVERAGE_POOL_2D": _pool,
    "CONCATENATION": _concatenation,
    "CONV_2D": _conv2d,
    "DEPTHWISE_CONV_2D": _depthwise,
    "DEQUANTIZE": _nothing,
    "FULLY_CONNECTED": _fully_connected,
    "LEAKY_RELU": _leaky_relu,
    "LOGISTIC": _nothing,
    "MAX_POOL_2D": _pool,
    "MEAN": _mean,
    "MUL": _elementwise(tflite.MulOptions),
    "PAD": _pad,
    "PADV2": _pad,
    "QUANTIZE": _nothing,
    "REDUCE_MAX": _mean,
    "RELU": _nothing,
    "RELU6": _nothing,
    "RESHAPE": _nothing,
    "RESIZE_NEAREST_NEIGHBOR": _resize,
    "SOFTMAX": _softmax,
    "SPLIT": _split,
    "STRIDED_SLICE": _strided_slice,
    "SUB": _elementwise(tflite.SubOptions),
    "TANH": _nothing,
    "TRANSPOSE": _transpose,
}
"""Operator kind to converter."""
