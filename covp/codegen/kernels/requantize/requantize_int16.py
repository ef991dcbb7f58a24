"""Requantization of int16 layers in C, bit-exact with TFLM.

Layers with an int32 bias follow TFLM's two roundings, in the simple or the general form of
`TflmRequantizer`. The others have sums of 64 bits and r, the 15 upper bits of the multiplier:

    output = clamp((acc * r + 2**(t - 1)) >> t)             t = 15 - shift

Sums that are proved to fit 32 bits need less, and the same to the bit:

``rounded``, cores with DSP
    16 <= t <= 32: ``(acc * (r << (32 - t)) + 2**31) >> 32``, one SMMULR.
``shifted``, other cores with a long multiplication
    t from t0 >= 17 to t0 + 16: ``(high_word(acc * (r << (16 - (t - t0)))) + 2**(t0 - 17)) >> (t0 -
    16)``. What the high word drops is below the bit that rounding looks at.
``halves``, cores without one
    t >= 17: floor(acc * r / 2**16) from the two halves of acc, then as before.
``general``
    TFLM's arithmetic in 64 bits; the only one for sums that may leave 32 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from string import Template

import numpy as np
from numpy.typing import NDArray

from covp.codegen.kernels.clamp import clamp
from covp.codegen.kernels.requantize.requantize import TflmRequantizer
from covp.codegen.kernels.requantize.requantize_proof import Proved
from covp.graph.quantization import reduced_multiplier
from covp.hardware.intrinsics import RequantizeInstruction


@dataclass(frozen=True)
class Requantizer16(TflmRequantizer):
    """Requantization to int16 by TFLM's rule.

    It is neither proved, as outputs have too many steps, nor done by an instruction.
    """

    @cached_property
    def instruction(self) -> RequantizeInstruction | None:
        """Always None: cores' instructions give int8."""
        return None

    @cached_property
    def _proof(self) -> Proved | None:
        return None


@dataclass(frozen=True)
class ReducedRequantizer(Requantizer16):
    """Requantization of 64-bit sums, or of sums that are proved to fit 32 bits."""

    @property
    def wraps(self) -> bool:
        """Always False: sums have as many bits as they need."""
        return False

    @property
    def sum_type(self) -> str:
        """C type of ``acc``: of 64 bits if sums may leave int32."""
        return "int64_t" if self.bound >= 1 << 31 else "int32_t"

    @property
    def _unproved_form(self) -> str:
        total = self._total
        least, most = int(total.min()), int(total.max())
        if self.sum_type == "int64_t" or least < 16:
            return "general"
        if self.core.has("dsp") and most <= 32:
            return "rounded"
        if least < 17:
            return "general"
        if not self.core.has("mull"):
            return "halves"
        return "shifted" if most - least <= 16 else "general"

    @property
    def _total(self) -> NDArray[np.int64]:
        """TFLM's shift to the right of each channel."""
        return 15 - self.scaling.shift.astype(np.int64)

    def _unproved_columns(self) -> list[NDArray[np.int64]]:
        total, reduced = self._total, reduced_multiplier(self.scaling.multiplier)
        if self.form == "rounded":
            return [reduced << (32 - total)]
        if self.form == "shifted":
            return [reduced << (16 - (total - total.min()))]
        return [reduced, total - 16 if self.form == "halves" else total]

    def _unproved_function(self) -> str:
        base = int(self._total.min()) - 16
        lines = [
            f"static inline int32_t requantize({self.sum_type} acc, "
            f"{_PARAMETERS[len(self.columns())]})",
            "{",
            _FORMS[self.form].substitute(base=base, rounding=1 << max(base - 1, 0)),
            f"    {clamp(self.core, 'result', *self.scaling.clamp)}",
            "    return result;",
            "}\n",
        ]
        return "\n".join(lines)


_PARAMETERS = {1: "int32_t multiplier", 2: "int32_t multiplier, int32_t shift"}
_FORMS = {
    "rounded": Template(
        "    int32_t result = (int32_t)(((int64_t)acc * multiplier + 0x80000000LL) >> 32);"
    ),
    "shifted": Template("""\
    int32_t high = (int32_t)(((int64_t)acc * multiplier) >> 32);
    int32_t result = (high + $rounding) >> $base;"""),
    "halves": Template("""\
    uint32_t low = ((uint32_t)acc & 0xffff) * (uint32_t)multiplier >> 16;
    int32_t high = (acc >> 16) * multiplier + (int32_t)low;
    int32_t result = (high + (1 << (shift - 1))) >> shift;"""),
    "general": Template("""\
    int64_t product = (int64_t)acc * multiplier + ((int64_t)1 << (shift - 1));
    int32_t result = (int32_t)(product >> shift);"""),
}
"""Statements of each form."""
