"""MultiplyByQuantizedMultiplier by constants, as C expressions and as a function of its own."""

from __future__ import annotations

from covp.chip.cores import Core
from covp.codegen.c_text import SIGN_SHIFTED
from covp.codegen.kernels.clamp import clamp
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
    """Emit a function that scales sums of int16 products: one rounding, 16-bit multiplier.

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


_HIGHEST = 1 << 30


def scale_function(core: Core, name: str, factor: tuple[int, int], bound: int) -> str:
    """Return C text of ``static inline int32_t name(int32_t x)``: TFLM's two roundings to the bit.

    Args:
        core: decides how the high multiplication is written.
        name: of the function.
        factor: multiplier and shift, as `covp.graph.quantization.quantize_multiplier` gives them.
        bound: no argument is larger than this, nor less than minus this and one.
    """
    multiplier, shift = factor
    left, right = max(shift, 0), max(-shift, 0)
    lines = [f"x = (int32_t)((uint32_t)x << {left});"] if left else []
    small = (bound + 1) << left <= _HIGHEST
    if core.has("mull") and small:
        # one SMMULR on Arm with DSP; MULH and MUL on RISC-V
        lines += [
            f"int64_t product = (int64_t)(x * 2) * {multiplier};",
            "#ifdef __ARM_FEATURE_DSP",
            "int32_t high = (int32_t)((product + 0x80000000LL) >> 32);",
            "#else",
            "int32_t high = (int32_t)(product >> 32) + (int32_t)((uint32_t)product >> 31);",
            "#endif",
        ]
    else:
        lines.append(f"int32_t high = (int32_t)(((int64_t)x * {multiplier} + (1 << 30)) >> 31);")
    if small and 1 <= right <= 30:  # ties away from zero; the sum fits
        lines.append(
            f"return (high + (high >> 31) + {1 << (right - 1)}) >> {right}; {SIGN_SHIFTED}"
        )
    elif right:
        lines += [
            f"int32_t rest = high & {(1 << right) - 1};",
            f"return (high >> {right}) + (rest > {((1 << right) - 1) >> 1} + (high < 0));",
        ]
    else:
        lines.append("return high;")
    body = "\n".join(line if line.startswith("#") else f"    {line}" for line in lines)
    return f"static inline int32_t {name}(int32_t x)\n{{\n{body}\n}}\n"


def exact_scale(factor: tuple[int, int], known_zeros: int) -> int | None:
    """Return the right shift that a factor is for numbers with enough zero bits at their end.

    None where it is no power of two, or bits are lost: those round.
    """
    multiplier, shift = factor
    bits = 1 - shift
    return bits if multiplier == _HIGHEST and 0 <= bits <= known_zeros else None


def finish(core: Core, value: str, zero_point: int, limits: tuple[int, int], c_type: str) -> str:
    """Return C statements that add the zero point, clamp and return a value."""
    offset = f" + {zero_point}" if zero_point else ""
    return (
        f"    int32_t result = {value}{offset};\n"
        f"    {clamp(core, 'result', *limits)}\n"
        f"    return ({c_type})result;\n"
    )
