"""onnxruntime's requantization on integers: float32(acc) * factor, rounded half to even, exactly.

A factor is m / 2**e with a mantissa of 24 bits, so ``acc * m`` is an exact product; float32 rounds
it (and an ``acc`` of more than 24 bits) to 24 bits before the rounding to an integer. That differs
from one rounding only where the product lies within 2**-15 of half-way between two levels::

    t = high_word((acc << j) * M) + offset          half a level and the window w in the offset
    output = clamp(t >> s)                          unless t mod 2**s < 2 * w

There, in one of some ten thousand outputs, and in exact ties, ``level`` decides: the same
roundings on the whole product. It is exact by construction and needs no proof by steps.

`ROUNDING` has float32's roundings on integers in C: sums, products and quotients of 24 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from covp.codegen.kernels.requantize.requantize import Requantizer
from covp.codegen.kernels.requantize.requantize_proof import Proved
from covp.graph.float_scaling import rescale

ROUNDING = """\
/* value / 2**bits, half to even */
static inline uint64_t rounded(uint64_t value, int32_t bits)
{
    return (value + ((1ULL << (bits - 1)) - 1) + ((value >> bits) & 1)) >> bits;
}

static inline uint64_t to_24_bits(uint64_t value)
{
    uint32_t high = (uint32_t)(value >> 32), low = (uint32_t)value;
    if (high == 0 && low >> 24 == 0)
        return value;
    int32_t excess = high ? 40 - __builtin_clz(high) : 8 - __builtin_clz(low);
    return rounded(value, excess) << excess;
}
"""
QUOTIENT = """\
/* 2 * a / b in 24 bits; the lowest bit of a longer quotient stands for the remainder */
static inline uint64_t quotient_24(uint64_t a, uint64_t b)
{
    uint64_t whole = a / b;
    return to_24_bits(whole << 1 | (whole * b != a));
}
"""


def mantissa(value: float) -> tuple[int, int]:
    """Return a positive float32 as (m, e): value = m * 2**e, m in [2**23, 2**24)."""
    fraction, exponent = np.frexp(np.float64(np.float32(value)))
    return int(fraction * (1 << 24)), int(exponent) - 24


Array = NDArray[np.int64]
_MAX_PRESHIFT = 20
_SPARE = 7
"""Bits by which a mantissa of 24 bits may grow in an int32 multiplier."""
_FINEST = 22
"""Shifts beyond this leave no room for the zero point."""
_COARSEST = 5
_EXACT = 1 << 24
"""Integers up to this are exact in float32."""


@dataclass(frozen=True)
class HalfEvenRequantizer(Requantizer):
    """Requantization by onnxruntime's rule."""

    @property
    def _factors(self) -> NDArray[np.float32]:
        assert self.scaling.factors is not None
        return self.scaling.factors

    @cached_property
    def _proof(self) -> Proved | None:
        """The proved form; None also where a factor is 0 in fixed point."""
        factors, multiplier = self._factors, self.scaling.multiplier.astype(np.int64)
        # without a long multiplication the halves of a product limit the sums to 29 bits
        width = 31 if self.core.has("mull") else 29
        preshift = min(_MAX_PRESHIFT, width - self.bound.bit_length())
        if preshift < 0 or not multiplier.all():
            return None
        steps = self._step_function(lambda sums: rescale(sums, factors[:, None]))
        shift = -self.scaling.shift.astype(np.int64)
        return steps.match(multiplier, shift, preshift, half_even=True)

    @cached_property
    def _guarded_form(self) -> Guarded | None:
        """The constants of the guarded form, if they fit."""
        bits = 32 if self.core.has("mull") else 31
        return guarded_form(self._factors, self.scaling.zero_point, self.bound, bits)

    @property
    def _unproved_form(self) -> str:
        return "integer" if self._guarded_form is None else "guarded"

    def _unproved_columns(self) -> list[Array]:
        if self._guarded_form is not None:
            return self._guarded_form.columns()
        return list(mantissa_and_exponent(self._factors))

    def _unproved_function(self) -> str:
        if self._guarded_form is not None:
            return self._high_multiply + self._guarded_form.function(self._high_word, self._clamp())
        return integer_function(self.bound > _EXACT, self.scaling.zero_point, self._clamp())


