"""`ConvCase`: layers with weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.graph.attributes import (
    Activation,
    Conv2D,
    DepthwiseConv2D,
    FullyConnected,
    Pair,
)
from covp.graph.graph import Graph, Tensor
from covp.testing.case import Dtype, Layer, place_windows
from covp.testing.quantizations import affine
from covp.testing.tensors import Shape, int8, int16, plain


@dataclass(frozen=True)
class ConvCase(Layer):
    """CONV_2D, DEPTHWISE_CONV_2D or FULLY_CONNECTED.

    Attributes:
        dtype: of input and output; weights are of the same, the bias of int8 layers is int32. int16
            layers have int8 weights, no zero points and an int64 bias.
        narrow_bias: the bias of an int16 layer is int32, and so are its sums.
        batch: images.
        size: (height, width) of the image; one smaller than a window grows to it.
        channels: (input, output); a depthwise layer's output has the next multiple of the input's.
        kernel, stride, dilation: (height, width).
        same: TFLite's SAME padding, else VALID.
        padding: (top, bottom, left, right) in place of both; TFLite files cannot have it.
        bias: whether there is one.
        activation: fused.
        zero_points: (input, output) of int8 layers.
        output_scale: in units of one at which random sums fill int8; smaller ones saturate.
        per_channel: a scale for each output channel; FULLY_CONNECTED has one in any case.
        weight_limit: the largest magnitude of int8 weights, 1 to 127.
        zeros: part of the weights that is 0, from 0 to 1.
        levels: the int8 weights are some of these values only; (): any within ``weight_limit``.
        nonzero: (n, m): of each m weights in a row of input channels, n at most are not 0.
        extreme: int8 inputs and weights are at their ranges' ends only.
        largest: the weights of an int8 layer's channel are all the lowest or all the highest, and
            so are the inputs: sums are as large as they can be, and fill the output.
        spread_multipliers: output channels of an int8 layer have multipliers from 2**-32 to 6, half
            of them powers of two, each with a bias (where there is one) that reaches as far as the
            output, at most 2**30.
    """

    kind: str = "CONV_2D"
    dtype: Dtype = "int8"
    batch: int = 1
    size: Pair = (1, 1)
    channels: Pair = (1, 1)
    kernel: Pair = (1, 1)
    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    same: bool = False
    bias: bool = False
    activation: Activation = "none"
    zero_points: Pair = (0, 0)
    output_scale: float = 1.0
    seed: int = 0
    gap: int = 0
    padding: tuple[int, int, int, int] | None = None
    per_channel: bool = True
    weight_limit: int = 127
    zeros: float = 0.0
    extreme: bool = False
    largest: bool = False
    spread_multipliers: bool = False
    narrow_bias: bool = False
    levels: tuple[int, ...] = ()
    nonzero: Pair | None = None

    def graph(self) -> Graph:
        """Return the layer alone."""
        fan_in, outputs = self.channels
        if self.kind == "FULLY_CONNECTED":
            attributes: Any = FullyConnected(self.activation)
            return self._assemble(
                (self.batch, fan_in), (outputs, fan_in), (self.batch, outputs), attributes
            )
        seen = place_windows(
            self.size, self.kernel, self.stride, self.dilation, self.same, self.padding
        )
        if self.kind == "DEPTHWISE_CONV_2D":
            multiplier = -(-outputs // fan_in)
            outputs = fan_in * multiplier
            weights = (1, *self.kernel, outputs)
            attributes = DepthwiseConv2D(
                self.stride, seen.padding, self.dilation, multiplier, self.activation
            )
        else:
            weights = (outputs, *self.kernel, fan_in)
            attributes = Conv2D(self.stride, seen.padding, self.dilation, self.activation)
        source, result = (self.batch, *seen.size, fan_in), (self.batch, *seen.out, outputs)
        return self._assemble(source, weights, result, attributes)

    def _assemble(self, source: Shape, filters: Shape, result: Shape, attributes: Any) -> Graph:
        rng = np.random.default_rng(self.seed)
        channels = result[-1]
        if self.dtype == "float32":
            weights = plain("w", filters, data=rng.uniform(-1, 1, filters).astype(np.float32))
            bias = plain("b", (channels,), data=rng.uniform(-1, 1, channels).astype(np.float32))
            x, y = plain("x", source), plain("y", result)
        else:
            several = self.per_channel and self.kind != "FULLY_CONNECTED"
            scales = rng.uniform(0.001, 0.02, channels if several else 1).astype(np.float32)
            axis = 3 if self.kind == "DEPTHWISE_CONV_2D" else 0
            weights = int8("w", filters, scales, 0, self._weights(rng, filters), axis)
            data = rng.integers(-5000, 5000, channels).astype(np.int32)
            result_scale = self._result_scale(filters)
            if self.spread_multipliers:
                result_scale = 0.05  # the input's: multipliers are the weights' scales
                exponents = rng.uniform(-32, 2.5, scales.size)
                exponents[::2] = np.round(exponents[::2])  # results that lie between two integers
                if scales.size == 1:  # neighbouring seeds far apart, 69 of them all
                    exponents[0] = -32 + 7 * self.seed % 69 / 2
                factors = 2.0**exponents
                scales = factors.astype(np.float32)
                weights.quantization = affine(scales, 0, axis)
                reach = np.minimum(150 / np.broadcast_to(factors, channels), 2.0**30)
                data = (rng.uniform(-1, 1, channels) * reach).astype(np.int32)
            unit = np.float32(0.05)
            x = int8("x", source, 0.05, self.zero_points[0])
            y = int8("y", result, result_scale, self.zero_points[1])
            if self.dtype == "int16":
                unit = unit / np.float32(256)
                x, y = int16("x", source, float(unit)), int16("y", result, result_scale / 256)
                data = (data * 256).astype(np.int32 if self.narrow_bias else np.int64)
            bias = Tensor("b", (channels,), data.dtype, affine(scales * unit), data)
        return self._alone([x, weights, bias if self.bias else None], y, attributes)

    def _weights(self, rng: np.random.Generator, shape: Shape) -> NDArray[np.int8]:
        limit = self.weight_limit
        if self.levels:
            weights = rng.choice(np.array(self.levels), shape)
        elif self.largest:
            axis = 3 if self.kind == "DEPTHWISE_CONV_2D" else 0
            ends = rng.choice(np.array([-limit - (limit == 127), limit]), shape[axis])
            each = [1] * len(shape)
            each[axis] = shape[axis]
            weights = np.broadcast_to(ends.reshape(each), shape).copy()
        elif self.extreme:
            weights = rng.choice(np.array([-limit, limit]), shape)
        else:
            weights = rng.integers(-limit, limit + 1, shape)
        if self.zeros:
            weights[rng.random(shape) < self.zeros] = 0
        if self.nonzero is not None:
            kept, group = self.nonzero
            rows = weights.reshape(-1, shape[-1])
            for start in range(0, shape[-1], group):
                part = rows[:, start : start + group]
                order = rng.permuted(np.broadcast_to(np.arange(part.shape[1]), part.shape), axis=1)
                part[order >= kept] = 0
        return np.asarray(weights, np.int8)

    def _result_scale(self, filters: Shape) -> float:
        """Return the output scale: sums of random products grow with the root of their number."""
        channels = filters[-1] if self.kind == "DEPTHWISE_CONV_2D" else filters[0]
        depth = int(np.prod(filters)) // channels
        sums = 255 * 128 * depth if self.largest else 50 * 80 * depth**0.5
        typical = 0.05 * 0.02 * sums / 128
        return float(typical * self.output_scale * self.weight_limit / 127)

    def inputs(self) -> list[NDArray[Any]]:
        """Return values for the graph's inputs."""
        if self.largest:
            return self._inputs(self.seed + 1, "lowest" if self.zero_points[0] >= 0 else "highest")
        return self._inputs(self.seed + 1, "extreme" if self.extreme else "random")
