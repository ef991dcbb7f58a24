"""`Buffer`: an array that is passed to a kernel, with its place in the device's memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.base.arguments import demand, demand_count
from covp.errors import UsageError
from covp.runtime.allocator import Block
from covp.runtime.resident import Resident

ALIGNMENT = 16
_NO_CONTENT = b"\xa5"


class Buffer:
    """An array as a pointer argument of a `Kernel`, where its place or its history matters.

    Args:
        array: its content before the call, and after it where the parameter is not const.
        name: for messages; by default that of the C parameter.
        alignment: a power of two.
        offset: the address modulo ``alignment``: ``Buffer(a, alignment=4, offset=1)`` lies one byte
            after a word boundary.
        written: False: it is an output that the kernel has to write as a whole. Its bytes count as
            never written: the device gets 0xA5 in place of them, and with `sanitize` each element
            that the kernel leaves without a value, or uses before it has one, is a fault.
        scratch: True: it is memory to work in. It has no content, either, and may be left so.

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
        scratch: bool = False,
    ) -> None:
        demand("array", array, np.ndarray, "a numpy array")
        demand_count("alignment", alignment)
        demand_count("offset", offset)
        _check_dtype(array.dtype)
        if alignment < 1 or alignment & (alignment - 1) or offset >= alignment:
            raise UsageError(
                f"alignment {alignment} with offset {offset}: the alignment must be a power of "
                "two, the offset less than it"
            )
        self.array, self.name = array, name
        self.alignment, self.offset = alignment, offset
        self.written, self.scratch = written and not scratch, scratch
        self._address: int | None = None

    @classmethod
    def of(cls, array: NDArray[Any], name: str) -> Buffer:
        """Make ``Buffer(array, name)`` faster. Raises UsageError: not an array of numbers."""
        if array.dtype not in _PASSED:
            _check_dtype(array.dtype)
        buffer = cls.__new__(cls)
        buffer.array, buffer.name, buffer.alignment, buffer.offset = array, name, ALIGNMENT, 0
        buffer.written, buffer.scratch, buffer._address = True, False, None
        return buffer

    def with_array(self, array: NDArray[Any]) -> Buffer:
        """Return the same placement for another array."""
        written, scratch = self.written, self.scratch
        return Buffer(array, self.name, self.alignment, self.offset, written, scratch)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        return self.array.dtype

    @property
    def nbytes(self) -> int:
        """The size on the device, in bytes."""
        return self.array.nbytes

    @property
    def content(self) -> bytes:
        """Bytes that the device's memory holds before the call."""
        return self.array.tobytes() if self.written else _NO_CONTENT * self.nbytes

    @property
    def value_bytes(self) -> bytes:
        """Mask of the bytes that are part of a value: 1 or 0 each; b"" if all are."""
        return bytes_of_members(self.array.dtype) * self.array.size

    @property
    def address(self) -> int:
        """The address of the first byte. Raises UsageError outside a call."""
        if self._address is None:
            raise UsageError("a buffer has an address during a call of a kernel only")
        return self._address

    @property
    def is_placed(self) -> bool:
        """True if the buffer has an address."""
        return self._address is not None

    @property
    def members(self) -> Iterable[tuple[Buffer, bool]]:
        """Buffers that the pointers of a structure lead to, each with whether it is const."""
        return ()

    @property
    def pointer(self) -> int:
        """The address, as the function is called with it."""
        return self.address

    @property
    def key(self) -> tuple[int, int, int, int]:
        """A key of the host's memory and its placement; equal keys share a buffer of the device."""
        address = self.array.__array_interface__["data"][0]
        return address, self.nbytes, self.alignment, self.offset

    def place(self, address: int | None) -> None:
        """Set its address; None: it has none."""
        self._address = address

    def fetch(self, session: Resident) -> None:
        """Copy the bytes on the device back into the array."""
        if self.nbytes:
            raw = session.io.read(self.address, self.nbytes)
            np.copyto(self.array, np.frombuffer(raw, self.array.dtype).reshape(self.array.shape))

    def __repr__(self) -> str:
        return f"<Buffer {self.name or '?'} {self.array.shape} {self.dtype}>"