@dataclass(frozen=True)
class Guarded:
    """The constants of the guarded form of a layer.

    Attributes:
        preshift: j.
        multiplier, bits: per channel; multiplier / 2**bits is the factor.
        shift: s per channel.
        zero_point: of the output.
        long_sums: they may exceed 24 bits.
    """

    preshift: int
    multiplier: Array
    bits: Array
    shift: Array
    zero_point: int
    long_sums: bool

    @property
    def _common(self) -> bool:
        return bool((self.bits == self.bits[0]).all())

    def _window(self) -> Array:
        return np.asarray(np.left_shift(1, np.maximum(self.shift - 15, 0), dtype=np.int64) + 2)

    def _offset(self) -> Array:
        # half a level above it
        half = np.left_shift(2 * self.zero_point + 1, self.shift, dtype=np.int64) >> 1
        return np.asarray(half + self._window())

    def columns(self) -> list[Array]:
        """Return the per-channel arguments of the function after the sum."""
        return [self.multiplier] if self._common else [self.multiplier, self._offset(), self.shift]

    def function(self, high_word: str, clamp: str) -> str:
        """Return C text of ``requantize``.

        Args:
            high_word: C expression of the high word of ``shifted * multiplier``.
            clamp: C statement for ``result``.
        """
        limit = int(((2 * self._window()) << (32 - self.shift)).max())
        parameters, shift, offset = "", str(int(self.shift[0])), str(int(self._offset()[0]))
        if not self._common:
            parameters, shift, offset = ", int32_t offset, int32_t shift", "shift", "offset"
        bits = f"{int(self.bits[0] - self.shift[0])} + {shift}"
        return (
            f"{ROUNDING}\n{_level(self.long_sums)}\n"
            f"static inline int32_t requantize(int32_t acc, int32_t multiplier{parameters})\n{{\n"
            f"    int32_t shifted = (int32_t)((uint32_t)acc << {self.preshift});\n"
            f"    int32_t t = {high_word} + {offset};\n"
            f"    int32_t result = t >> {shift};\n"
            f"    if (__builtin_expect((uint32_t)t << (32 - {shift}) < {limit}u, 0))\n"
            f"        result = level(acc, multiplier, {bits}) + {self.zero_point};\n"
            f"{clamp}    return result;\n}}\n"
        )


def guarded_form(
    factors: NDArray[np.float32], zero_point: int, bound: int, word_bits: int
) -> Guarded | None:
    """Return the constants of a layer, or None where its factors or sums are out of reach.

    Args:
        factors: per channel.
        zero_point: of the output.
        bound: no sum is larger in magnitude.
        word_bits: by which the core's high word divides a product: 32, or 31 where sums are
            limited to 29 bits.
    """
    mantissa, bits = mantissa_and_exponent(factors)
    # whatever the sum, the level is 0
    idle = factors.astype(np.float64) * bound < 0.25
    if idle.all():
        return None
    bits = np.where(idle, bits[~idle].min(), bits)
    surplus = bits - bits.min()
    common = surplus.max() <= _SPARE
    multiplier = np.where(idle, 0, mantissa << (_SPARE - surplus if common else _SPARE))
    bits = np.full_like(bits, bits.min() + _SPARE) if common else bits + _SPARE
    width = 31 if word_bits == 32 else 29
    room = int(_FINEST + word_bits - bits.max())
    preshift = min(width - bound.bit_length(), room)
    shift = bits - word_bits + preshift
    if preshift < 0 or (shift < _COARSEST).any():
        return None
    return Guarded(preshift, multiplier, bits, shift, zero_point, bound > _EXACT)


def mantissa_and_exponent(factors: NDArray[np.float32]) -> tuple[Array, Array]:
    """Split factors into mantissa / 2**exponent with a mantissa below 2**24.

    Exponents are cut to what C can shift by: below 1 every sum but 0 saturates, above 62 none
    reaches a half.
    """
    fraction, exponent = np.frexp(factors.astype(np.float64))
    mantissa = (fraction * (1 << 24)).astype(np.int64)
    return mantissa, np.clip(24 - exponent.astype(np.int64), 1, 62)


def integer_function(long_sums: bool, zero_point: int, clamp: str) -> str:
    """Return C text of ``requantize(acc, mantissa, exponent)``: IEEE's roundings for every sum."""
    return (
        f"{ROUNDING}\n{_level(long_sums)}\n"
        "static inline int32_t requantize(int32_t acc, int32_t mantissa, int32_t exponent)\n{\n"
        f"    int32_t result = level(acc, mantissa, exponent) + {zero_point};\n"
        f"{clamp}    return result;\n}}\n"
    )


def _level(long_sums: bool) -> str:
    narrow = "    magnitude = to_24_bits(magnitude);\n" if long_sums else ""
    return (
        "static __attribute__((noinline)) int32_t level(int32_t acc, int32_t mantissa,"
        " int32_t exponent)\n{\n"
        "    uint64_t magnitude = acc < 0 ? 0u - (uint32_t)acc : (uint32_t)acc;\n"
        f"{narrow}"
        "    magnitude = to_24_bits(magnitude * (uint32_t)mantissa);\n"
        "    magnitude = rounded(magnitude, exponent);\n"
        "    int32_t result = magnitude > 65536 ? 65536 : (int32_t)magnitude;\n"
        "    return acc < 0 ? -result : result;\n}\n"
    )
