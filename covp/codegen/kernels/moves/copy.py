"""Moving values: C loops that copy a part of one tensor to a part of another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from covp.codegen.c_text import c_float
from covp.codegen.kernels.loop_nest import LoopNest

_WORD = 4


def copy_loops(
    extents: Sequence[int],
    source: tuple[str, Sequence[int], int],
    target: tuple[str, Sequence[int], int],
    itemsize: int,
    value: Callable[[str], str] | None = None,
) -> list[str]:
    """Return C text that copies an index space of elements.

    Args:
        extents: of the index space.
        source, target: C name, strides and start, in elements.
        itemsize: bytes per element. Where it is less than a word and all extents and strides are
            multiples of words, words are copied.
        value: from the C expression of the element that is read to that of the one written;
            None copies it.
    """
    nest = LoopNest.over(extents, source=source[1], target=target[1])
    starts = source[2], target[2]
    together = _WORD // itemsize
    if value is None and together > 1 and _word_wise(nest, starts, together):
        nest = _in_words(nest, together)
        starts = starts[0] // together, starts[1] // together
        names = (
            f"((const word *)(const void *){source[0]})",
            f"((word *)(void *){target[0]})",
        )
    else:
        names = source[0], target[0]

    def step(ahead: int) -> list[str]:
        read = f"{names[0]}[{nest.at('source', ahead, starts[0])}]"
        written = f"{names[1]}[{nest.at('target', ahead, starts[1])}]"
        return [f"{written} = {read if value is None else value(read)};"]

    return nest.loops(step, nest.unroll())


def fill_loops(
    extents: Sequence[int], target: tuple[str, Sequence[int], int], value: str
) -> list[str]:
    """Return C text that writes one value to an index space.

    Args:
        extents: of the index space.
        target: C name, strides and start, in elements.
        value: C expression.
    """
    nest = LoopNest.over(extents, target=target[1])

    def step(ahead: int) -> list[str]:
        return [f"{target[0]}[{nest.at('target', ahead, target[2])}] = {value};"]

    return nest.loops(step, nest.unroll())


def c_element(value: float, dtype: np.dtype[Any]) -> str:
    """Return the C text of a number as an element of a type."""
    if dtype.kind == "f":
        return c_float(value)
    number = int(np.asarray(value).astype(dtype))
    if dtype.itemsize == 8:  # the lowest has no literal
        return f"{number}LL" if number != -(2**63) else "(-9223372036854775807LL - 1)"
    return str(number) if number != -(2**31) else "(-2147483647 - 1)"


def _word_wise(nest: LoopNest, starts: tuple[int, int], together: int) -> bool:
    """Return whether every innermost run of elements consists of whole, aligned words."""
    outer = [stride for strides in nest.strides.values() for stride in strides[:-1]]
    return all(strides[-1] == 1 for strides in nest.strides.values()) and all(
        n % together == 0 for n in (*outer, *starts, nest.extents[-1])
    )


def _in_words(nest: LoopNest, together: int) -> LoopNest:
    return LoopNest(
        (*nest.extents[:-1], nest.extents[-1] // together),
        {
            name: (*(stride // together for stride in strides[:-1]), 1)
            for name, strides in nest.strides.items()
        },
    )
