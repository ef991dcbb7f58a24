"""`Requantization`: from sums of 32 bits to stored values, as TFLM does it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.base.array_text import Printed
from covp.graph.attributes import Pool2D
from covp.graph.graph import Tensor
from covp.graph.quantization import (
    multiply_by_quantized_multiplier,
    multiply_by_reduced_multiplier,
)

Array = NDArray[Any]


@dataclass(frozen=True, eq=False, repr=False)
class Requantization(Printed):
    """A fixed-point factor, a zero point and a clamp.

    Source: MultiplyByQuantizedMultiplier of tensorflow/lite/kernels/internal/common.h; the clamp is
    that of CalculateActivationRangeQuantized.

    Attributes:
        multiplier: int32, one, or one for each channel (the last axis); 0 or in [2**30, 2**31).
        shift: int32, as many; from -31 to 30, positive to the left.
        zero_point: of the output; TFLM's output_offset.
        low, high: of the output: quantized_activation_min and quantized_activation_max.
    """

    multiplier: Array
    shift: Array
    zero_point: int = 0
    low: int = -128
    high: int = 127

    def apply(self, sums: Array, dtype: Any = np.int8) -> Array:
        """Requantize sums to values of ``dtype``.

        ``sums`` of int64 are scaled as TFLM scales those of int16 layers, with 16 bits of the
        multiplier; all others modulo 2**32.
        """
        if sums.dtype == np.int64:
            scaled = multiply_by_reduced_multiplier(sums, self.multiplier, self.shift)
        else:
            scaled = multiply_by_quantized_multiplier(sums, self.multiplier, self.shift)
        return np.clip(scaled + self.zero_point, self.low, self.high).astype(dtype)


def halfway_image(image: Tensor, pool: Pool2D, out: tuple[int, int], seed: int) -> NDArray[Any]:
    """Return an image of which the windows' averages are ties, with each sign.

    Of an odd number of elements the two averages beside a tie take turns. Windows that overlap are
    filled one after the other, so that few of them are ties.

    Args:
        image: of integers, NHWC.
        pool: its windows, strides and padding.
        out: rows and columns of windows.
        seed: of the values.
    """
    rng = np.random.default_rng(seed)
    most = np.iinfo(image.dtype).max
    values = np.zeros(image.shape, np.int64)
    for number, (row, column) in enumerate(np.ndindex(*out), seed):
        top = row * pool.stride[0] - pool.padding.top
        left = column * pool.stride[1] - pool.padding.left
        window = values[:, max(top, 0) : top + pool.filter[0], max(left, 0) : left + pool.filter[1]]
        batch, height, width, channels = window.shape
        kind = number * batch * channels + np.arange(batch * channels).reshape(batch, 1, channels)
        ranks = rng.random((batch, height * width, channels)).argsort(axis=1)
        upper = (height * width + kind // 2 % 2) // 2
        lower = rng.integers(most, size=(batch, 1, channels))
        lower = np.where(kind % 2, -1 - lower, lower)
        window[:] = (lower + (ranks < upper)).reshape(window.shape)
    return values.astype(image.dtype)


def ties_of(values: NDArray[Any], window: tuple[int, int]) -> set[tuple[int, int]]:
    """Return the kinds of ties among the averages of windows side by side.

    Args:
        values: an image of integers, NHWC.
        window: (height, width).

    Returns:
        (sign, remainder) of the sums of those that are at most half an element from a tie.
    """
    height, width = window
    batch, rows, columns, channels = values.shape
    count = height * width
    whole = values[:, : rows // height * height, : columns // width * width].astype(np.int64)
    sums = whole.reshape(batch, rows // height, height, columns // width, width, channels)
    total = sums.sum(axis=(2, 4)).ravel()
    remainder = np.abs(total) % count
    near = total[np.abs(2 * remainder - count) <= 1]
    return {(int(np.sign(sum)), int(abs(sum) % count)) for sum in near}