def bytes_of_members(dtype: np.dtype[Any]) -> bytes:
    """Return for each byte of a structure 1 if a member covers it, else 0; b"" for numbers."""
    if dtype.fields is None:
        return b""
    found = bytearray(dtype.itemsize)
    for part, offset, *_ in dtype.fields.values():
        own = bytes_of_members(part.base) or b"\1" * part.base.itemsize
        found[offset : offset + part.itemsize] = own * (part.itemsize // part.base.itemsize)
    return bytes(found)


_PASSED: set[np.dtype[Any]] = set()


def _check_dtype(dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "iufbV" or (dtype.kind != "V" and dtype.itemsize > 8):
        raise UsageError(f"an array of {dtype} cannot be passed to a kernel")
    if not dtype.isnative:
        raise UsageError(f"an array of {dtype} has its bytes in the other order; pass a copy")
    _PASSED.add(dtype)


GAP = 16
"""Bytes that are free after each buffer at least."""
_NEAR = 256
"""Bytes between buffers that are written along with them."""
_MOST_PLANS = 1000
_Key = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class _Plan:
    """The addresses of buffers of certain sizes.

    Attributes:
        gaps: the free memory that it was made for.
        addresses: of the buffers.
        start: of the first one.
        pads: the bytes after each buffer up to the next; empty where they lie apart.
        workspace: what is left for the function's own allocations.
    """

    gaps: Sequence[Block]
    addresses: tuple[int, ...]
    start: int
    pads: tuple[bytes, ...]
    workspace: Block


class CallMemory:
    """Free RAM of a session, taken for one call at a time: a plan for each set of sizes, kept.

    Args:
        session: whose memory.
    """

    def __init__(self, session: Resident) -> None:
        self._session = session
        self._ram = session.image_memory.ram
        self._plans: dict[_Key, _Plan] = {}

    def place(self, buffers: Sequence[Buffer]) -> Block:
        """Put buffers, at least one, into the memory until `release`; returns the workspace.

        Raises:
            CapacityError: they do not fit the RAM.
        """
        sanitizer = self._session.sanitizer
        key = tuple([(one.nbytes, one.alignment, one.offset) for one in buffers])
        # where memory is checked each call has its own: pointers that were kept are found
        plan = self._plans.get(key) if sanitizer is None else None
        if plan is None or plan.gaps is not self._ram.gaps():
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            plan = self._plans[key] = self._plan(buffers)
        for buffer, address in zip(buffers, plan.addresses, strict=True):
            buffer.place(address)
            if sanitizer is not None:
                sanitizer.add_array(address, buffer.nbytes, buffer.name)
        if plan.pads:
            contents = [buffer.content for buffer in buffers]
            parts = [part for pair in zip(contents, plan.pads, strict=True) for part in pair]
            self._session.io.write(plan.start, b"".join(parts))
        else:
            for buffer in buffers:
                if buffer.nbytes:
                    self._session.io.write(buffer.address, buffer.content)
        return plan.workspace

    def release(self, buffers: Sequence[Buffer]) -> None:
        """Take their places from the buffers, after the call."""
        sanitizer = self._session.sanitizer
        for buffer in buffers:
            if sanitizer is not None and buffer.is_placed:
                sanitizer.remove_array(buffer.address)
            buffer.place(None)

    def _plan(self, buffers: Sequence[Buffer]) -> _Plan:
        """Plan the addresses, as the session's allocator places the buffers one by one."""
        ram, blocks = self._ram, list[Block]()
        try:
            for one in buffers:
                what = f"{one.name} ({one.nbytes} bytes)"
                blocks.append(ram.allocate(one.offset + one.nbytes + GAP, one.alignment, what))
            workspace = self._session.queue.workspace()
        finally:
            for block in blocks:
                ram.free(block)
        addresses = [block.address + one.offset for block, one in zip(blocks, buffers, strict=True)]
        ends = [address + one.nbytes for address, one in zip(addresses, buffers, strict=True)]
        pads = [after - end for after, end in zip([*addresses[1:], ends[-1]], ends, strict=True)]
        return _Plan(
            ram.gaps(),
            tuple(addresses),
            addresses[0],
            tuple(map(bytes, pads)) if all(0 <= pad <= _NEAR for pad in pads) else (),
            workspace,
        )
