"""Convolutions, fully connected layers, matrix products and pools."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import tflite

from covp.errors import ModelError
from covp.graph.attributes import Conv2D, DepthwiseConv2D, FullyConnected, Pair, Pool2D
from covp.graph.graph import Op, Tensor
from covp.graph.ops.matmul import BatchMatMul
from covp.graph.ops.windows import ConvND, TransposeConv
from covp.graph.tflite.converters.common import (
    activation_of,
    constant_integers,
    dilated_size,
    image_size,
    options_of,
    padding_of,
    positive,
    register,
)


def _narrow_sums(op: Op, bias_type: int) -> None:
    """Give an int16 layer without bias a bias of zeros where its options ask for int32 sums."""
    bias = op.inputs[2] if len(op.inputs) > 2 else None
    if op.input(0).dtype == np.int16 and bias is None and bias_type == tflite.TensorType.INT32:
        zeros = np.zeros(op.output.shape[-1], np.int32)
        name = f"{op.output.name}_no_bias"
        op.inputs = [*op.inputs[:2], Tensor(name, zeros.shape, zeros.dtype, None, zeros)]


@register("CONV_2D")
def _conv2d(op: Op, table: Any) -> Conv2D | ConvND:
    """Convert CONV_2D; to CONV_ND with groups where filters have fewer channels than the image."""
    options = options_of(tflite.Conv2DOptions, table)
    stride = positive((options.StrideH(), options.StrideW()), "stride")
    dilation = positive((options.DilationHFactor(), options.DilationWFactor()), "dilation")
    window = dilated_size(image_size(op.input(1)), dilation)
    padding = padding_of(options.Padding(), image_size(op.input(0)), window, stride)
    _narrow_sums(op, options.QuantizedBiasType())
    activation = activation_of(options.FusedActivationFunction())
    channels, depth = op.input(0).shape[3], op.input(1).shape[3]
    if channels == depth or depth == 0 or channels % depth:
        return Conv2D(stride, padding, dilation, activation)
    op.kind = "CONV_ND"
    pads = (padding.top, padding.bottom), (padding.left, padding.right)
    return ConvND(stride, pads, dilation, channels // depth, activation)


@register("TRANSPOSE_CONV")
def _transpose_conv(op: Op, table: Any) -> TransposeConv:
    """Convert TRANSPOSE_CONV, whose inputs are the output's shape, weights, image and bias.

    A shape that comes at run time can only be the one that the file states for the output. Where
    a file has a bias of int16, its values count as int64: micro/kernels/transpose_conv.cc.
    """
    options = options_of(tflite.TransposeConvOptions, table)
    stride = positive((options.StrideH(), options.StrideW()), "stride")
    known = op.input(0).data is not None
    shape = constant_integers(op, 0, "the output's shape") if known else list(op.output.shape)
    bias = op.inputs[3] if len(op.inputs) > 3 else None
    if bias is not None and bias.dtype == np.int16 and bias.data is not None:
        bias = replace(bias, dtype=np.dtype(np.int64), data=bias.data.astype(np.int64))
    op.inputs = [op.input(2), op.input(1), bias]
    if len(shape) != 4 or len(op.output.shape) != 4:
        raise ModelError(f"its output has shape {shape}; NHWC is needed")
    size = shape[1], shape[2]
    padding = padding_of(options.Padding(), size, image_size(op.input(1)), stride)
    activation = activation_of(options.FusedActivationFunction())
    before = padding.top, padding.left
    return TransposeConv(stride, before, size, (1, 1), activation=activation)


@register("DEPTHWISE_CONV_2D")
def _depthwise(op: Op, table: Any) -> DepthwiseConv2D:
    options = options_of(tflite.DepthwiseConv2DOptions, table)
    stride = positive((options.StrideH(), options.StrideW()), "stride")
    dilation = positive((options.DilationHFactor(), options.DilationWFactor()), "dilation")
    window = dilated_size(image_size(op.input(1)), dilation)
    padding = padding_of(options.Padding(), image_size(op.input(0)), window, stride)
    channels, outputs = op.input(0).shape[3], op.input(1).shape[3]
    # TFLM takes the multiplier from the shapes too; files may say 0
    if channels == 0 or outputs % channels:
        raise ModelError(f"{outputs} filters do not divide among {channels} input channels")
    activation = activation_of(options.FusedActivationFunction())
    return DepthwiseConv2D(stride, padding, dilation, outputs // channels, activation)


@register("FULLY_CONNECTED")
def _fully_connected(op: Op, table: Any) -> FullyConnected:
    options = options_of(tflite.FullyConnectedOptions, table)
    if options.WeightsFormat() != tflite.FullyConnectedOptionsWeightsFormat.DEFAULT:
        raise ModelError("its weights are shuffled; convert the model with default weights")
    _narrow_sums(op, options.QuantizedBiasType())
    return FullyConnected(
        activation_of(options.FusedActivationFunction()), bool(options.KeepNumDims())
    )


@register("BATCH_MATMUL")
def _batch_matmul(op: Op, table: Any) -> BatchMatMul:
    options = options_of(tflite.BatchMatMulOptions, table)
    return BatchMatMul(bool(options.AdjX()), bool(options.AdjY()))


@register("AVERAGE_POOL_2D", "MAX_POOL_2D")
def _pool(op: Op, table: Any) -> Pool2D:
    options = options_of(tflite.Pool2DOptions, table)
    window = positive((options.FilterHeight(), options.FilterWidth()), "filter")
    stride = positive((options.StrideH(), options.StrideW()), "stride")
    padding = padding_of(options.Padding(), image_size(op.input(0)), window, stride)
    return Pool2D(window, stride, padding, activation_of(options.FusedActivationFunction()))


@register("CONV_3D")
def _conv3d(op: Op, table: Any) -> ConvND:
    """Convert CONV_3D, whose weights are (*kernel, channels, outputs)."""
    options = options_of(tflite.Conv3DOptions, table)
    weights = op.input(1)
    if len(op.input(0).shape) != 5 or len(weights.shape) != 5 or weights.data is None:
        raise ModelError("an image with three axes and constant weights are needed")
    stride = options.StrideD(), options.StrideH(), options.StrideW()
    factors = (options.DilationDFactor(), options.DilationHFactor(), options.DilationWFactor())
    if min(*stride, *factors) < 1:
        raise ModelError(f"stride {stride} and dilation {factors} are not positive")
    pads: list[Pair] = [(0, 0)] * 3
    for axis, (extent, step) in enumerate(zip(op.input(0).shape[1:4], stride, strict=True)):
        window = dilated_size((weights.shape[axis], 1), (factors[axis], 1))
        one = padding_of(options.Padding(), (extent, 1), window, (step, 1))
        pads[axis] = one.top, one.bottom
    data = np.ascontiguousarray(np.moveaxis(weights.data, 4, 0))
    op.kind = "CONV_ND"
    op.inputs[1] = replace(weights, shape=data.shape, data=data)
    activation = activation_of(options.FusedActivationFunction())
    return ConvND(stride, tuple(pads), factors, activation=activation)
