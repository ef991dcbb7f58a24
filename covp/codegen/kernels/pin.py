"""Compiler barriers that keep a kernel's sums in registers; they cost no instruction.

Left alone, compilers load ahead and regroup the sums until they run out of registers and spill.
Which of the two barriers helps was measured: Clang for RISC-V and GCC for Arm do best when the
sums themselves are opaque, the other two when only the loads stay in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def pin(sums: Sequence[str]) -> str:
    """C text of a barrier over some sums; the file needs `pin_macros` for that many."""
    return f"PIN{len(sums)}({', '.join(sums)});"


SUMS = "defined(__clang__) == defined(__riscv)"
"""Condition under which the sums are made opaque; else loads are kept in order."""


def pin_macros(counts: Iterable[int], condition: str = SUMS) -> str:
    """C text that defines ``PIN<count>(...)`` for each count."""
    opaque, ordered = [], []
    for count in sorted(set(counts) - {0}):
        names = ", ".join(f"s{i}" for i in range(count))
        operands = ", ".join(f'"+r"(s{i})' for i in range(count))
        define = f"#define PIN{count}({names}) __asm__ volatile"
        opaque.append(f'{define}("" : {operands})')
        ordered.append(f'{define}("" ::: "memory")')
    return "\n".join([f"#if {condition}", *opaque, "#else", *ordered, "#endif\n"])
