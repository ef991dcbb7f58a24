"""Requantization in C: int32 sums to int8, bit-exact with TFLM or with onnxruntime.

TFLM rounds twice. With m in [2**30, 2**31) and a right shift e it computes, per channel,

    high   = (acc * m + 2**30) >> 31                        SaturatingRoundingDoublingHighMul
    scaled = round(high / 2**e), ties away from zero        RoundingDivideByPOT
    output = clamp(scaled + zero_point)

This is a monotone step function of ``acc`` with at most 255 steps inside the clamp. Three C forms
of falling speed give the same steps:

``proved``
    ``(high_word((acc << j) * M) + offset) >> s``: one rounding only. M, offset and s are searched
    when the code is generated, and accepted only if every step of every channel lies at the same
    ``acc`` (`requantize_proof`). Layers without a fused ReLU mostly fail, because TFLM's ties away
    from zero make the function asymmetric at zero.
``simple``
    For e >= 1 the second rounding equals ``(high + (high >> 31) + 2**(e-1)) >> e``; the zero point
    moves inside as ``zero_point << e``.
``general``
    TFLM's code unchanged, left shifts included.

A core with a requantizing instruction uses that instead (``unit``).

onnxruntime multiplies ``float32(acc)`` by a float32 factor and rounds half to even. The proved form
gives the same steps where sums are short, with a correction for exact ties where factors have
them (powers of two, for example). Else ``guarded`` computes nearly every output in as many
instructions and four more, and ``integer`` is IEEE's arithmetic on integers
(`requantize_half_even`); both are always exact. No form executes a floating-point instruction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from covp.chip.cores import Core
from covp.codegen.c_text import SIGN_SHIFTED, indent
from covp.codegen.kernels.clamp import clamp, clamp_includes
from covp.codegen.kernels.requantize.requantize_proof import Proved, StepFunction
from covp.graph.arithmetic import Scaling
from covp.graph.quantization import multiply_by_quantized_multiplier
from covp.hardware.intrinsics import RequantizeInstruction, requantize_instruction

Array = NDArray[np.int64]
_MAX_PRESHIFT = 10


@dataclass(frozen=True)
class Requantizer(ABC):
    """The conversion of the sums of one layer to its outputs.

    Attributes:
        core: that it runs on.
        scaling: its numbers.
        bound: no sum is larger than this in magnitude; proved from the weights by the caller.
    """

    core: Core
    scaling: Scaling
    bound: int

    @property
    def wraps(self) -> bool:
        """True if a sum may leave int32: it is then added modulo 2**32, as TFLM's cores do."""
        return self.bound >= 1 << 31

    @property
    def sum_type(self) -> str:
        """C type of ``acc``."""
        return "int32_t"

    @cached_property
    def form(self) -> str:
        """The name of the layer's form of requantization."""
        return "proved" if self._proof is not None else self._unproved_form

    @property
    def branches(self) -> bool:
        """True if the function has rare branches."""
        return self.form == "guarded"

    @cached_property
    def instruction(self) -> RequantizeInstruction | None:
        """The core's own instruction that requantizes, or None."""
        return None

    @property
    def includes(self) -> str:
        """Headers that `function` needs."""
        return clamp_includes(self.core, *self.scaling.clamp)

    def columns(self) -> list[NDArray[np.int32]]:
        """Return the per-channel arguments of ``requantize`` after the sum, in order."""
        columns = self._unproved_columns() if self._proof is None else self._proof.columns()
        return [column.astype(np.int32) for column in columns]

    def function(self) -> str:
        """Return C text of ``static inline int32_t requantize(<sum_type> acc, <columns>)``."""
        return self._unproved_function() if self._proof is None else self._proved_function()

    @property
    @abstractmethod
    def _unproved_form(self) -> str: ...

    @abstractmethod
    def _unproved_columns(self) -> list[Array]: ...

    @abstractmethod
    def _unproved_function(self) -> str: ...

    @cached_property
    @abstractmethod
    def _proof(self) -> Proved | None:
        """The constants of the proved form, or None if no candidate is exact."""

    def _step_function(self, scaled: Callable[[Array], Array]) -> StepFunction:
        long = self.core.has("mull")
        return StepFunction(
            scaled,
            self.scaling.zero_point,
            *self.scaling.clamp,
            self.bound,
            _long_high_word if long else _rounded_high_word,
            32 if long else 31,
        )

    def _clamp(self) -> str:
        return f"    {clamp(self.core, 'result', *self.scaling.clamp)}\n"

    def _proved_function(self) -> str:
        proved = self._proof
        assert proved is not None
        if proved.common_shift:
            parameter, shift = "", str(int(proved.shift[0]))
        else:
            parameter, shift = ", int32_t shift", "shift"
        shifted = f"int32_t shifted = (int32_t)((uint32_t)acc << {proved.preshift});"
        result = f"int32_t result = ({self._high_word} + offset) >> {shift};"
        lines = [shifted, result]
        if proved.exception is not None:
            parameter += ", int32_t exception"
            lines.append("result += acc == exception;")
        if proved.even:
            high = [f"int32_t high = {self._high_word};", f"high += (high >> {shift}) & 1;"]
            lines = [shifted, *high, f"int32_t result = (high + offset) >> {shift};"]
        return (
            f"{self._high_multiply}"
            "static inline int32_t requantize(int32_t acc, int32_t multiplier, int32_t offset"
            f"{parameter})\n{{\n{indent(lines)}\n{self._clamp()}    return result;\n}}\n"
        )

    @property
    def _high_word(self) -> str:
        """C expression of the high word of ``shifted * multiplier``."""
        if self.core.has("mull"):
            return "(int32_t)(((int64_t)shifted * multiplier) >> 32)"
        return "high_multiply(shifted, multiplier)"

    @property
    def _high_multiply(self) -> str:
        """C text of `high_multiply`; empty on a core with long multiplication."""
        return "" if self.core.has("mull") else f"{HIGH_MULTIPLY[False]}\n"


