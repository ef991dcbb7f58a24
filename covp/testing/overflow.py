"""Sums that come to within a few units of the ends of int32, or go past them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.internal.conjecture.data import ConjectureData
from numpy.typing import ArrayLike, DTypeLike, NDArray

from covp.base.array_text import Printed
from covp.errors import UsageError
from covp.graph.quantization import INT32_MAX, INT32_MIN
from covp.testing.arrays import Drawn, draw_array, draw_seed

Array = NDArray[Any]


@dataclass(frozen=True, eq=False, repr=False)
class Sum(Printed):
    """bias + a[0] * b[0] + a[1] * b[1] + ...

    Attributes:
        a, b: integers, of one length.
        bias: int32.
    """

    a: Array
    b: Array
    bias: int = 0

    @property
    def total(self) -> int:
        """The exact sum."""
        return self.bias + int(self.a.astype(np.int64) @ self.b.astype(np.int64))


def near_overflow(
    length: int | st.SearchStrategy[int] = 8,
    dtype: DTypeLike = "int8",
    *,
    weights: ArrayLike | None = None,
    other: DTypeLike | None = None,
    within: int = 4,
    beyond: bool = False,
    bias: bool = True,
) -> st.SearchStrategy[Sum]:
    """Return a strategy of sums that end within a few units of -2**31 or 2**31 - 1.

    Products and total have the same sign, so no sum on the way, with the bias first, is outside of
    the bias and the total: a kernel is right with int32 unless `beyond`.

    Args:
        length: of both arrays, positive.
        dtype: of a.
        weights: b, in place of random ones; not all zero.
        other: the type of b where it has no weights; that of a by default.
        within: the largest distance from the end of int32, which is drawn from 0 on.
        beyond: draw sums on the other side of the end, which int32 does not hold.
        bias: whether there is one. Without it the arrays alone have to come so far: 16-bit ones
            with some elements do, 8-bit ones from 131072 elements on; and with given weights the
            distance may be up to the least of their magnitudes.

    Raises:
        UsageError: when drawing, the arrays do not come so far without a bias.
    """
    kind = np.dtype(dtype)
    second = kind if other is None else np.dtype(other)
    given = None if weights is None else np.asarray(weights)

    def draw(data: ConjectureData) -> Sum:
        count = data.draw(length) if isinstance(length, st.SearchStrategy) else length
        negative, distance = data.draw_boolean(), data.draw_integer(0, within)
        end = INT32_MIN + distance if negative else INT32_MAX - distance
        if beyond:
            end = INT32_MIN - 1 - distance if negative else INT32_MAX + 1 + distance
        seeds = draw_seed(data), draw_seed(data)
        b = _draw(data, seeds[0], second, count) if given is None else given
        a = _draw(data, seeds[1], kind, b.size)
        a = _towards(end, a, b)
        if bias:
            return _with_bias(end, a, b, given is None)
        return _without_bias(end, a, b, given is None)

    return Drawn(draw, f"near_overflow({length})")


def _draw(data: ConjectureData, seed: int, dtype: np.dtype[Any], count: int) -> Array:
    info = np.iinfo(dtype)
    return draw_array(data, seed, dtype, (count,), int(info.min), int(info.max), exact=True)


def _towards(end: int, a: Array, b: Array) -> Array:
    """Give elements the signs that take the sum to the end; zeros once it would pass it."""
    info = np.iinfo(a.dtype)
    direction = np.sign(b.astype(np.int64)) * (1 if end > 0 else -1)
    flipped = np.clip(np.abs(a.astype(np.int64)) * direction, info.min, info.max)
    sums = np.cumsum(flipped * b.astype(np.int64))
    return np.asarray(np.where(np.abs(sums) <= abs(end), flipped, 0).astype(a.dtype))


def _with_bias(end: int, a: Array, b: Array, free: bool) -> Sum:
    """Set the bias to what is missing; if int32 does not hold it, raise an element."""
    if free and not b.any():
        b = b.copy()
        b[-1] = 1
    a = a.copy()
    rest = end - int(a.astype(np.int64) @ b.astype(np.int64))
    excess = rest - min(max(rest, INT32_MIN), INT32_MAX)
    if excess:  # so all products are small: no element is at its end
        at = int(np.flatnonzero(b)[-1])
        factor = int(b[at])
        more = -(-abs(excess) // abs(factor)) * (1 if (excess > 0) == (factor > 0) else -1)
        a[at] += more
        rest -= more * factor
    return Sum(a, b, rest)


def _without_bias(end: int, a: Array, b: Array, free: bool) -> Sum:
    """Raise elements one by one until the sum is there."""
    info = np.iinfo(a.dtype)
    values = a.astype(np.int64)
    factors = b.astype(np.int64)
    if free and b.size > 1:
        _reach(end, factors, info.max, np.iinfo(b.dtype).max)
        values[-1] = 0
    gap = end - int(values @ factors)
    for i in np.argsort(-np.abs(factors), kind="stable").tolist():
        if factors[i]:
            steps = int(np.sign(gap)) * (abs(gap) // abs(int(factors[i])))
            steps *= int(np.sign(factors[i]))
            new = min(max(int(values[i]) + steps, int(info.min)), int(info.max))
            gap -= (new - int(values[i])) * int(factors[i])
            values[i] = new
    least = int(np.abs(factors[factors != 0]).min(initial=1 << 31))
    if abs(gap) >= max(least, 1):
        raise UsageError(
            f"{b.size} products of {a.dtype.name} and {b.dtype.name} end {abs(gap)} before "
            f"{end}; a bias or more elements are needed"
        )
    return Sum(values.astype(a.dtype), factors.astype(b.dtype), 0)


def _reach(end: int, factors: Array, most: int, largest: int) -> None:
    """Let the factors be as large as the end needs, where they can, and the last one 1."""
    for i in range(factors.size - 1):
        if int(np.abs(factors[:-1]).sum()) * most >= abs(end):
            break
        factors[i] = largest
    factors[-1] = 1
