"""Requantization in C: int32 sums to int8, bit for bit TFLM's two roundings.

With m in [2**30, 2**31) and a right shift e >= 0 TFLM computes, per channel,

    high   = (acc * m + 2**30) >> 31                        SaturatingRoundingDoublingHighMul
    scaled = round(high / 2**e), ties away from zero        RoundingDivideByPOT
    output = clamp(scaled + zero_point)

For e >= 1 the second step equals ``(high + (high >> 31) + 2**(e-1)) >> e``; the zero point moves
inside as ``zero_point << e``, so that one addition does the rounding and the zero point. Where
the clamp's lower end is at the zero point or above (a fused ReLU), a negative ``high`` ends there
whatever its rounding, and the term ``high >> 31`` falls away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covp.cores import Core


@dataclass(frozen=True)
class Requantizer:
    """How the sums of one layer become its outputs.

    Attributes:
        multiplier, shift: int32 per output channel; shift is TFLM's, positive to the left.
        zero_point: of the output.
        low, high: clamp in stored units.
        bound: no sum is larger than this in magnitude; proved from the weights by the caller.
    """

    core: Core
    multiplier: NDArray[np.int32]
    shift: NDArray[np.int32]
    zero_point: int
    low: int
    high: int
    bound: int

    @property
    def simple(self) -> bool:
        """Whether every channel shifts right by at least one and no intermediate overflows."""
        limit = 1 << 30 if self.core.has("mull") else 1 << 29
        right = -self.shift.astype(np.int64)
        # the rounding constant with the zero point folded in must not overflow either
        offsets = (abs(self.zero_point) + 1) << np.clip(right, 0, 40)
        return bool(
            (right >= 1).all() and self.bound < limit and (offsets < 1 << 30).all()
        )

    def columns(self) -> list[NDArray[np.int32]]:
        """The per-channel constants that ``requantize`` takes after the sum, in order."""
        multiplier = self.multiplier.astype(np.int64)
        if not self.simple:
            return [self.multiplier.astype(np.int32), self.shift.astype(np.int32)]
        right = -self.shift.astype(np.int64)
        offset = (np.int64(1) << (right - 1)) + (np.int64(self.zero_point) << right)
        return [
            multiplier.astype(np.int32),
            offset.astype(np.int32),
            right.astype(np.int32),
        ]

    def function(self) -> str:
        """C text of ``static inline int32_t requantize(int32_t acc, <columns>)``."""
        return self._simple_function() if self.simple else self._general_function()

    def _clamp(self, name: str) -> str:
        lines = ""
        if self.low > -(2**31):
            lines += f"    {name} = {name} < {self.low} ? {self.low} : {name};\n"
        return lines + f"    {name} = {name} > {self.high} ? {self.high} : {name};\n"

    def _simple_function(self) -> str:
        sign = "" if self.low >= self.zero_point else "    high += high >> 31;\n"
        return (
            f"{_HIGH_MULTIPLY[self.core.has('mull')]}\n"
            "static inline int32_t requantize(int32_t acc, int32_t multiplier, int32_t offset,"
            " int32_t shift)\n{\n"
            "    int32_t high = high_multiply(acc, multiplier);\n"
            f"{sign}"
            "    int32_t result = (high + offset) >> shift;\n"
            f"{self._clamp('result')}"
            "    return result;\n}\n"
        )

    def _general_function(self) -> str:
        return (
            "static inline int32_t requantize(int32_t acc, int32_t multiplier, int32_t shift)\n"
            "{\n"
            "    int32_t left = shift > 0 ? shift : 0, right = shift > 0 ? 0 : -shift;\n"
            "    int32_t shifted = (int32_t)((uint32_t)acc << left);\n"
            "    int64_t product = (int64_t)shifted * multiplier;\n"
            "    int32_t high = (int32_t)((product + (1 << 30)) >> 31);\n"
            "    int32_t mask = (int32_t)((1u << right) - 1);\n"
            "    int32_t threshold = (mask >> 1) + (high < 0);\n"
            "    int32_t result = (high >> right) + ((high & mask) > threshold);\n"
            f"    result += {self.zero_point};\n"
            f"{self._clamp('result')}"
            "    return result;\n}\n"
        )


_HIGH_MULTIPLY = {
    # (2 * acc * m + 2**31) >> 32: one SMMULR on Arm with DSP; MULH and MUL on RISC-V, where the
    # carry out of the low word is its top bit
    True: """\
static inline int32_t high_multiply(int32_t acc, int32_t multiplier)
{
    int64_t product = (int64_t)(acc * 2) * multiplier;
#ifdef __ARM_FEATURE_DSP
    return (int32_t)((product + 0x80000000LL) >> 32);
#else
    return (int32_t)(product >> 32) + (int32_t)((uint32_t)product >> 31);
#endif
}
""",
    # without a long multiply: 16-bit halves, the sum's lower half signed, so that for
    # |acc| < 2**29 no partial sum leaves 32 bits
    False: """\
static inline int32_t high_multiply(int32_t acc, int32_t multiplier)
{
    int32_t low = (int16_t)acc, high = (acc - low) >> 16;
    int32_t m_low = multiplier & 0xffff, m_high = multiplier >> 16;
    int32_t middle = low * m_high + ((low * m_low) >> 16) + high * m_low;
    return high * m_high * 2 + ((middle + (1 << 14)) >> 15);
}
""",
}
