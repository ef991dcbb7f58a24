"""Layers without weights as a few numbers; each prints as Python text that makes it again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.graph.attributes import Activation, Concatenation, Elementwise, Pair, Pool2D, Softmax
from covp.graph.graph import Graph, Tensor
from covp.graph.ops.matmul import BatchMatMul
from covp.graph.zoo.builder import single_op_graph
from covp.testing.case import Dtype, Layer, place_windows
from covp.testing.contents import Content
from covp.testing.quantizations import affine
from covp.testing.requantization import halfway_image
from covp.testing.tensors import Shape, filled, int8, int16, plain


def _tensor(name: str, shape: Shape, dtype: Dtype, scale: float, zero_point: int) -> Tensor:
    if dtype == "int16":  # symmetric, with as fine a scale as uses its range
        return int16(name, shape, scale / 256)
    return int8(name, shape, scale, zero_point) if dtype == "int8" else plain(name, shape)


@dataclass(frozen=True)
class ElementwiseCase(Layer):
    """ADD, SUB or MUL.

    Attributes:
        shape: of the first operand.
        other: of the second, broadcast with the first; the same by default.
        zero_points, scales: of first, second and output, for int8; int16 has a 256th of the scales
            and no zero points.
        constant: the second operand is part of the graph.
        content: of the operands that come at run time, see `covp.testing.tensors.filled`.
    """

    kind: str = "ADD"
    shape: Shape = (1, 1)
    zero_points: tuple[int, int, int] = (0, 0, 0)
    scales: tuple[float, float, float] = (0.05, 0.05, 0.1)
    activation: Activation = "none"
    seed: int = 0
    gap: int = 0
    dtype: Dtype = "int8"
    other: Shape | None = None
    constant: bool = False
    content: Content = "random"

    def inputs(self) -> list[NDArray[Any]]:
        """Return values for the graph's inputs."""
        return self._inputs(self.seed, self.content)

    def graph(self) -> Graph:
        """Return the layer alone."""
        second = self.shape if self.other is None else self.other
        shapes = (self.shape, second, np.broadcast_shapes(self.shape, second))
        a, b, y = (
            _tensor(name, shapes[i], self.dtype, self.scales[i], self.zero_points[i])
            for i, name in enumerate("aby")
        )
        if self.constant:
            b.data = filled(b, self.seed + 2)
        return self._alone([a, b], y, Elementwise(self.activation))


@dataclass(frozen=True)
class PoolCase(Layer):
    """AVERAGE_POOL_2D or MAX_POOL_2D.

    Attributes:
        size: (height, width) of the image; one smaller than the filter grows to it.
        channels: of input and output.
        filter, stride: (height, width).
        same: TFLite's SAME padding, else VALID.
        padding: (top, bottom, left, right) in place of both, less than the filter's extent.
        zero_point: of int8 input and output; int16 has none.
        content: of the image, see `covp.testing.tensors.filled`.
        ties: averages of integers lie halfway between two, whatever the content.
    """

    kind: str = "AVERAGE_POOL_2D"
    size: Pair = (1, 1)
    channels: int = 1
    filter: Pair = (1, 1)
    stride: Pair = (1, 1)
    same: bool = False
    activation: Activation = "none"
    seed: int = 0
    gap: int = 0
    dtype: Dtype = "int8"
    batch: int = 1
    padding: tuple[int, int, int, int] | None = None
    zero_point: int = -3
    content: Content = "random"
    ties: bool = False

    def inputs(self) -> list[NDArray[Any]]:
        """Return values for the graph's input."""
        if not self.ties or self.dtype == "float32":
            return self._inputs(self.seed, self.content)
        op = self.op()
        rows, columns = op.output.shape[1:3]
        return [halfway_image(op.input(0), op.attributes, (rows, columns), self.seed)]

    def graph(self) -> Graph:
        """Return the layer alone."""
        seen = place_windows(self.size, self.filter, self.stride, (1, 1), self.same, self.padding)
        x, y = (
            _tensor(name, (self.batch, *size, self.channels), self.dtype, 0.05, self.zero_point)
            for name, size in (("x", seen.size), ("y", seen.out))
        )
        pool = Pool2D(self.filter, self.stride, seen.padding, self.activation)
        return self._alone([x], y, pool)


@dataclass(frozen=True)
class SoftmaxCase(Layer):
    """SOFTMAX over ``depth`` values of each of ``rows``; int8 results are in units of 1/256.

    int16 ones are in units of 1/32768; their inputs have a 256th of the scale.
    """

    rows: int = 1
    depth: int = 1
    scale: float = 0.1
    seed: int = 0
    gap: int = 0
    kind: str = "SOFTMAX"
    dtype: Dtype = "int8"
    beta: float = 1.0

    def graph(self) -> Graph:
        """Return the layer alone."""
        x = _tensor("x", (self.rows, self.depth), self.dtype, self.scale, 0)
        unit = 1 / 128 if self.dtype == "int16" else 1 / 256
        y = _tensor("y", (self.rows, self.depth), self.dtype, unit, -128)
        return self._alone([x], y, Softmax(self.beta))


