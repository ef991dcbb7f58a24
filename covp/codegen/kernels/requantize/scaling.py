"""MultiplyByQuantizedMultiplier of int32 with constants, as a C function of its own."""

from __future__ import annotations

from covp.chip.cores import Core
from covp.codegen.c_text import SIGN_SHIFTED
from covp.codegen.kernels.clamp import clamp

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