@dataclass(frozen=True)
class TflmRequantizer(Requantizer):
    """Requantization to int8 by TFLM's rule."""

    @cached_property
    def instruction(self) -> RequantizeInstruction | None:
        """The core's own instruction that requantizes, or None."""
        return requantize_instruction(self.core)

    @property
    def includes(self) -> str:
        """Headers that `function` needs."""
        return super().includes if self.instruction is None else self.instruction.definitions

    @property
    def _unproved_form(self) -> str:
        if self.instruction is not None:
            return "unit"
        return "simple" if self._simple else "general"

    def _unproved_columns(self) -> list[Array]:
        multiplier, shift = (
            numbers.astype(np.int64) for numbers in (self.scaling.multiplier, self.scaling.shift)
        )
        if self.form == "unit":
            packed_scale = shift & 0xFF
            for byte, value in enumerate((self.scaling.zero_point, *self.scaling.clamp), 1):
                packed_scale |= (value & 0xFF) << 8 * byte
            return [multiplier, packed_scale]
        if self.form == "simple":
            offset = np.left_shift(1, -shift - 1, dtype=np.int64)
            offset += np.left_shift(self.scaling.zero_point, -shift, dtype=np.int64)
            return [multiplier, offset, -shift]
        return [multiplier, shift]

    def _unproved_function(self) -> str:
        emit = {
            "unit": self._unit_function,
            "simple": self._simple_function,
            "general": self._general_function,
        }
        return emit[self.form]()

    @property
    def _simple(self) -> bool:
        """True if every channel shifts right by at least one and no intermediate overflows."""
        limit = 1 << 30 if self.core.has("mull") else 1 << 29
        right = -self.scaling.shift.astype(np.int64)
        # the rounding constant with the zero point folded in must not overflow either
        offsets = (abs(self.scaling.zero_point) + 1) << np.clip(right, 0, 40)
        return bool((right >= 1).all() and self.bound < limit and (offsets < 1 << 30).all())

    @cached_property
    def _proof(self) -> Proved | None:
        if self.instruction is not None or not self.core.has("mull") or not self._simple:
            return None
        preshift = min(_MAX_PRESHIFT, 31 - self.bound.bit_length())
        if preshift < 1:
            return None
        multiplier = self.scaling.multiplier.astype(np.int64)
        shift = self.scaling.shift.astype(np.int64)

        def scale(sums: Array) -> Array:
            return multiply_by_quantized_multiplier(sums, multiplier[:, None], shift[:, None])

        steps = self._step_function(scale)
        return steps.match(multiplier, -shift, preshift, half_even=False)

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

    def _simple_function(self) -> str:
        # where the clamp starts at the zero point or above, a negative sum ends there anyway
        ends = self.scaling.clamp[0] >= self.scaling.zero_point
        sign = "" if ends else f"    high += high >> 31; {SIGN_SHIFTED}\n"
        return (
            f"{HIGH_MULTIPLY[self.core.has('mull')]}\n"
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
            f"    result += {self.scaling.zero_point};\n"
            f"{self._clamp()}"
            "    return result;\n}\n"
        )


def _long_high_word(value: Array, multiplier: Array) -> Array:
    """Return the upper word of the 64-bit product, as SMULL and MULH compute it."""
    return (value * multiplier) >> 32


def _rounded_high_word(value: Array, multiplier: Array) -> Array:
    """Compute `HIGH_MULTIPLY` without a long multiplication."""
    return (value * multiplier + (1 << 30)) >> 31


HIGH_MULTIPLY = {
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