@dataclass(frozen=True)
class ConcatenationCase(Layer):
    """CONCATENATION of tensors that differ along ``axis`` only.

    Attributes:
        lengths: of each along the axis.
        shape: of all of them; its extent along the axis does not count.
        scales: of int8 inputs, where they are not all the output's 0.1.
        constant: index of the input that is part of the graph; None: all come at run time.
    """

    lengths: tuple[int, ...] = (1, 1)
    shape: Shape = (1, 1)
    axis: int = 0
    seed: int = 0
    gap: int = 0
    kind: str = "CONCATENATION"
    dtype: Dtype = "int8"
    scales: tuple[float, ...] | None = None
    constant: int | None = None

    def graph(self) -> Graph:
        """Return the layer alone."""

        def shape(length: int) -> Shape:
            return (*self.shape[: self.axis], length, *self.shape[self.axis + 1 :])

        scales = (0.1,) * len(self.lengths) if self.scales is None else self.scales
        parts = [
            _tensor(f"x{i}", shape(n), self.dtype, scales[i], 3) for i, n in enumerate(self.lengths)
        ]
        if self.constant is not None:
            parts[self.constant].data = filled(parts[self.constant], self.seed + 2)
        y = _tensor("y", shape(sum(self.lengths)), self.dtype, 0.1, 3)
        return self._alone([*parts], y, Concatenation(self.axis))


@dataclass(frozen=True)
class OperatorCase(Layer):
    """An operator of one input and no weights; the output's shape follows from both.

    Attributes:
        shape: of the input.
        attributes: the kind's object of `covp.graph.attributes`, or None.
        dtype: of the input.
        scale, zero_point: of the input, for int8, uint8 and int16.
        output_dtype: the input's by default.
        output_scale, output_zero_point: of the output; without a scale the input's quantization.
        outputs: how many, for SPLIT.
        reshaped: the output's shape, for RESHAPE.
    """

    kind: str
    shape: Shape = (1,)
    attributes: Any = None
    dtype: str = "int8"
    scale: float = 0.1
    zero_point: int = 0
    output_dtype: str | None = None
    output_scale: float | None = None
    output_zero_point: int = 0
    outputs: int = 1
    reshaped: Shape = ()
    seed: int = 0
    gap: int = 0

    def graph(self) -> Graph:
        """Return the layer alone."""
        x = plain("x", self.shape, self.dtype)
        if x.dtype in (np.int8, np.uint8, np.int16):
            x.quantization = affine(self.scale, self.zero_point)
        return single_op_graph(
            self.kind,
            x,
            attributes=self.attributes,
            shape=self.reshaped,
            dtype=self.output_dtype,
            scale=self.output_scale,
            zero_point=self.output_zero_point,
            outputs=self.outputs,
        )


@dataclass(frozen=True)
class MatMulCase(Layer):
    """BATCH_MATMUL.

    Attributes:
        batches: the axes before the matrices of the two operands; they broadcast.
        rows, depth, columns: of the product.
        adjoint: whether the first, the second operand is stored with its last two axes swapped.
        zero_points: of first, second and output, for int8.
        output_scale: in units of one at which random sums fill int8.
        constant: the second operand is part of the graph.
    """

    kind: str = "BATCH_MATMUL"
    batches: tuple[Shape, Shape] = ((), ())
    rows: int = 1
    depth: int = 1
    columns: int = 1
    adjoint: tuple[bool, bool] = (False, False)
    zero_points: tuple[int, int, int] = (0, 0, 0)
    output_scale: float = 1.0
    seed: int = 0
    gap: int = 0
    dtype: Dtype = "int8"
    constant: bool = False

    def graph(self) -> Graph:
        """Return the layer alone."""
        first, second = (self.rows, self.depth), (self.depth, self.columns)
        shapes = [
            (*batch, *(matrix[::-1] if swapped else matrix))
            for batch, matrix, swapped in zip(
                self.batches, (first, second), self.adjoint, strict=True
            )
        ]
        result = (*np.broadcast_shapes(*self.batches), self.rows, self.columns)
        scales = (0.05, 0.05, 0.05 * 0.05 * 74 * self.depth**0.5 * self.output_scale)
        a, b, y = (
            _tensor(name, shape, self.dtype, scale, zero)
            for name, shape, scale, zero in zip(
                "aby", (*shapes, result), scales, self.zero_points, strict=True
            )
        )
        if self.constant:
            b.data = filled(b, self.seed + 2)
        return self._alone([a, b], y, BatchMatMul(*self.adjoint))
