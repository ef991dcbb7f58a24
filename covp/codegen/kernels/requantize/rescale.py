"""Rescaling by a factor that is known when the code is written: MultiplyByQuantizedMultiplier."""

from __future__ import annotations

from covp.chip.cores import Core
from covp.codegen.c_text import SIGN_SHIFTED
from covp.codegen.kernels.requantize.requantize import HIGH_MULTIPLY
from covp.graph.quantization import reduced_multiplier

Factor = tuple[int, int]


def high_multiply(core: Core) -> str:
    """Return C text of the function that `rescale` calls."""
    return HIGH_MULTIPLY[core.has("mull")]


def rescale(core: Core, name: str, factor: Factor, bound: int) -> str:
    """Return C text of ``static inline int32_t name(int32_t value)``, with TFLM's two roundings.

    Args:
        core: that it runs on.
        name: of the function.
        factor: multiplier and shift, positive to the left.
        bound: no value is larger in magnitude; those that leave int32 wrap.
    """
    multiplier, shift = factor
    head = f"static inline int32_t {name}(int32_t value)\n{{\n"
    if shift < 0 and bound < 1 << (30 if core.has("mull") else 29):
        return (
            f"{head}    int32_t high = high_multiply(value, {multiplier});\n"
            f"    return (high + (high >> 31) + (1 << {-shift - 1})) >> {-shift}; {SIGN_SHIFTED}\n"
            "}\n"
        )
    left, right = max(shift, 0), max(-shift, 0)
    lines = [
        f"    int64_t product = (int64_t)(int32_t)((uint32_t)value << {left}) * {multiplier};",
        "    int32_t high = (int32_t)((product + (1 << 30)) >> 31);",
    ]
    if right:
        mask = (1 << right) - 1
        lines.append(
            f"    return (high >> {right}) + ((high & {mask}) > {mask >> 1} + (high < 0));"
        )
    else:
        lines.append("    return high;")
    return head + "\n".join(lines) + "\n}\n"


def rescale_wide(name: str, factor: Factor, wide: bool) -> str:
    """C text of the same for sums of int16 products: one rounding, 16 bits of the multiplier.

    Args:
        name: of the function.
        factor: multiplier and shift.
        wide: the sum is an int64_t, else it is proved to fit an int32_t.
    """
    multiplier, shift = int(reduced_multiplier(factor[0])), 15 - factor[1]
    return (
        f"static inline int32_t {name}({'int64_t' if wide else 'int32_t'} value)\n{{\n"
        f"    int64_t product = (int64_t)value * {multiplier} + (1LL << {shift - 1});\n"
        f"    return (int32_t)(product >> {shift});\n}}\n"
    )
