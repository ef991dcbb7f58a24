"""Convolutions as plain numbers, for kernels and accelerators.

The graph keeps scales as a model states them; here they are TFLM's fixed-point multipliers
(tensorflow/lite/micro/kernels/*_common.cc), zero points, clamps and plain arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.errors import ModelError
from covp.graph.arithmetic import INT8, Arithmetic, Scaling, SumType
from covp.graph.attributes import Conv2D, DepthwiseConv2D, FullyConnected, Padding, Pair
from covp.graph.float_scaling import requantization_factor
from covp.graph.graph import Op, Tensor
from covp.graph.quantization import (
    activation_range,
    float_activation_range,
    quantize_multiplier,
)

CONVOLUTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
"""Kinds of operators that accelerators get as convolutions."""


@dataclass(frozen=True, eq=False)
class Convolution:
    """The shape of a convolution, depthwise convolution or fully connected layer.

    A fully connected layer is a 1x1 convolution with one pixel for each row of its input.

    Attributes:
        batch: images.
        in_height, in_width, in_channels: of each image.
        out_height, out_width, out_channels: of each output.
        kernel, stride, dilation: (height, width).
        padding: rows and columns around each image.
        depthwise: each output channel is computed from one input channel.
    """

    batch: int
    in_height: int
    in_width: int
    in_channels: int
    out_height: int
    out_width: int
    out_channels: int
    kernel: Pair
    stride: Pair
    dilation: Pair
    padding: Padding
    depthwise: bool


@dataclass(frozen=True, eq=False)
class QuantizedConv2D(Convolution):
    """An int8 convolution, or one of int16 with int8 weights.

    Attributes:
        weights: int8, OHWI; depthwise (kernel height, kernel width, out_channels). int16 where
            they have a zero point, which is subtracted, and do not fit int8.
        bias: int32, one per output channel, zeros where the model has none; int64 with
            sums of 64 bits.
        multiplier, shift: int32, one per output channel; shift is positive to the left.
        clamp: lowest and highest output, in stored units.
        arithmetic: how sums become outputs.
        factors: float32, one per output channel, where the layer follows onnxruntime's arithmetic
            (`covp.graph.float_scaling`); multiplier and shift are then the nearest numbers only.
    """

    depth_multiplier: int
    input_zero_point: int
    output_zero_point: int
    weights: NDArray[Any]
    bias: NDArray[Any]
    multiplier: NDArray[np.int32]
    shift: NDArray[np.int32]
    clamp: tuple[int, int]
    arithmetic: Arithmetic = INT8
    factors: NDArray[np.float32] | None = None

    @property
    def scaling(self) -> Scaling:
        """Factors that turn sums into outputs."""
        return Scaling(
            self.multiplier, self.shift, self.output_zero_point, self.clamp, self.factors
        )


@dataclass(frozen=True, eq=False)
class FloatConv2D(Convolution):
    """A float32 CONV_2D or DEPTHWISE_CONV_2D.

    Attributes:
        weights: float32, OHWI; depthwise (kernel height, kernel width, out_channels).
        bias: float32, one per output channel.
        clamp: lowest and highest output; infinite without an activation.
    """

    weights: NDArray[np.float32]
    bias: NDArray[np.float32]
    clamp: tuple[float, float]


def resolve(op: Op) -> QuantizedConv2D:
    """Return the integers of an int8 or int16 CONV_2D, DEPTHWISE_CONV_2D or FULLY_CONNECTED.

    Raises:
        ModelError: the operator is of another kind, its weights are not constant int8, or they
            have a zero point per channel; of int16 also where an activation has one.
    """
    resolver = _RESOLVERS.get(op.kind)
    if resolver is None:
        raise ModelError(f"{op.name}: {op.kind} is not a convolution")
    return resolver(op)


def _conv2d(op: Op) -> QuantizedConv2D:
    attributes: Conv2D = op.attributes
    weights = _weights(op)
    batch, height, width, channels = op.input(0).shape
    if weights.shape[3] != channels:
        raise ModelError(
            f"{op.name}: grouped convolution ({channels} input channels, filters of "
            f"{weights.shape[3]}) is not supported; split it into one convolution per group"
        )
    return _problem(
        op,
        (batch, height, width, channels),
        op.output.shape,
        (weights.shape[1], weights.shape[2]),
        attributes.stride,
        attributes.dilation,
        attributes.padding,
        weights,
        attributes.activation,
    )


def _depthwise(op: Op) -> QuantizedConv2D:
    attributes: DepthwiseConv2D = op.attributes
    weights = _weights(op)[0]
    return _problem(
        op,
        op.input(0).shape,
        op.output.shape,
        (weights.shape[0], weights.shape[1]),
        attributes.stride,
        attributes.dilation,
        attributes.padding,
        weights,
        attributes.activation,
        attributes.depth_multiplier,
    )


def _fully_connected(op: Op) -> QuantizedConv2D:
    attributes: FullyConnected = op.attributes
    weights = _weights(op)
    out_channels, depth = weights.shape
    rows = op.input(0).size // depth
    return _problem(
        op,
        (rows, 1, 1, depth),
        (rows, 1, 1, out_channels),
        (1, 1),
        (1, 1),
        (1, 1),
        Padding(),
        weights.reshape(out_channels, 1, 1, depth),
        attributes.activation,
    )


def _with_axes(op: Op) -> QuantizedConv2D:
    """Return the problem of a CONV_ND or TRANSPOSE_CONV of images; attributes keep the geometry."""
    weights = _weights(op)
    if weights.ndim != 4:
        raise ModelError(f"{op.name}: {op.kind} of int8 with {weights.ndim - 2} axes; only 2")
    if weights is not op.input(1).data:
        raise ModelError(
            f"{op.name}: {op.kind} with a zero point of its weights {op.input(1).name}; quantize "
            "them symmetrically"
        )
    a = op.attributes
    return _problem(
        op,
        op.input(0).shape,
        op.output.shape,
        (weights.shape[1], weights.shape[2]),
        a.stride,
        a.dilation,
        Padding(),
        weights,
        a.activation,
    )


_RESOLVERS = {
    "CONV_2D": _conv2d,
    "CONV_ND": _with_axes,
    "DEPTHWISE_CONV_2D": _depthwise,
    "FULLY_CONNECTED": _fully_connected,
    "TRANSPOSE_CONV": _with_axes,
}
PRODUCTS = tuple(kind for kind, by in _RESOLVERS.items() if by in (_conv2d, _fully_connected))
"""Kinds that are products of a matrix of weights and one of activations."""


def _weights(op: Op) -> NDArray[Any]:
    """Return the weights minus their zero point, as int8 if they fit."""
    tensor = op.input(1)
    if tensor.data is None or tensor.dtype != np.int8:
        raise ModelError(f"{op.name}: weights {tensor.name} must be constant int8")
    scaled = tensor.quantization
    if scaled is None or not scaled.zero_point.any():
        return tensor.data
    if scaled.per_channel:
        raise ModelError(
            f"{op.name}: weights {tensor.name} have a zero point per channel; quantize them "
            "symmetrically"
        )
    centred = tensor.data.astype(np.int16) - np.int16(tensor.zero_point)
    narrow = np.abs(centred).max(initial=0) <= 127
    return np.asarray(centred, np.int8 if narrow else np.int16)


def _problem(
    op: Op,
    source: tuple[int, ...],
    result: tuple[int, ...],
    kernel: Pair,
    stride: Pair,
    dilation: Pair,
    padding: Padding,
    weights: NDArray[Any],
    activation: str,
    depth_multiplier: int = 0,
) -> QuantizedConv2D:
    out = op.output
    clamp = activation_range(activation, out.scale, out.zero_point, out.dtype)
    arithmetic = Arithmetic.of(op)
    _check_int16(op)
    scaling = arithmetic.scaling(op, *_factors(op, result[3]), clamp)
    return QuantizedConv2D(
        batch=source[0],
        in_height=source[1],
        in_width=source[2],
        in_channels=source[3],
        out_height=result[1],
        out_width=result[2],
        out_channels=result[3],
        kernel=kernel,
        stride=stride,
        dilation=dilation,
        padding=padding,
        depthwise=depth_multiplier > 0,
        depth_multiplier=max(depth_multiplier, 1),
        input_zero_point=op.input(0).zero_point,
        output_zero_point=out.zero_point,
        weights=weights,
        bias=_bias(op, result[3], arithmetic.sum_type),
        multiplier=scaling.multiplier,
        shift=scaling.shift,
        clamp=clamp,
        arithmetic=arithmetic,
        factors=scaling.factors,
    )


def _check_int16(op: Op) -> None:
    """Raise ModelError for an int16 activation with a zero point, as LiteRT does."""
    for tensor in (op.input(0), op.output):
        if op.input(0).dtype == np.int16 and tensor.zero_point != 0:
            raise ModelError(
                f"{op.name}: tensor {tensor.name} is int16 with zero point {tensor.zero_point}, "
                "which must be 0; convert the model again"
            )


def _bias(op: Op, channels: int, dtype: SumType) -> NDArray[Any]:
    tensor: Tensor | None = op.inputs[2] if len(op.inputs) > 2 else None
    if tensor is None:
        return np.zeros(channels, dtype)
    if tensor.data is None or tensor.dtype != dtype:
        raise ModelError(f"{op.name}: bias {tensor.name} must be constant int32")
    return np.asarray(tensor.data, dtype).reshape(channels)


def _factors(op: Op, channels: int) -> tuple[list[tuple[int, int]], NDArray[np.float32]]:
    """Return input scale * weight scale / output scale of each channel, for TFLM and onnxruntime.

    TFLM: in double as PopulateConvolutionQuantizationParams; FULLY_CONNECTED with one filter scale
    multiplies the two scales in single precision first (GetQuantizedConvolutionMultipler), and so
    do all layers with uint8 weights.
    """
    weights = op.input(1).quantization
    if weights is None:
        raise ModelError(f"{op.name}: weights {op.input(1).name} have no scale")
    scales = np.broadcast_to(weights.scale, (channels,))
    # weights of uint8 have a zero point
    old = op.kind == "FULLY_CONNECTED" or bool(weights.zero_point.any())
    short = old and not weights.per_channel
    exact = np.dtype(np.float32 if short else np.float64)
    products = np.asarray(op.input(0).scale, exact) * scales.astype(exact)
    factors = products.astype(np.float64) / op.output.scale
    single = requantization_factor(op.input(0).scale, scales, op.output.scale)
    return [quantize_multiplier(float(factor)) for factor in factors], single


def resolve_float(op: Op) -> FloatConv2D:
    """Return the numbers of a float32 CONV_2D or DEPTHWISE_CONV_2D.

    Raises:
        ModelError: its weights are not constant, or it has groups.
    """
    a, weights = op.attributes, op.input(1).data
    if weights is None:
        raise ModelError(f"{op.kind} whose weights {op.input(1).name} are not constant")
    batch, height, width, channels = op.input(0).shape
    depthwise = op.kind == "DEPTHWISE_CONV_2D"
    if not depthwise and weights.shape[3] != channels:
        raise ModelError(f"{channels // weights.shape[3]} groups; only 1 is supported")
    out_channels = op.output.shape[3]
    bias = op.inputs[2].data if len(op.inputs) > 2 and op.inputs[2] is not None else None
    return FloatConv2D(
        batch,
        height,
        width,
        channels,
        op.output.shape[1],
        op.output.shape[2],
        out_channels,
        (weights.shape[1], weights.shape[2]),
        a.stride,
        a.dilation,
        a.padding,
        depthwise,
        np.asarray(weights[0] if depthwise else weights, np.float32),
        np.zeros(out_channels, np.float32) if bias is None else np.asarray(bias, np.float32),
        float_activation_range(a.activation),
    )
