"""Problems of layers without weights: pools, sums and products of two tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from covp.graph.quantization import multiply_by_quantized_multiplier
from covp.testing.problem import Array, Pair, Problem, Sides, pad, window_count
from covp.testing.requantization import Requantization


@dataclass(frozen=True, eq=False, repr=False)
class PoolProblem(Problem):
    """A pool of an NHWC image; each window has a pixel of the image.

    Source: AveragePool and MaxPool of tensorflow/lite/kernels/internal/reference/integer_ops/
    pooling.h: padding does not count, averages are rounded half away from zero.

    Attributes:
        kind: "average" or "max".
        input: int8, int16 or float32 (batch, height, width, channels).
        filter, stride: (height, width).
        padding: (top, bottom, left, right).
        low, high: the clamp of the output.
    """

    kind: Literal["average", "max"]
    input: Array
    filter: Pair = (1, 1)
    stride: Pair = (1, 1)
    padding: Sides = (0, 0, 0, 0)
    low: float = -128
    high: float = 127

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape (batch, height, width, channels)."""
        batch, height, width, channels = self.input.shape
        rows, columns = window_count(
            (height, width), self.filter, self.stride, (1, 1), self.padding
        )
        return (batch, rows, columns, channels)

    def expected(self) -> Array:
        """Return the output, of the input's type."""
        if self.kind == "max":
            result = self._windows(self.input, _lowest(self.input)).max(axis=(4, 5))
        else:
            result = self._average()
        return np.asarray(np.clip(result, self.low, self.high).astype(self.input.dtype))

    def _windows(self, image: Array, outside: float) -> Array:
        """Return (batch, rows, columns, channels, filter height, filter width)."""
        view = sliding_window_view(pad(image, self.padding, outside), self.filter, (1, 2))
        return np.asarray(view[:, :: self.stride[0], :: self.stride[1]])

    def _average(self) -> Array:
        ones = np.ones((1, *self.input.shape[1:3], 1), np.int64)
        count = self._windows(ones, 0).sum(axis=(4, 5))
        kind = np.float64 if self.input.dtype.kind == "f" else np.int64
        total = self._windows(self.input.astype(kind), 0).sum(axis=(4, 5))
        if kind == np.float64:
            return np.asarray(total / count)
        rounded = (np.abs(total) + count // 2) // count
        return np.asarray(np.where(total > 0, rounded, -rounded))


def _lowest(array: Array) -> float:
    kind = array.dtype
    return float(np.finfo(kind).min) if kind.kind == "f" else int(np.iinfo(kind).min)


@dataclass(frozen=True, eq=False, repr=False)
class AddProblem(Problem):
    """A sum or a difference of two tensors, which numpy broadcasts.

    Both are brought to twice the larger scale, with ``left_shift`` bits more.
    Source: AddElementwise of tensorflow/lite/kernels/internal/reference/add.h and CalculateOpData
    of tensorflow/lite/micro/kernels/add_common.cc.

    Attributes:
        a, b: both int8 or both int16.
        zero_points: of both; TFLM's input offsets are their negatives.
        multipliers, shifts: of both.
        requantization: of the sum, with one multiplier.
        left_shift: bits: 20 for int8, 15 for int16.
        subtract: a - b.
    """

    a: Array
    b: Array
    zero_points: Pair
    multipliers: Pair
    shifts: Pair
    requantization: Requantization
    left_shift: int = 20
    subtract: bool = False

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape that both operands broadcast to."""
        return np.broadcast_shapes(self.a.shape, self.b.shape)

    def expected(self) -> Array:
        """Return the output, of the inputs' type."""
        x, y = (
            multiply_by_quantized_multiplier(
                (each.astype(np.int64) - self.zero_points[i]) << self.left_shift,
                self.multipliers[i],
                self.shifts[i],
            )
            for i, each in enumerate((self.a, self.b))
        )
        sums = x - y if self.subtract else x + y
        return self.requantization.apply(sums.astype(np.int32), self.a.dtype)


@dataclass(frozen=True, eq=False, repr=False)
class MulProblem(Problem):
    """A product of two tensors, which numpy broadcasts.

    Source: MulElementwise of integer_ops/mul.h.

    Attributes:
        a, b: both int8 or both int16.
        zero_points: of both; TFLM's input offsets are their negatives.
        requantization: of the product, with one multiplier.
    """

    a: Array
    b: Array
    zero_points: Pair
    requantization: Requantization

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape that both operands broadcast to."""
        return np.broadcast_shapes(self.a.shape, self.b.shape)

    def expected(self) -> Array:
        """Return the output, of the inputs' type."""
        x, y = (
            each.astype(np.int32) - zero
            for each, zero in zip((self.a, self.b), self.zero_points, strict=True)
        )
        return self.requantization.apply(x * y, self.a.dtype)
