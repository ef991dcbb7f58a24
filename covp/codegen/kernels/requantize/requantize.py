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

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from covp.chip.cores import Core
from covp.codegen.c_text import SIGN_SHIFTED, indent
from covp.codegen.intrinsics import RequantizeInstruction, requantize_instruction
from covp.codegen.kernels.clamp import clamp, clamp_includes
from covp.codegen.kernels.requantize.requantize_half_even import (
    Guarded,
    guarded,
    integer_function,
    mantissa_and_exponent,
)
from covp.codegen.kernels.requantize.requantize_proof import Proved, StepFunction
from covp.graph.float_scaling import rescaled
from covp.graph.quantization import multiply_by_quantized_multiplier
from covp.graph.typed_convolution import QuantizedConv2D

Array = NDArray[np.int64]
_MAX_PRESHIFT = 10
_MAX_PRESHIFT_HALF_EVEN = 20
_LARGEST_EXACT = 1 << 24
"""Integers up to this are exact in float32."""


@dataclass(frozen=True)
class Requantizer:
    """The conversion of the sums of one layer to its outputs.

    Attributes:
        multiplier, shift: int32 per output channel; shift is TFLM's, positive to the left.
        zero_point: of the output.
        low, high: clamp in stored units.
        bound: no sum is larger than this in magnitude; proved from the weights by the caller.
        factors: float32 per output channel: onnxruntime's rule; multiplier and shift are the
            nearest fixed-point numbers. None: TFLM's rule.
    """

    core: Core
    multiplier: NDArray[np.int32]
    shift: NDArray[np.int32]
    zero_point: int
    low: int
    high: int
    bound: int
    factors: NDArray[np.float32] | None = None

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
            problem.factors,
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
        if self.factors is not None:
            return "integer" if self._guarded is None else "guarded"
        return "simple" if self._simple else "general"

    @property
    def branches(self) -> bool:
        """Whether the function has rare branches."""
        return self.form == "guarded"

    @cached_property
    def instruction(self) -> RequantizeInstruction | None:
        """The core's own instruction for it; those there are follow TFLM."""
        return requantize_instruction(self.core) if self.factors is None else None

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
            if self._proved.exception is not None:
                columns.append(self._proved.exception)
        elif self._guarded is not None:
            columns = self._guarded.columns()
        elif self.factors is not None:
            columns = list(mantissa_and_exponent(self.factors))
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
            "guarded": self._guarded_function,
            "integer": self._integer_function,
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
    def _proved(self) -> Proved | None:
        """The constants of the proved form, or None if no candidate is exact."""
        if self.factors is not None:
            return self._proved_half_even()
        if not self.core.has("mull") or not self._simple:
            return None
        preshift = min(_MAX_PRESHIFT, 31 - self.bound.bit_length())
        if preshift < 1:
            return None
        multiplier = self.multiplier.astype(np.int64)
        shift = self.shift.astype(np.int64)

        def scaled(sums: Array) -> Array:
            return multiply_by_quantized_multiplier(sums, multiplier[:, None], shift[:, None])

        steps = self._step_function(scaled)
        return steps.matched(multiplier, -shift, preshift, half_even=False)

    def _proved_half_even(self) -> Proved | None:
        """The same for onnxruntime's rule; factors that are 0 in fixed point never fit."""
        factors = self.factors
        assert factors is not None
        # without a long multiplication the halves of a product limit the sums to 29 bits
        width = 31 if self.core.has("mull") else 29
        preshift = min(_MAX_PRESHIFT_HALF_EVEN, width - self.bound.bit_length())
        if preshift < 0 or not self.multiplier.all():
            return None
        steps = self._step_function(lambda sums: rescaled(sums, factors[:, None]))
        shift = -self.shift.astype(np.int64)
        return steps.matched(self.multiplier.astype(np.int64), shift, preshift, half_even=True)

    @cached_property
    def _guarded(self) -> Guarded | None:
        """The constants of the guarded form, if it is onnxruntime's rule and they fit."""
        if self.factors is None:
            return None
        bits = 32 if self.core.has("mull") else 31
        return guarded(self.factors, self.zero_point, self.bound, bits)

    def _step_function(self, scaled: Callable[[Array], Array]) -> StepFunction:
        long = self.core.has("mull")
        return StepFunction(
            scaled,
            self.zero_point,
            self.low,
            self.high,
            self.bound,
            _long_high_word if long else _rounded_high_word,
            32 if long else 31,
        )

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
        """The function that it calls on a core without long multiplication."""
        return "" if self.core.has("mull") else f"{HIGH_MULTIPLY[False]}\n"

    def _guarded_function(self) -> str:
        assert self._guarded is not None
        return self._high_multiply + self._guarded.function(self._high_word, self._clamp())

    def _integer_function(self) -> str:
        wide = self.bound > _LARGEST_EXACT
        return integer_function(wide, self.zero_point, self._clamp())

    def _simple_function(self) -> str:
        # where the clamp starts at the zero point or above, a negative sum ends there anyway
        sign = "" if self.low >= self.zero_point else f"    high += high >> 31; {SIGN_SHIFTED}\n"
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
            f"    result += {self.zero_point};\n"
            f"{self._clamp()}"
            "    return result;\n}\n"
        )


def _long_high_word(value: Array, multiplier: Array) -> Array:
    """SMULL's or MULH's."""
    return (value * multiplier) >> 32


def _rounded_high_word(value: Array, multiplier: Array) -> Array:
    """As `HIGH_MULTIPLY` without a long multiplication."""
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
