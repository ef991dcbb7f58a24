"""Requantization in C: int32 sums to int8, bit-exact with TFLM's two roundings.

With m in [2**30, 2**31) and a right shift e TFLM computes, per channel,

    high   = (acc * m + 2**30) >> 31                        SaturatingRoundingDoublingHighMul
    scaled = round(high / 2**e), ties away from zero        RoundingDivideByPOT
    output = clamp(scaled + zero_point)

This is a monotone step function of ``acc`` with at most 255 steps inside the clamp. Three C forms
of falling speed give the same steps:

``proved``
    ``(high_word((acc << j) * M) + offset) >> s``: one rounding only. M, offset and s are searched
    when the code is generated, and accepted only if every step of every channel lies at the same
    ``acc``; monotone functions with the same steps are equal. Layers without a fused ReLU mostly
    fail, because TFLM's ties away from zero make the function asymmetric at zero.
``simple``
    For e >= 1 the second rounding equals ``(high + (high >> 31) + 2**(e-1)) >> e``; the zero point
    moves inside as ``zero_point << e``.
``general``
    TFLM's code unchanged, left shifts included.

A core with a requantizing instruction uses that instead (``unit``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from covp.codegen.intrinsics import RequantizeInstruction, requantize_instruction
from covp.codegen.kernels.clamp import clamp, clamp_includes
from covp.cores import Core
from covp.graph.quantization import multiply_by_quantized_multiplier
from covp.graph.typed_convolution import QuantizedConv2D

Array = NDArray[np.int64]
_MAX_PRESHIFT = 10
_MAX_SHIFT = 31


@dataclass(frozen=True)
class _Proved:
    """The constants of the proved form; ``shift`` is the same for all channels or per channel."""

    preshift: int
    multiplier: Array
    offset: Array
    shift: Array

    @property
    def common_shift(self) -> bool:
        return bool((self.shift == self.shift[0]).all())


@dataclass(frozen=True)
class Requantizer:
    """The conversion of the sums of one layer to its outputs.

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

    @staticmethod
    def of(core: Core, problem: QuantizedConv2D) -> tuple[NDArray[np.int32], Requantizer]:
        """The bias with the input's zero point folded in, and the requantizer of its sums."""
        axis = 2 if problem.depthwise else 0
        weights = np.moveaxis(problem.weights.astype(np.int64), axis, 0)
        weights = weights.reshape(problem.out_channels, -1)
        bias = problem.bias.astype(np.int64) - problem.input_zero_point * weights.sum(axis=1)
        bound = int((np.abs(bias) + 128 * np.abs(weights).sum(axis=1)).max())
        requantizer = Requantizer(
            core,
            problem.multiplier,
            problem.shift,
            problem.output_zero_point,
            *problem.clamp,
            bound,
        )
        return bias.astype(np.int32), requantizer

    @property
    def wraps(self) -> bool:
        """Whether a sum may leave int32: it is then added modulo 2**32, as TFLM's cores do."""
        return self.bound >= 1 << 31

    @cached_property
    def form(self) -> str:
        """The form of the layer."""
        if self.instruction is not None:
            return "unit"
        if self._proved is not None:
            return "proved"
        return "simple" if self._simple else "general"

    @cached_property
    def instruction(self) -> RequantizeInstruction | None:
        """The core's own instruction for it."""
        return requantize_instruction(self.core)

    @property
    def includes(self) -> str:
        """Headers that `function` needs."""
        if self.instruction is not None:
            return self.instruction.definitions
        return clamp_includes(self.core, self.low, self.high)

    def columns(self) -> list[NDArray[np.int32]]:
        """The per-channel arguments of ``requantize`` after the sum, in order."""
        if self.instruction is not None:
            packed_scale = self.shift.astype(np.int64) & 0xFF
            for byte, value in enumerate((self.zero_point, self.low, self.high), 1):
                packed_scale |= (value & 0xFF) << 8 * byte
            columns = [self.multiplier.astype(np.int64), packed_scale]
        elif self._proved is not None:
            columns = [self._proved.multiplier, self._proved.offset]
            if not self._proved.common_shift:
                columns.append(self._proved.shift)
        elif self._simple:
            right = -self.shift.astype(np.int64)
            offset = (np.int64(1) << (right - 1)) + (np.int64(self.zero_point) << right)
            columns = [self.multiplier.astype(np.int64), offset, right]
        else:
            columns = [self.multiplier.astype(np.int64), self.shift.astype(np.int64)]
        return [column.astype(np.int32) for column in columns]

    def function(self) -> str:
        """C text of ``static inline int32_t requantize(int32_t acc, <columns>)``."""
        emit = {
            "unit": self._unit_function,
            "proved": self._proved_function,
            "simple": self._simple_function,
            "general": self._general_function,
        }
        return emit[self.form]()

    @property
    def _simple(self) -> bool:
        """Whether every channel shifts right by at least one and no intermediate overflows."""
        limit = 1 << 30 if self.core.has("mull") else 1 << 29
        right = -self.shift.astype(np.int64)
        # the rounding constant with the zero point folded in must not overflow either
        offsets = (abs(self.zero_point) + 1) << np.clip(right, 0, 40)
        return bool((right >= 1).all() and self.bound < limit and (offsets < 1 << 30).all())

    @cached_property
    def _proved(self) -> _Proved | None:
        """The constants of the proved form, or None if no candidate is exact."""
        if not self.core.has("mull") or not self._simple:
            return None
        preshift = min(_MAX_PRESHIFT, 31 - self.bound.bit_length())
        if preshift < 1:
            return None
        steps = self._steps()
        shift = -self.shift.astype(np.int64) + preshift - 1
        multiplier = self.multiplier.astype(np.int64)
        common = np.full_like(shift, shift.min())
        surplus = shift - common
        rounded = (multiplier + ((np.int64(1) << surplus) >> 1)) >> surplus
        for m, s in ((rounded, common), (multiplier, shift)):
            if (s > _MAX_SHIFT).any():  # undefined in C, whatever int64 makes of it here
                continue
            offset = self._offset(steps, preshift, m, s)
            if offset is not None:
                return _Proved(preshift, m, offset, s)
        return None

    def _levels(self) -> Array:
        return np.arange(self.low + 1, self.high + 1, dtype=np.int64)

    def _steps(self) -> Array:
        """(channels, levels): the smallest sum whose output reaches the level, by bisection."""
        multiplier = self.multiplier.astype(np.int64)[:, None]
        shift = self.shift.astype(np.int64)[:, None]
        levels = self._levels()[None, :] - self.zero_point
        shape = (len(self.multiplier), levels.shape[1])
        # invariant: f(below) < level <= f(above), with the ends outside what sums can reach
        below = np.full(shape, -self.bound - 1, np.int64)
        above = np.full(shape, self.bound + 1, np.int64)
        for _ in range(int(self.bound).bit_length() + 2):
            middle = (below + above) >> 1
            reached = multiply_by_quantized_multiplier(middle, multiplier, shift) >= levels
            above = np.where(reached, middle, above)
            below = np.where(reached, below, middle)
        return above

    def _offset(self, steps: Array, preshift: int, multiplier: Array, shift: Array) -> Array | None:
        """The per-channel offset that puts every step where TFLM has it, or None.

        The step to ``level`` is right if (h(T) + offset) >> s >= level > (h(T - 1) + offset) >> s,
        with h the high word; steps outside the reach of the sums do not constrain.
        """
        target = self._levels()[None, :] << shift[:, None]

        def high_word(acc: Array) -> Array:
            return ((acc << preshift) * multiplier[:, None]) >> 32

        unbounded = np.int64(1) << 40
        reachable_below = steps > -self.bound
        reachable_above = steps <= self.bound
        at_least = np.where(reachable_above, target - high_word(steps), -unbounded)
        at_most = np.where(reachable_below, target - high_word(steps - 1) - 1, unbounded)
        # no level at all where the clamp leaves one value
        low = at_least.max(axis=1, initial=-unbounded)
        high = at_most.min(axis=1, initial=unbounded)
        if (low > high).any():
            return None
        offset = np.where(low > -unbounded, low, np.where(high < unbounded, high, 0))
        highest = np.abs(high_word(np.array([[self.bound]]))).max(axis=1) + np.abs(offset)
        return offset if (highest < 1 << 31).all() else None

    def _clamp(self) -> str:
        return f"    {clamp(self.core, 'result', self.low, self.high)}\n"

    def _unit_function(self) -> str:
        assert self.instruction is not None
        result = self.instruction.expression.format(
            acc="acc",
            multiplier="multiplier",
            packed_scale="packed_scale",
            how="packed_scale",  # its name in version 0.1
        )
        # not used where the sums lie in the unit's accumulators
        return (
            "static inline __attribute__((unused)) int32_t "
            "requantize(int32_t acc, int32_t multiplier, int32_t packed_scale)\n"
            f"{{\n    return {result};\n}}\n"
        )

    def _proved_function(self) -> str:
        proved = self._proved
        assert proved is not None
        if proved.common_shift:
            parameter, shift = "", str(int(proved.shift[0]))
        else:
            parameter, shift = ", int32_t shift", "shift"
        return (
            "static inline int32_t requantize(int32_t acc, int32_t multiplier, int32_t offset"
            f"{parameter})\n{{\n"
            f"    int64_t product = (int64_t)(int32_t)((uint32_t)acc << {proved.preshift})"
            " * multiplier;\n"
            f"    int32_t result = ((int32_t)(product >> 32) + offset) >> {shift};\n"
            f"{self._clamp()}"
            "    return result;\n}\n"
        )

    def _simple_function(self) -> str:
        # where the clamp starts at the zero point or above, a negative sum ends there anyway
        sign = "" if self.low >= self.zero_point else "    high += high >> 31;\n"
        return (
            f"{_HIGH_MULTIPLY[self.core.has('mull')]}\n"
            "static inline int32_t requantize(int32_t acc, int32_t multiplier, int32_t offset,"
            " int32_t shift)\n{\n"
            "    int32_t high = high_multiply(acc, multiplier);\n"
            f"{sign}"
            "    int32_t result = (high + offset) >> shift;\n"
            f"{self._clamp()}"
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
            f"{self._clamp()}"
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
