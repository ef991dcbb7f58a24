"""Contents of arrays: noise, and the patterns that kernels stumble over, from one number each."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Content = Literal[
    "random", "lowest", "highest", "extreme", "alternating", "outlier", "small", "sparse"
]
"""Random numbers; the least value everywhere; the greatest; each one of the two; the two in turn;
one of the two among zeros; the neighbours of zero; random numbers and as many zeros."""

_NOISE = 1 << 16
"""Bytes; a prime number of places is used, so that seeds of few bits reach all of them."""
_PLACES = 65521


@lru_cache(maxsize=1)
def _noise() -> Array:
    return np.random.default_rng(13).integers(0, 256, 2 * _NOISE, np.uint8)


def noise(count: int, dtype: np.dtype[Any], seed: int) -> Array:
    """Return random bits as unsigned or signed integers; a copy.

    Args:
        count: of the numbers.
        dtype: of any integers.
        seed: the same gives the same numbers.
    """
    place, length = seed * 7919 % _PLACES, count * dtype.itemsize
    if length <= _NOISE:
        bits = _noise()[place : place + length].copy()
    else:
        bits = np.random.default_rng(seed).integers(0, 256, length, np.uint8)
    return np.asarray(bits.view(dtype))


def _draw_integers(count: int, low: int, high: int, seed: int) -> Array:
    """Return random int64 from low to high."""
    if high - low < 1 << 16:  # modulo 2**16 is even enough for a test
        wide = noise(count, np.dtype(np.uint16), seed).astype(np.int64)
        return np.asarray(wide % (high - low + 1) + low)
    wide = noise(count, np.dtype(np.uint64), seed)
    return np.asarray((wide % np.uint64(high - low + 1)).astype(np.int64) + low)


def integers(
    count: int, dtype: np.dtype[Any], low: int, high: int, content: Content, seed: int
) -> Array:
    """Return integers of a kind of content, such as random or extreme ones.

    Args:
        count: of the numbers.
        dtype: an integer type.
        low, high: both included, within the type, less than 2**63 apart.
        content: zero stands for the number of the range next to zero.
        seed: of everything that is random; the same gives the same numbers.
    """
    zero = min(max(0, low), high)
    if content == "lowest":
        return np.full(count, low, dtype)
    if content == "highest":
        return np.full(count, high, dtype)
    if content == "extreme":
        chosen = noise(count, np.dtype(np.uint8), seed) & 1
        return np.asarray(np.where(chosen, high, low).astype(dtype))
    if content == "alternating":
        both = np.empty(count, dtype)
        both[seed & 1 :: 2], both[1 - (seed & 1) :: 2] = low, high
        return both
    if content == "outlier":
        single = np.full(count, zero, dtype)
        if count:
            single[(seed >> 1) % count] = high if seed & 1 else low
        return single
    if content == "small":
        return _draw_integers(count, max(low, zero - 2), min(high, zero + 2), seed).astype(dtype)
    info = np.iinfo(dtype)
    whole = (low, high) == (info.min, info.max)
    random = (
        noise(count, dtype, seed) if whole else _draw_integers(count, low, high, seed).astype(dtype)
    )
    if content == "sparse":
        random[(noise(count, np.dtype(np.uint8), seed + 1) & 1) == 0] = zero
    return random


def floats(
    count: int, dtype: np.dtype[Any], low: float, high: float, content: Content, seed: int
) -> Array:
    """See `integers`: floating point numbers of a content. Random ones have random exponents."""
    if content in ("random", "sparse"):
        fraction = noise(count, np.dtype(np.uint32), seed) / 2.0**32
        bits = noise(count, np.dtype(np.uint8), seed + 1)
        # half of them uniform, half smaller by up to 2**15
        smaller = 2.0 ** -(bits >> 4).astype(np.float64)
        fraction = np.where(bits & 1, fraction, 0.5 + (fraction - 0.5) * smaller)
        values = low + (high - low) * fraction
        if content == "sparse":
            values[bits & 2 == 0] = min(max(0.0, low), high)
        return np.asarray(np.clip(values.astype(dtype), low, high).astype(dtype))
    if content == "small":
        values = integers(count, np.dtype(np.int8), -2, 2, content, seed) / 4.0
        return np.asarray(np.clip(values, low, high).astype(dtype))
    levels = np.array([low, min(max(0.0, low), high), high])
    return np.asarray(
        levels[integers(count, np.dtype(np.int8), -1, 1, content, seed).astype(int) + 1], dtype
    )
