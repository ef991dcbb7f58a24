"""Compiler barriers that keep a kernel's sums in registers; they cost no instruction.

Left alone, compilers load ahead and regroup the sums until they run out of registers and spill.
Two barriers help: one that makes the sums themselves opaque, so that they are not regrouped, and
one that only keeps the loads in order. Which is better was measured: GCC wants the second; Clang
mostly the first, but not around SMLAD with several pixels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

LOADED = '#define LOADED(now, next) __asm__ volatile("" : "+r"(now), "+r"(next))\n'
"""C text of a barrier: what comes after it and uses ``now`` stays behind the load of ``next``."""


def compiler_barrier(sums: Sequence[str]) -> str:
    """Return C text of a barrier over some sums; the file needs `barrier_macros` for that many."""
    return f"BARRIER{len(sums)}({', '.join(sums)});"


def opaque(name: str) -> str:
    """Return the C statement after which a compiler no longer knows where a value came from."""
    return f'__asm__ volatile("" : "+r"({name}));'


def before_branches(sums: Sequence[str]) -> list[str]:
    """Return C statements after sums whose requantization branches, before the first of them.

    Compilers would move the multiplications of a sum to its use, past the branch of the sum before,
    and spill all that they need.
    """
    return [opaque(name) for name in sums]


def barrier_macros(counts: Iterable[int], opaque: bool = True) -> str:
    """Return C text that defines ``BARRIER<count>(...)`` for each count.

    ``opaque`` makes the sums opaque to Clang; GCC always gets ordered loads.
    """
    hidden, ordered = [], []
    for count in sorted(set(counts) - {0}):
        names = ", ".join(f"s{i}" for i in range(count))
        operands = ", ".join(f'"+r"(s{i})' for i in range(count))
        define = f"#define BARRIER{count}({names}) __asm__ volatile"
        hidden.append(f'{define}("" : {operands})')
        ordered.append(f'{define}("" ::: "memory")')
    if not opaque:
        return "\n".join([*ordered, ""])
    return "\n".join(["#ifdef __clang__", *hidden, "#else", *ordered, "#endif\n"])
