"""The search for one multiplication that gives every output of a requantization.

A requantization is a monotone step function of the sum with at most 255 steps inside its clamp.
With the same steps for every channel another function is the same one, so::

    h = high_word((acc << j) * M)
    output = clamp((h + offset) >> s)                     or, for exact ties that go to even,
    output = clamp((h + ((h >> s) & 1) + offset) >> s)

is accepted only if each step lies where the wanted function has it. float32 rounds some products
that lie next to half-way between two levels the other way, which no line follows: each channel may
have one sum whose output is one more (``+ (acc == exception)``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.int64]
_MAX_SHIFT = 31
Limits = tuple[Array, Array]
_SLOPES = [sign * step for step in range(1, 33) for sign in (1, -1)]
"""Offsets of multipliers in units of 2**-28: what float32 cuts off its factor is 16 times that."""
_MOST_HOPELESS = 0.5
"""The part of the channels without an offset from which on the search is given up."""
NO_SUM = -(1 << 31)
_UNBOUNDED = np.int64(1) << 40


@dataclass(frozen=True)
class Proved:
    """The constants that were found; ``shift`` is the same for all channels or per channel.

    Attributes:
        even: with the correction for exact ties.
        exception: per channel the sum whose output is one more, `NO_SUM` where there is none; None:
            no channel has one.
    """

    preshift: int
    multiplier: Array
    offset: Array
    shift: Array
    even: bool = False
    exception: Array | None = None

    @property
    def common_shift(self) -> bool:
        """True if one shift serves all channels."""
        return bool((self.shift == self.shift[0]).all())

    def columns(self) -> list[Array]:
        """Return the per-channel arguments of the function after the sum."""
        shift = [] if self.common_shift else [self.shift]
        exception = [] if self.exception is None else [self.exception]
        return [self.multiplier, self.offset, *shift, *exception]


@dataclass(frozen=True)
class StepFunction:
    """The outputs that a multiplication must match, as steps of the sums.

    Attributes:
        scaled: sums, int64 (channels, n), to levels: outputs before zero point and clamp.
        zero_point: added to a level.
        low, high: clamp in stored units.
        bound: no sum is larger than this in magnitude.
        high_word: the core's: of shifted sums and multipliers.
        word_bits: by which the high word divides the product.
    """

    scaled: Callable[[Array], Array]
    zero_point: int
    low: int
    high: int
    bound: int
    high_word: Callable[[Array, Array], Array]
    word_bits: int

    def match(
        self, multiplier: Array, shift: Array, preshift: int, half_even: bool
    ) -> Proved | None:
        """Return the first candidate that is exact, or None.

        Args:
            multiplier, shift: per channel, near multiplier / 2**31 / 2**shift = factor.
            preshift: j.
            half_even: ties go to even: the correction for them is tried, too.
        """
        steps = self._find_steps(len(multiplier))
        for m, s in self._candidates(multiplier, shift + preshift + 31 - self.word_bits):
            if (s > _MAX_SHIFT).any() or (s < 1).any():  # undefined in C, or no rounding
                continue
            start = m
            for even in (False, True)[: 1 + half_even]:
                found = self._limits(steps, preshift, m, s, even)
                if half_even:
                    m, found = self._other_slopes(steps, preshift, m, s, even, found)
                offset = self._choose(found, m, preshift, even)
                if offset is not None:
                    return Proved(preshift, m, offset, s, even)
            if half_even:
                exceptional = self._prove_with_exceptions(steps, preshift, start, s)
                if exceptional is not None:
                    return exceptional
        return None

    def _other_slopes(
        self, steps: Array, preshift: int, m: Array, s: Array, even: bool, found: Limits
    ) -> tuple[Array, Limits]:
        """Try slightly larger and smaller multipliers for the channels that no offset suits."""
        low, high = found
        for step in _SLOPES:
            rest = np.flatnonzero(low > high)
            if not rest.size or rest.size > _MOST_HOPELESS * len(m):
                break
            other = m[rest] + (m[rest] * step >> 28)
            again = self._limits(steps[rest], preshift, other, s[rest], even)
            better = again[0] <= again[1]
            chosen = rest[better]
            m = m.copy()
            m[chosen], low[chosen], high[chosen] = (part[better] for part in (other, *again))
        return m, (low, high)

    def _candidates(self, multiplier: Array, shift: Array) -> Iterator[tuple[Array, Array]]:
        """Yield one shift for all channels, which saves a column, then a shift for each."""
        common = np.full_like(shift, shift.min())
        surplus = np.minimum(shift - common, 62)
        yield (multiplier + (np.left_shift(1, surplus, dtype=np.int64) >> 1)) >> surplus, common
        yield multiplier, shift

    def _levels(self) -> Array:
        return np.arange(self.low + 1, self.high + 1, dtype=np.int64)

    def _find_steps(self, channels: int) -> Array:
        """Find the smallest sum that reaches each level by bisection: (channels, levels)."""
        levels = self._levels()[None, :] - self.zero_point
        shape = (channels, levels.shape[1])
        # invariant: f(below) < level <= f(above), with the ends outside what sums can reach
        below = np.full(shape, -self.bound - 1, np.int64)
        above = np.full(shape, self.bound + 1, np.int64)
        for _ in range(int(self.bound).bit_length() + 2):
            middle = (below + above) >> 1
            reached = self.scaled(middle) >= levels
            above = np.where(reached, middle, above)
            below = np.where(reached, below, middle)
        return above

    def _prove_with_exceptions(
        self, steps: Array, preshift: int, start: Array, s: Array
    ) -> Proved | None:
        """Prove a step function that is one too small at no more than one sum per channel."""
        m, offset = start.copy(), np.zeros_like(start)
        exception = np.full_like(start, NO_SUM)
        rest = np.arange(len(start))
        for step in (0, *_SLOPES):
            other = start[rest] + (start[rest] * step >> 28)
            low, high = self._bounds(steps[rest], preshift, other, s[rest], False)
            first, rows = low.argmax(axis=1), np.arange(len(rest))
            largest, most = low[rows, first], high.min(axis=1)
            low[rows, first] = -_UNBOUNDED
            sums = steps[rest][rows, first]
            later = self.high_word((sums + 1) << preshift, other)
            needed = np.maximum(low.max(axis=1), (self._levels()[first] << s[rest]) - later)
            fits = (needed <= most) & (largest <= _UNBOUNDED)
            chosen = rest[fits]
            m[chosen] = other[fits]
            offset[chosen] = np.minimum(most, largest)[fits]
            exception[chosen] = np.where(most < largest, sums, NO_SUM)[fits]
            rest = rest[~fits]
            if not rest.size:
                found = self._choose((offset, offset), m, preshift, False)
                return found if found is None else Proved(preshift, m, found, s, False, exception)
            if step == 0 and rest.size > _MOST_HOPELESS * len(start):
                return None
        return None

    def _limits(
        self, steps: Array, preshift: int, multiplier: Array, shift: Array, even: bool
    ) -> Limits:
        """Return the least and the largest offset per channel that put every step in its place.

        The step to ``level`` is right if (h(T) + offset) >> s >= level > (h(T - 1) + offset) >> s;
        steps outside the reach of the sums do not constrain.
        """
        low, high = self._bounds(steps, preshift, multiplier, shift, even)
        # no level at all where the clamp leaves one value
        return low.max(axis=1, initial=-_UNBOUNDED), high.min(axis=1, initial=_UNBOUNDED)

    def _bounds(
        self, steps: Array, preshift: int, multiplier: Array, shift: Array, even: bool
    ) -> Limits:
        """Return the same for each step, (channels, levels)."""
        target = self._levels()[None, :] << shift[:, None]

        def value(acc: Array) -> Array:
            high = self.high_word(acc << preshift, multiplier[:, None])
            return high + ((high >> shift[:, None]) & 1) if even else high

        return (
            np.where(steps <= self.bound, target - value(steps), -_UNBOUNDED),
            np.where(steps > -self.bound, target - value(steps - 1) - 1, _UNBOUNDED),
        )

    def _choose(self, found: Limits, multiplier: Array, preshift: int, even: bool) -> Array | None:
        """Return offsets within limits that keep intermediate values from overflowing, or None."""
        low, high = found
        if (low > high).any():
            return None
        offset = np.where(low > -_UNBOUNDED, low, np.where(high < _UNBOUNDED, high, 0))
        bound = np.array([[self.bound << preshift]], np.int64)
        largest = np.abs(self.high_word(bound, multiplier[:, None])).max(axis=1) + even
        return offset if (largest + np.abs(offset) < 1 << 31).all() else None
