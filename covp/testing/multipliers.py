"""Strategies of fixed-point factors and requantizations. Part of `quantizations`."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.internal.conjecture.data import ConjectureData
from numpy.typing import DTypeLike

from covp.errors import UsageError
from covp.graph.quantization import quantize_multiplier
from covp.testing.arrays import Drawn, draw_array, draw_seed
from covp.testing.requantization import Requantization

LEAST, MOST = 1 << 30, (1 << 31) - 1
"""The limits of a multiplier that is not 0."""
LEAST_SHIFT, MOST_SHIFT = -31, 30
_USUAL_SUMS = 1 << 15


def multipliers(
    real: st.SearchStrategy[float] | None = None,
    *,
    min_shift: int = LEAST_SHIFT,
    max_shift: int = MOST_SHIFT,
) -> st.SearchStrategy[tuple[int, int]]:
    """Return pairs (multiplier, shift) in TFLite's ranges: multiplier / 2**31 * 2**shift.

    A third of the multipliers are 2**30 (powers of two: results that lie between two integers), a
    third the largest. The simplest pair is a half.

    Args:
        real: the factors, in place of the others: as QuantizeMultiplier splits them.
        min_shift, max_shift: both included, from -31 to 30.
    """
    if real is not None:
        return real.map(quantize_multiplier)

    def draw(data: ConjectureData) -> tuple[int, int]:
        kind, shift = data.draw_integer(0, 2), data.draw_integer(min_shift, max_shift)
        return (LEAST, MOST, 0)[kind] or data.draw_integer(LEAST, MOST), shift

    return Drawn(draw, "multipliers()")


def requantizations(
    channels: int = 1,
    *,
    dtype: DTypeLike = "int8",
    sums: int = _USUAL_SUMS,
    largest: int | None = None,
    any_shift: bool = False,
) -> st.SearchStrategy[Requantization]:
    """Return a strategy of requantizations with zero points and the clamps of activations.

    Mostly such that sums of the usual magnitude fill the type or saturate it; two of eight have
    shifts of few bits to the right, where small sums end between two integers; one of eight shifts
    from -31 on. Shifts to the left keep the largest sum within 32 bits, as C asks for.

    Args:
        channels: how many multipliers and shifts.
        dtype: of what comes out; int16 has no zero point.
        sums: the usual magnitude of what is scaled.
        largest: magnitude; 16 times the usual one by default.
        any_shift: from -31 to 30, where sums shifted out of 32 bits wrap as TFLM's do on all
            targets in use.

    Raises:
        UsageError: the dtype is not int8, uint8 or int16.
    """
    kind = np.dtype(dtype)
    if kind not in (np.int8, np.uint8, np.int16):
        raise UsageError(f"requantization to {kind.name}: int8, uint8 or int16 are needed")
    bits = sums.bit_length(), (16 * sums if largest is None else largest).bit_length()

    def draw(data: ConjectureData) -> Requantization:
        return draw_requantization(data, channels, kind, *bits, any_shift=any_shift)

    return Drawn(draw, f"requantizations({channels})")


def draw_requantization(
    data: ConjectureData,
    channels: int,
    dtype: np.dtype[Any],
    bits: int,
    most_bits: int,
    *,
    any_shift: bool = False,
    most_shift: int = MOST_SHIFT,
) -> Requantization:
    """See `requantizations`; for sums of so many bits, with shifts up to a most one."""
    kind = data.draw_integer(0, 7)
    zero_point, low, high = draw_clamp(data, dtype)
    seeds = draw_seed(data), draw_seed(data)
    usual = dtype.itemsize * 8 - bits
    limit = MOST_SHIFT if any_shift else min(max(31 - most_bits, 0), most_shift)
    ends = (usual - 3, usual + 2)
    if kind in (5, 6):  # results in the middle of two integers are frequent
        ends = (-5, 0)
    elif kind == 7 or any_shift:
        ends = (LEAST_SHIFT, limit)
    least, most = (min(max(end, LEAST_SHIFT), limit) for end in ends)
    shift = draw_array(data, seeds[0], np.dtype(np.int8), (channels,), least, most)
    multiplier = draw_array(data, seeds[1], np.dtype(np.int32), (channels,), LEAST, MOST)
    return Requantization(multiplier, shift.astype(np.int32), zero_point, low, high)


def draw_clamp(data: ConjectureData, dtype: np.dtype[Any]) -> tuple[int, int, int]:
    """See `requantizations`: a zero point and the clamp of none, RELU, RELU6 or any activation."""
    info = np.iinfo(dtype)
    low, high = int(info.min), int(info.max)
    zero = 0 if dtype == np.int16 else draw_zero_point(data, dtype)
    activation = data.draw_integer(0, 4)
    if activation in (1, 2):
        low = zero
    if activation == 2:
        high = data.draw_integer(low, high)
    if activation == 3:
        low = data.draw_integer(low, high)
        high = data.draw_integer(low, high)
    return zero, low, high


def draw_zero_point(data: ConjectureData, dtype: np.dtype[Any]) -> int:
    """See `requantizations`: a zero point, each end of the range as often as an eighth of all."""
    info = np.iinfo(dtype)
    low, high = int(info.min), int(info.max)
    more = (high - low) // 8
    return min(max(data.draw_integer(low - more, high + more), low), high)
