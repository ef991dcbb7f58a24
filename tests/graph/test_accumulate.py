"""The integer convolution through BLAS against plain integers, up to the largest sums."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from covp.graph.attributes import Padding, Pair
from covp.graph.ops.convolution import conv2d_accumulate


def plain(
    x: NDArray[np.int8],
    weights: NDArray[np.int8],
    stride: Pair,
    dilation: Pair,
    padding: Padding,
    zero_point: int,
) -> NDArray[np.int64]:
    """One output at a time in int64."""
    batch, height, width, _ = x.shape
    filters, kh, kw, _ = weights.shape
    rows = (height + padding.top + padding.bottom - (kh - 1) * dilation[0] - 1) // stride[0] + 1
    columns = (width + padding.left + padding.right - (kw - 1) * dilation[1] - 1) // stride[1] + 1
    sums = np.zeros((batch, rows, columns, filters), np.int64)
    for b, r, c, i, j in np.ndindex(batch, rows, columns, kh, kw):
        y = r * stride[0] - padding.top + i * dilation[0]
        z = c * stride[1] - padding.left + j * dilation[1]
        if 0 <= y < height and 0 <= z < width:
            pixel = x[b, y, z].astype(np.int64) - zero_point
            sums[b, r, c] += weights[:, i, j].astype(np.int64) @ pixel
    return sums


@pytest.mark.parametrize("seed", range(25))
def test_random_geometry(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def pair(high: int) -> Pair:
        return int(rng.integers(1, high)), int(rng.integers(1, high))

    x = rng.integers(-128, 128, (2, 9, 8, int(rng.integers(1, 6)))).astype(np.int8)
    weights = rng.integers(-128, 128, (int(rng.integers(1, 6)), *pair(4), x.shape[3]))
    how = pair(4), pair(3), Padding(*(int(n) for n in rng.integers(0, 4, 4)))
    zero_point = int(rng.integers(-128, 128))
    found = conv2d_accumulate(x, weights.astype(np.int8), *how, zero_point)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, plain(x, weights.astype(np.int8), *how, zero_point))


@pytest.mark.parametrize("channels", [500, 518, 519, 530, 8000])
def test_largest_sums(channels: int) -> None:
    """Odd sums on both sides of 2**24, where single precision stops being exact."""
    x = np.full((1, 1, 1, channels), 127, np.int8)
    weights = np.full((2, 1, 1, channels), -127, np.int8)
    x[..., 0] = 126
    weights[1] = 127
    found = conv2d_accumulate(x, weights, zero_point=-128)
    total = 127 * (255 * (channels - 1) + 254)
    assert found.reshape(-1).tolist() == [-total, total]
