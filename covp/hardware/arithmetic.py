"""Arithmetic of hardware models: exact, and fast enough for whole networks.

The reference executor's arithmetic (`covp.graph.quantization`, `covp.graph.ops.convolution`) is not
used here on purpose: models are compared with it, and an error in common code would be in both.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

Pair = tuple[int, int]
_WORTH_A_LOOK = 32
"""Least number of rows for which float32 saves more than checking its exactness costs."""


def exact_matmul(rows: NDArray[Any], columns: NDArray[Any]) -> NDArray[np.int32]:
    """Return the int32 product of integer matrices (m, k) and (k, n), wrapping as 32-bit adders do.

    Goes through BLAS in floats that hold every partial sum: below 2**24 in float32, else in
    float64. ``rows`` must be below 2**15 in magnitude, ``columns`` int8.
    """
    largest = max(-int(rows.min(initial=0)), int(rows.max(initial=0)))
    reach = largest * 128 * len(columns)
    if reach >= 1 << 24 and len(rows) > _WORTH_A_LOOK:
        reach = largest * int(np.abs(columns.astype(np.int16)).sum(axis=0, dtype=np.int64).max())
    exact = np.float32 if reach < 1 << 24 else np.float64
    product = matmul(rows.astype(exact), columns.astype(exact))
    if reach < 1 << 31:
        return product.astype(np.int32)
    return product.astype(np.int64).astype(np.int32)


def matmul(rows: NDArray[Any], columns: NDArray[Any]) -> NDArray[Any]:
    """Return the product of float matrices ``rows`` (m, k) and ``columns`` (k, n), on one thread.

    More cost more than they bring at these sizes, the more where all cores are busy.
    """
    with _blas().limit(limits=1, user_api="blas"):
        return np.asarray(rows @ columns)


@functools.lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def patches(
    image: NDArray[Any],
    kernel: Pair,
    stride: Pair,
    pad: Pair,
    out: Pair,
    dilation: Pair = (1, 1),
    fill: float = 0,
) -> NDArray[Any]:
    """Return the inputs of each output pixel of a convolution, one row a pixel: im2col.

    Args:
        image: (height, width, channels).
        kernel: height and width.
        stride: down and to the right.
        pad: rows above and columns to the left; below and to the right as many as are needed.
        out: height and width of the output.
        dilation: distance of neighbouring taps, down and to the right.
        fill: the value outside the image.

    Returns:
        (out height * out width, kernel height * kernel width * channels), of the image's dtype.
    """
    channels = image.shape[2]
    need = [(out[i] - 1) * stride[i] + (kernel[i] - 1) * dilation[i] + 1 for i in (0, 1)]
    padded = np.full((need[0], need[1], channels), fill, image.dtype)
    seen = image[: max(0, need[0] - pad[0]), : max(0, need[1] - pad[1])]
    padded[pad[0] : pad[0] + seen.shape[0], pad[1] : pad[1] + seen.shape[1]] = seen
    down, right, deep = padded.strides
    windows = as_strided(
        padded,
        (*out, *kernel, channels),
        (
            down * stride[0],
            right * stride[1],
            down * dilation[0],
            right * dilation[1],
            deep,
        ),
        writeable=False,
    )
    return windows.reshape(out[0] * out[1], -1)


def requantize(
    sums: NDArray[Any],
    multiplier: NDArray[Any] | int,
    shift: NDArray[Any] | int,
    zero_point: int,
    low: int,
    high: int,
) -> NDArray[np.int8]:
    """Scale int32 sums to int8 as TFLite Micro does; channels are last if the factors are arrays.

    Source: MultiplyByQuantizedMultiplier in tensorflow/lite/kernels/internal/common.h (double
    rounding), gemmlowp's fixedpoint.h.

    Args:
        sums: int32, any shape.
        multiplier: 0 or in [2**30, 2**31), of all or per channel.
        shift: in -31..30, positive to the left, of all or per channel.
        zero_point: of the output, added after the scaling.
        low, high: clamp of the output, both included.
    """
    left, right = np.maximum(shift, 0), np.maximum(np.negative(shift), 0)
    values = np.asarray(sums, np.int64)
    if np.any(left):
        # the shift drops bits as the 32-bit register does
        values = (values << left).astype(np.int32).astype(np.int64)
    # SaturatingRoundingDoublingHighMul; a multiplier is never negative, so that nothing saturates
    values = values * multiplier
    values += 1 << 30
    values >>= 31
    # RoundingDivideByPOT: ties away from zero
    negative = (values < 0) & (right > 0)
    values += np.left_shift(1, right, dtype=np.int64) >> 1
    values -= negative
    values >>= right
    values += zero_point
    return np.clip(values, low, high, out=values).astype(np.int8)
