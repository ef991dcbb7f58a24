"""`Buffer`: an array that is passed to a kernel, with its place in the device's memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.arguments import demand, demand_count
from covp.errors import UsageError
from covp.runtime.resident import Placed, Resident

ALIGNMENT = 16


class Buffer:
    """An array as a pointer argument of a `Kernel`, where its place or its history matters.

    Args:
        array: its content before the call, and after it where the parameter is not const.
        name: for messages; by default that of the C parameter.
        alignment: a power of two.
        offset: the address modulo ``alignment``: ``Buffer(a, alignment=4, offset=1)`` lies one byte
            after a word boundary.
        written: False: the bytes count as never written, as of scratch memory (with `sanitize`).

    Raises:
        UsageError: not an array of numbers, or a placement that does not exist.
    """

    def __init__(
        self,
        array: NDArray[Any],
        name: str = "",
        alignment: int = ALIGNMENT,
        offset: int = 0,
        written: bool = True,
    ) -> None:
        demand("array", array, np.ndarray, "a numpy array")
        demand_count("alignment", alignment)
        demand_count("offset", offset)
        if array.dtype.kind not in "iufbV" or (array.dtype.kind != "V" and array.itemsize > 8):
            raise UsageError(f"an array of {array.dtype} cannot be passed to a kernel")
        if alignment < 1 or alignment & (alignment - 1) or offset >= alignment:
            raise UsageError(
                f"alignment {alignment} with offset {offset}: the alignment must be a power of "
                "two, the offset less than it"
            )
        self.array, self.name = array, name
        self.alignment, self.offset, self.written = alignment, offset, written
        self._placed: Placed | None = None

    def with_array(self, array: NDArray[Any]) -> Buffer:
        """The same placement for another array."""
        return Buffer(array, self.name, self.alignment, self.offset, self.written)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of its elements."""
        return self.array.dtype

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return self.array.nbytes

    @property
    def address(self) -> int:
        """Of its first byte. Raises UsageError: it has one during a call only."""
        if self._placed is None:
            raise UsageError("a buffer has an address during a call of a kernel only")
        return self._placed.address

    @property
    def pointer(self) -> int:
        """The same as `address`, for the function's call."""
        return self.address

    @property
    def key(self) -> tuple[int, int, int, int]:
        """Equal for the same memory of the host in the same place: one buffer on the device."""
        address = self.array.__array_interface__["data"][0]
        return address, self.nbytes, self.alignment, self.offset

    def place(self, session: Resident, name: str) -> None:
        """Put it into a session's memory for a call; ``name`` where it has none of its own."""
        what = self.name or name
        self._placed = session.place(self.nbytes, self.alignment, what, self.offset)
        if self.nbytes:
            session.write(self.address, np.ascontiguousarray(self.array).tobytes())

    def fetch(self, session: Resident) -> None:
        """Copy the bytes on the device back into the array."""
        if self.nbytes:
            raw = session.read(self.address, self.nbytes)
            self.array[...] = np.frombuffer(raw, self.array.dtype).reshape(self.array.shape)

    def free(self) -> None:
        """Give its memory on the device back."""
        if self._placed is not None:
            self._placed.free()
            self._placed = None

    def __repr__(self) -> str:
        return f"<Buffer {self.name or '?'} {self.array.shape} {self.dtype}>"
