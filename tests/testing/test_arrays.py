"""Arrays, factors and sums: what they promise holds; what fails shrinks to the least."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from covp.base.array_text import array_text
from covp.errors import UsageError
from covp.graph.quantization import INT32_MAX, INT32_MIN
from covp.testing import quantizations
from covp.testing.arrays import arrays
from covp.testing.overflow import Sum, near_overflow

ENOUGH = settings(max_examples=2000, database=None, deadline=None)
lengths = st.integers(0, 60)


def least(strategy: st.SearchStrategy[Any], wrong: Callable[[Any], Any]) -> Any:
    """Of eight searches the smallest: every other one ends with an element too many."""
    found = [
        find(strategy, lambda value: bool(wrong(value)), settings=ENOUGH, random=Random(seed))
        for seed in range(8)
    ]
    return min(found, key=np.size)


@pytest.mark.costly
@pytest.mark.parametrize(
    ("strategy", "wrong", "expected"),
    [
        (arrays("int8", lengths), lambda a: len(a) >= 3, [0, 0, 0]),
        (arrays("int8", 16), lambda a: (a > 100).any(), [101] + [0] * 15),
        (arrays("int8", lengths), lambda a: (a == -128).any(), [-128]),
        (arrays("int8", lengths), lambda a: (a < -100).sum() >= 2, [-101, -101]),
        (arrays("int8", lengths, low=-8, high=7), lambda a: (a > 5).sum() > 1, [6, 6]),
        (arrays("int8", (2, 3), low=5), lambda a: True, [[5, 5, 5], [5, 5, 5]]),
        (
            arrays("int8", st.tuples(st.just(2), st.integers(1, 40))),
            lambda a: ((a[0] < -126) & (a[1] > 125)).sum() >= 2,
            [[-127, -127], [126, 126]],
        ),
        (arrays("int16", st.integers(0, 9)), lambda a: (a > 1000).any(), [1001]),
        (arrays("int32", st.integers(0, 9)), lambda a: (a == -(2**31)).any(), [-(2**31)]),
        (arrays("float32", st.integers(0, 9)), lambda a: (a > 1.5).any(), [2.0]),
        (arrays("int8", 2000), lambda a: (a > 100).any(), None),
        (arrays("float32", 400), lambda a: (a > 1.5).any(), None),
        (arrays("float32", st.integers(0, 9), nan=True), lambda a: np.isnan(a).any(), [np.nan]),
        (
            arrays("float32", st.integers(0, 9), infinity=True),
            lambda a: (a == -np.inf).any(),
            [-np.inf],
        ),
    ],
)
def test_arrays_shrink(strategy: Any, wrong: Any, expected: Any) -> None:
    found = least(strategy, wrong)
    if expected is None:  # too long for elements of its own
        assert np.count_nonzero(found) == 1 and len(array_text(found)) < 60
    else:
        assert np.array_equal(found, np.array(expected, found.dtype), equal_nan=True)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "float32"])
@given(st.data())
def test_arrays_keep_to_their_range_and_their_text_makes_them(
    dtype: str, data: st.DataObject
) -> None:
    low = data.draw(st.integers(0 if dtype == "uint8" else -100, 100))
    high = data.draw(st.integers(low, 127))
    extents = st.tuples(st.integers(0, 3), st.integers(1, 40))
    array = data.draw(arrays(dtype, extents, low=low, high=high))
    assert array.dtype == dtype and (low <= array).all() and (array <= high).all()
    again = eval(array_text(array), {"np": np})
    assert again.dtype == array.dtype and again.shape == array.shape
    assert again.tobytes() == array.tobytes()


@given(arrays("float32", lengths, low=-1e30, high=1e30, nan=True, infinity=True))
def test_the_text_of_floats_is_exact(array: Any) -> None:
    again = eval(array_text(array), {"np": np})
    assert np.array_equal(again, array, equal_nan=True)
    real = ~np.isnan(array)
    assert np.array_equal(np.signbit(again[real]), np.signbit(array[real]))


def test_extremes_come_often() -> None:
    """All the lowest, the two in turn, one outlier: each at least once in two hundred."""
    seen = set()

    @settings(max_examples=200, database=None, derandomize=True)
    @given(arrays("int8", 32))
    def look(a: Any) -> None:
        ends = (a == -128) | (a == 127)
        seen.add("lowest" if (a == -128).all() else "")
        seen.add("in turn" if ends.all() and (a[1:] != a[:-1]).all() else "")
        seen.add("outlier" if ends.sum() == np.count_nonzero(a) == 1 else "")

    look()
    assert seen >= {"lowest", "in turn", "outlier"}


def test_what_is_no_array_is_refused() -> None:
    for arguments in [{"dtype": "complex64"}, {"low": 5, "high": 4}, {"high": 128}]:
        with pytest.raises(UsageError):
            arrays(**arguments)  # type: ignore[arg-type]


@given(quantizations.multipliers())
def test_multipliers_are_in_tflites_ranges(pair: tuple[int, int]) -> None:
    multiplier, shift = pair
    assert 2**30 <= multiplier <= 2**31 - 1 and -31 <= shift <= 30


@given(quantizations.multipliers(st.floats(2**-30, 2**29)))
def test_multipliers_of_real_scales(pair: tuple[int, int]) -> None:
    assert 2**30 <= pair[0] <= 2**31 - 1 and -31 <= pair[1] <= 30


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
@given(st.integers(1, 9), st.data())
def test_requantizations(dtype: str, channels: int, data: st.DataObject) -> None:
    r = data.draw(quantizations.requantizations(channels, dtype=dtype))
    info = np.iinfo(dtype)
    assert r.multiplier.shape == r.shift.shape == (channels,)
    assert r.multiplier.dtype == r.shift.dtype == np.int32
    assert (r.multiplier >= 2**30).all() and (r.shift >= -31).all()
    assert ((1 << 19 << np.maximum(r.shift, 0)) < 2**31).all(), "a shift within 32 bits"
    assert info.min <= r.low <= r.high <= info.max and info.min <= r.zero_point <= info.max
    again = eval(repr(r), {"np": np, "Requantization": quantizations.Requantization})
    assert repr(again) == repr(r)
    stored = r.apply(np.arange(-30000, 30000, 999)[:, None].astype(np.int32), dtype)
    assert stored.dtype == dtype and (r.low <= stored).all() and (stored <= r.high).all()


@pytest.mark.parametrize("beyond", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "int16"])
@given(st.data())
def test_sums_near_overflow(dtype: str, beyond: bool, data: st.DataObject) -> None:
    drawn: Sum = data.draw(near_overflow(st.integers(1, 20), dtype, beyond=beyond))
    distance = INT32_MAX - drawn.total if drawn.total > 0 else drawn.total - INT32_MIN
    assert -5 <= distance < 0 if beyond else 0 <= distance <= 4
    assert INT32_MIN <= drawn.bias <= INT32_MAX
    partial = drawn.bias + np.cumsum(drawn.a.astype(np.int64) * drawn.b.astype(np.int64))
    between = sorted((drawn.bias, drawn.total))
    assert (between[0] <= partial).all() and (partial <= between[1]).all()


@given(near_overflow(6, "int16", bias=False), near_overflow(weights=[3, -128, 127], dtype="int8"))
def test_sums_without_a_bias_and_of_given_weights(free: Sum, given: Sum) -> None:
    assert free.bias == 0
    assert min(abs(free.total - INT32_MAX), abs(free.total - INT32_MIN)) <= 4
    assert given.b.tolist() == [3, -128, 127]
    assert min(abs(given.total - INT32_MAX), abs(given.total - INT32_MIN)) <= 4


def test_eight_bits_do_not_come_so_far_alone() -> None:
    with pytest.raises(UsageError, match="a bias or more elements are needed"):
        find(near_overflow(8, "int8", bias=False), lambda drawn: True)
