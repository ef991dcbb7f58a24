"""Problems of layers with weights: convolution, depthwise convolution, fully connected."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from covp.graph.ops.convolution import conv2d_accumulate, depthwise_accumulate
from covp.testing.problem import Array, Pair, Problem, Sides, pad, sides, window_count
from covp.testing.requantization import Requantization


def _finish(
    sums: Array,
    bias: Array | None,
    requantization: Requantization | None,
    activation: tuple[float, float],
    dtype: np.dtype[np.generic],
) -> Array:
    """Add the bias, then requantize the sums, or clamp floating point ones."""
    if bias is not None:
        sums = sums + bias.astype(sums.dtype)
    if requantization is None:
        return np.asarray(np.clip(sums, *activation).astype(dtype))
    return requantization.apply(sums, dtype)


@dataclass(frozen=True, eq=False, repr=False)
class WindowProblem(Problem):
    """A problem of convolutions; input and output are NHWC.

    Attributes:
        input: int8, int16 or float32 (batch, height, width, channels).
        weights: int8 or float32; height and width are axes 1 and 2.
        bias: int32, for int16 inputs int64, float32, or None; (outputs,).
        requantization: with one multiplier, or one for each output; None for float32.
        stride, dilation: (height, width).
        padding: (top, bottom, left, right); the input's zero point lies there.
        zero_point: of the input; TFLM's input_offset is its negative.
        activation: the clamp of float32 outputs.
    """

    input: Array
    weights: Array
    bias: Array | None
    requantization: Requantization | None
    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    padding: Sides = (0, 0, 0, 0)
    zero_point: int = 0
    activation: tuple[float, float] = (-math.inf, math.inf)

    @property
    def outputs(self) -> int:
        """Channels of the output."""
        raise NotImplementedError

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape (batch, height, width, outputs)."""
        kernel = (self.weights.shape[1], self.weights.shape[2])
        size = (self.input.shape[1], self.input.shape[2])
        count = window_count(size, kernel, self.stride, self.dilation, self.padding)
        return (self.input.shape[0], *count, self.outputs)

    def _taps(self, x: Array) -> Iterator[tuple[tuple[int, ...], Array]]:
        """Yield for each place of the kernel the part of ``x`` that it meets, as doubles."""
        image = pad(x.astype(np.float64), self.padding)
        (sy, sx), (dy, dx) = self.stride, self.dilation
        _, rows, columns, _ = self.output_shape
        for ky, kx in np.ndindex(self.weights.shape[1:3]):
            top, left = ky * dy, kx * dx
            part = image[:, top : top + rows * sy : sy, left : left + columns * sx : sx]
            yield (ky, kx), part[:, :rows, :columns]


@dataclass(frozen=True, eq=False, repr=False)
class ConvolutionProblem(WindowProblem):
    """A convolution; input and output are NHWC.

    Source: ConvPerChannel of tensorflow/lite/kernels/internal/reference/integer_ops/conv.h; the
    number of groups follows from the shapes, as there.

    Attributes:
        weights: int8 or float32 (outputs, height, width, channels / groups).
    """

    @property
    def groups(self) -> int:
        """Number of groups of channels and of outputs."""
        return int(self.input.shape[3] // self.weights.shape[3])

    @property
    def outputs(self) -> int:
        """Channels of the output."""
        return int(self.weights.shape[0])

    def expected(self) -> Array:
        """Return the output, of the input's type."""
        inputs = np.split(self.input, self.groups, axis=3)
        weights = np.split(self.weights, self.groups, axis=0)
        parts = [self._sums(x, w) for x, w in zip(inputs, weights, strict=True)]
        sums = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=3)
        return _finish(
            sums, self.bias, self.requantization, self.activation, self.input.dtype
        ).reshape(self.output_shape)

    def _sums(self, x: Array, weights: Array) -> Array:
        if self.requantization is None:
            double = weights.astype(np.float64)
            return np.asarray(sum(part @ double[:, ky, kx].T for (ky, kx), part in self._taps(x)))
        sum_type = np.int64 if self.input.dtype == np.int16 else np.int32
        padding = sides(self.padding)
        return conv2d_accumulate(
            x, weights, self.stride, self.dilation, padding, self.zero_point, sum_type
        )


@dataclass(frozen=True, eq=False, repr=False)
class DepthwiseProblem(WindowProblem):
    """A depthwise convolution; input and output are NHWC.

    Source: DepthwiseConvPerChannel of integer_ops/depthwise_conv.h.

    Attributes:
        weights: int8 or float32 (1, height, width, outputs); the outputs are a multiple of the
            input's channels, and the first of them are those of the first channel.
    """

    @property
    def multiplier(self) -> int:
        """Outputs of each channel: TFLM's depth_multiplier."""
        return int(self.weights.shape[3] // self.input.shape[3])

    @property
    def outputs(self) -> int:
        """Channels of the output."""
        return int(self.weights.shape[3])

    def expected(self) -> Array:
        """Return the output, of the input's type."""
        if self.requantization is None:
            sums = np.asarray(
                sum(
                    np.repeat(part, self.multiplier, axis=3) * self.weights[0, ky, kx]
                    for (ky, kx), part in self._taps(self.input)
                )
            )
        else:
            sums = depthwise_accumulate(
                self.input,
                self.weights[0],
                self.stride,
                self.dilation,
                sides(self.padding),
                self.zero_point,
                np.int64 if self.input.dtype == np.int16 else np.int32,
            )
        return _finish(sums, self.bias, self.requantization, self.activation, self.input.dtype)


@dataclass(frozen=True, eq=False, repr=False)
class FullyConnectedProblem(Problem):
    """A fully connected layer.

    Source: FullyConnected of integer_ops/fully_connected.h, FullyConnectedPerChannel where there
    are several multipliers.

    Attributes:
        input: int8, int16 or float32 (rows, depth).
        weights: int8 or float32 (outputs, depth).
        bias: int32, for int16 inputs int64, float32, or None; (outputs,).
        requantization: with one multiplier, or one for each output; None for float32.
        zero_point: of the input; TFLM's input_offset is its negative.
        activation: the clamp of float32 outputs.
    """

    input: Array
    weights: Array
    bias: Array | None
    requantization: Requantization | None
    zero_point: int = 0
    activation: tuple[float, float] = (-math.inf, math.inf)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape (rows, outputs)."""
        return (self.input.shape[0], self.weights.shape[0])

    def expected(self) -> Array:
        """Return the output, of the input's type."""
        kind = np.float64 if self.requantization is None else np.int64
        sums = (self.input.astype(kind) - kind(self.zero_point)) @ self.weights.T.astype(kind)
        if self.input.dtype == np.int8:
            sums = sums.astype(np.int32)
        return _finish(sums, self.bias, self.requantization, self.activation, self.input.dtype)
