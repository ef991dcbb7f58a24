"""The arithmetic that hardware models are written with, against plain integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covp.hardware.arithmetic import exact_matmul, patches, requantize


def tflm(value: int, multiplier: int, shift: int) -> int:
    """MultiplyByQuantizedMultiplier from its definition, in Python's integers."""
    value = (value << max(shift, 0)) + 2**31
    value = value % 2**32 - 2**31
    nudge = 2**30 if value * multiplier >= 0 else 1 - 2**30
    doubled = value * multiplier + nudge
    high = abs(doubled) // 2**31 * (1 if doubled >= 0 else -1)
    right = max(-shift, 0)
    quotient, rest = divmod(abs(high), 2**right)
    rounded = quotient + (2 * rest >= 2**right and right > 0)
    return int(rounded if high >= 0 else -rounded)


sums = st.integers(-(2**31), 2**31 - 1)
multipliers = st.one_of(st.just(0), st.integers(2**30, 2**31 - 1))


@given(
    st.lists(st.tuples(sums, multipliers, st.integers(-31, 30)), min_size=1, max_size=8),
    st.integers(-128, 127),
)
def test_requantize_is_tflm_s(rows: list[tuple[int, int, int]], zero_point: int) -> None:
    values, factors, shifts = (np.array(column, np.int32) for column in zip(*rows, strict=True))
    got = requantize(values[None], factors, shifts, zero_point, -100, 90)
    want = [min(90, max(-100, tflm(*row) + zero_point)) for row in rows]
    assert got.dtype == np.int8
    assert got.tolist() == [want]
    single = requantize(values[:1], rows[0][1], rows[0][2], zero_point, -100, 90)
    assert single.tolist() == want[:1]


def test_the_sums_are_left_alone() -> None:
    values = np.array([1000, -1000], np.int64)
    requantize(values, 2**30, 0, 0, -128, 127)
    assert values.tolist() == [1000, -1000]


@pytest.mark.parametrize("depth", [1, 700, 9000])
@pytest.mark.parametrize("rows", [1, 50])
def test_products_are_exact(rows: int, depth: int) -> None:
    random = np.random.default_rng(depth)
    x = random.integers(-255, 256, (rows, depth)).astype(np.int16)
    w = random.choice([-128, 127], (depth, 3)).astype(np.int8)
    want = (x.astype(object) @ w.astype(object)).astype(np.int64)
    np.testing.assert_array_equal(exact_matmul(x, w), want)
    high = np.full((2, depth), 255, np.int16)
    assert (exact_matmul(high, np.full((depth, 1), -128, np.int8)) == -128 * 255 * depth).all()


pairs = st.tuples(st.integers(1, 3), st.integers(1, 3))


@given(
    st.tuples(st.integers(1, 5), st.integers(1, 5)), pairs, pairs, pairs,
    st.tuples(st.integers(0, 3), st.integers(0, 3)), pairs,
)  # fmt: skip
def test_patches_are_what_a_pixel_sees(size, kernel, stride, dilation, pad, out):
    image = np.arange(1, 1 + size[0] * size[1] * 2).reshape(*size, 2)
    got = patches(image, kernel, stride, pad, out, dilation, fill=-7)
    for (y, x), row in zip(np.ndindex(*out), got.tolist(), strict=True):
        want: list[int] = []
        for ky, kx in np.ndindex(*kernel):
            iy = y * stride[0] + ky * dilation[0] - pad[0]
            ix = x * stride[1] + kx * dilation[1] - pad[1]
            inside = 0 <= iy < size[0] and 0 <= ix < size[1]
            want += image[iy, ix].tolist() if inside else [-7, -7]
        assert row == want
