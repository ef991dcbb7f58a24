"""`LinearAllocator`: first-fit addresses in memory regions, kept by the host."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from covp.chip.platform_file import Region
from covp.errors import CapacityError

_RESTING = 64
"""Freed blocks that wait at most before they are handed out again."""


@dataclass(frozen=True, order=True)
class Block:
    """A piece of target memory: ``size`` bytes from ``address``."""

    address: int
    size: int

    @property
    def end(self) -> int:
        """First address past its end."""
        return self.address + self.size


@dataclass(frozen=True)
class RegionUse:
    """The use of a memory region.

    Attributes:
        name: the region's.
        kind: "flash" or "ram".
        size_bytes: of the region.
        used_bytes: of those, the bytes in use.
    """

    name: str
    kind: Literal["flash", "ram"]
    size_bytes: int
    used_bytes: int

    @property
    def free_bytes(self) -> int:
        """Bytes that are not in use; they may lie in several pieces."""
        return self.size_bytes - self.used_bytes


class LinearAllocator:
    """Hands out the lowest fitting gap of the regions; freed blocks merge with their neighbours.

    Nothing is stored in the target memory itself, so its whole size is usable.

    Args:
        regions: in the order in which they are filled.
        margin: bytes that stay free between two blocks, and around them. With one, blocks that are
            freed are handed out again as late as possible.
    """

    def __init__(self, regions: Sequence[Region], margin: int = 0) -> None:
        self.regions = tuple(regions)
        self.margin = margin
        self._used: list[Block] = []
        self._gaps: list[Block] | None = None
        self._resting: list[Block] = []

    def allocate(self, size: int, alignment: int, what: str) -> Block:
        """Allocate a block of ``size`` bytes (0 gives an address that others may share).

        Raises:
            CapacityError: no gap is large enough; ``what`` names the demand in the message.
        """
        block = self._found(size, alignment)
        if block is None and self._resting:
            self._wake()
            block = self._found(size, alignment)
        if block is not None:
            if size:
                insort(self._used, block)
                self._gaps = None
            return block
        largest = max((gap.size for gap in self.gaps()), default=0)
        names = ", ".join(f"{region.name} ({region.bytes} bytes)" for region in self.regions)
        total = sum(gap.size for gap in self.gaps())
        pieces = "" if total == largest else f" ({total} bytes in all, but in pieces)"
        raise CapacityError(
            f"{what} needs {size} bytes; the largest free piece of {names} has {largest} bytes"
            f"{pieces}: {size - largest} bytes too much",
            needed=size,
            available=largest,
            kind=self.regions[0].kind,
        )

    def _found(self, size: int, alignment: int) -> Block | None:
        """Find the lowest place for a block."""
        for gap in self.gaps():
            address = -(-gap.address // alignment) * alignment
            if address + size <= gap.end:
                return Block(address, size)
        return None

    def free(self, block: Block) -> None:
        """Give a block back. Raises ValueError for one that is not in use."""
        if not block.size:
            return
        if self.margin:
            if block not in self._used or block in self._resting:
                raise ValueError(f"{block} is not in use")
            self._resting.append(block)
            if len(self._resting) > _RESTING:
                self._wake()
        else:
            self._used.remove(block)
            self._gaps = None

    def _wake(self) -> None:
        """Let freed blocks be handed out again."""
        for block in self._resting:
            self._used.remove(block)
        self._resting.clear()
        self._gaps = None

    def gaps(self) -> list[Block]:
        """Return the free pieces, by region in the platform's order, by address within.

        The very list that the last call gave, as long as nothing was allocated or freed.
        """
        if self._gaps is None:
            self._gaps = self._found_gaps()
        return self._gaps

    def _found_gaps(self) -> list[Block]:
        found = []
        for region in self.regions:
            start = region.start
            for block in self._used:
                if region.start <= block.address < region.end:
                    if block.address - self.margin > start:
                        found.append(Block(start, block.address - self.margin - start))
                    start = block.end + self.margin
            if start < region.end:
                found.append(Block(start, region.end - start))
        return found

    def use(self) -> tuple[RegionUse, ...]:
        """Return the use of each region, in the platform's order."""
        return tuple(
            RegionUse(
                region.name,
                region.kind,
                region.bytes,
                sum(block.size for block in self._in_use() if region.holds(block.address)),
            )
            for region in self.regions
        )

    @property
    def used_bytes(self) -> int:
        """Sum of the blocks in use."""
        return sum(block.size for block in self._in_use())

    def _in_use(self) -> list[Block]:
        return [block for block in self._used if block not in self._resting]
