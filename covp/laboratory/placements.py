"""Places of arrays in the device's memory as a Hypothesis strategy."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from covp.errors import UsageError
from covp.laboratory.buffers import ALIGNMENT, Buffer


def placements(
    array: NDArray[Any] | st.SearchStrategy[NDArray[Any]],
    *,
    alignment: int | None = None,
    name: str = "",
    written: bool = True,
) -> st.SearchStrategy[Buffer]:
    """Draw buffers whose address is a multiple of an alignment, and mostly of no larger one.

    ::

        @given(placements(arrays.arrays("int8", 32), alignment=1))
        def test_any_address(kernel, a): ...

    The simplest one is at a multiple of 16.

    Args:
        array: its content, or a strategy of it.
        alignment: the least that the kernel promises to take: 1, 2, 4, 8 or 16; by default that of
            the array's elements, as C has it.
        name, written: see `Buffer`.

    Raises:
        UsageError: another alignment.
    """
    if alignment not in (None, 1, 2, 4, 8, ALIGNMENT):
        raise UsageError(f"alignment {alignment}: 1, 2, 4, 8 or {ALIGNMENT} are needed")

    def place(content: NDArray[Any], number: int) -> Buffer:
        least = np.dtype(content.dtype).alignment if alignment is None else alignment
        return Buffer(content, name, ALIGNMENT, number * least % ALIGNMENT, written)

    arrays = array if isinstance(array, st.SearchStrategy) else st.builds(array.copy)
    return st.builds(place, arrays, st.integers(0, ALIGNMENT - 1))
