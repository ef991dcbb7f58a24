"""`CallMemory`: the RAM that the buffers of a kernel's calls lie in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from covp.laboratory.buffers import Buffer
from covp.runtime.allocator import Block
from covp.runtime.resident import Resident

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
            plan = self._plans[key] = self._planned(buffers)
        for buffer, address in zip(buffers, plan.addresses, strict=True):
            buffer.place(address)
            if sanitizer is not None:
                sanitizer.placed(address, buffer.nbytes, buffer.name)
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
                sanitizer.freed(buffer.address)
            buffer.place(None)

    def _planned(self, buffers: Sequence[Buffer]) -> _Plan:
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
