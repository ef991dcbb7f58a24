"""The multiply-accumulate instructions of covp's own cores, and loads that the compiler keeps.

Instructions are data: `covp.hardware.intrinsics` says how others are declared.
"""

from __future__ import annotations

from covp.hardware.intrinsics import DotProduct, register

_WIDENED = """\
#include <arm_acle.h>
/* bytes 0 and 2 with their signs as halves; not every kernel widens */
static inline __attribute__((unused)) int32_t widened(uint32_t bytes)
{
    return __sxtb16((int32_t)bytes);
}
"""
# Arm DDI0403E (ARMv7-M) A7.7: SMLAD adds two products of halves; SXTB16 sign-extends two bytes.
SMLAD = register(
    DotProduct(
        "smlad",
        requires=frozenset({"dsp"}),
        lanes=2,
        operand="int16",
        expression="__smlad({w}, {x}, {sum})",
        definitions=_WIDENED,
        widen="widened",
    )
)
# MLA on Arm, MUL and ADD elsewhere: the compiler's choice.
MAC = register(
    DotProduct(
        "mac",
        requires=frozenset(),
        lanes=1,
        operand="int8",
        expression="{sum} + {w} * {x}",
        modular="(int32_t)((uint32_t){sum} + (uint32_t)({w} * {x}))",
        better=frozenset({"dsp"}),
    )
)


SINGLE_LOADS = "_ldr"
"""End of the names of tiles that load words by `load_words`."""
LOADS_MEMORY = '__asm__ volatile("" ::: "memory");'
"""C statement of a function: its caller's stores come before it, although only `load_words` reads
them."""
_FARTHEST = 4095
"""Bytes from a register that LDR reaches."""


def load_words(words: list[tuple[str, str, int]]) -> list[str]:
    """Return C statements that load words by LDR, one after the other, not two at once by LDRD.

    A Cortex-M4 takes n + 1 cycles for n of them in a row, and three for each LDRD (Arm 100166,
    Cortex-M4 r0p1, "Load/store timings").

    Args:
        words: the new variable of each, a pointer to words, and an index. What they point to does
            not change in their function, which begins with `LOADS_MEMORY`.
    """
    far = [word for word in words if 4 * word[2] > _FARTHEST]
    near = [word for word in words if word not in far]
    lines = [f"int32_t {name} = (int32_t){pointer}[{at}];" for name, pointer, at in far]
    if not near:
        return lines
    plain = [f"{name} = (int32_t){pointer}[{at}];" for name, pointer, at in near]
    pointers = list(dict.fromkeys(pointer for _, pointer, _ in near))
    number = {pointer: len(near) + n for n, pointer in enumerate(pointers)}
    loads = [
        f"ldr %{n}, [%{number[pointer]}, #{4 * at}]" for n, (_, pointer, at) in enumerate(near)
    ]
    text = "\\n\\t".join(loads)
    outputs = ", ".join(f'"=&r"({name})' for name, _, _ in near)
    inputs = ", ".join(f'"r"({pointer})' for pointer in pointers)
    return [
        *lines,
        f"int32_t {', '.join(name for name, _, _ in near)};",
        "#ifdef __arm__",
        f'__asm__("{text}" : {outputs} : {inputs});',
        "#else",  # where the code is checked on another machine
        *plain,
        "#endif",
    ]
