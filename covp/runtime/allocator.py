"""`LinearAllocator`: first-fit addresses in memory regions, kept by the host."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass

from covp.errors import CapacityError
from covp.platform_file import Region


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
    """How full a memory region is.

    Attributes:
        name: the region's.
        kind: "flash" or "ram".
        size_bytes: of the region.
        used_bytes: of those, the bytes in use.
    """

    name: str
    kind: str
    size_bytes: int
    used_bytes: int

    @property
    def free_bytes(self) -> int:
        """Bytes that are not in use; they may lie in several pieces."""
        return self.size_bytes - self.used_bytes


class LinearAllocator:
    """Hands out the lowest fitting gap of the regions; freed blocks merge with their neighbours.

    Nothing is stored in the target memory itself, so its whole size is usable.
    """

    def __init__(self, regions: Sequence[Region]) -> None:
        self.regions = tuple(regions)
        self._used: list[Block] = []
        self._gaps: list[Block] | None = None

    def allocate(self, size: int, alignment: int, what: str) -> Block:
        """A block of ``size`` bytes (0 gives an address that others may share).

        Raises:
            CapacityError: no gap is large enough; ``what`` names the demand in the message.
        """
        for gap in self.gaps():
            address = -(-gap.address // alignment) * alignment
            if address + size <= gap.end:
                block = Block(address, size)
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

    def free(self, block: Block) -> None:
        """Give a block back. Raises ValueError for one that is not in use."""
        if block.size:
            self._used.remove(block)
            self._gaps = None

    def gaps(self) -> list[Block]:
        """The free pieces, by region in the platform's order, by address within.

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
                    if block.address > start:
                        found.append(Block(start, block.address - start))
                    start = block.end
            if start < region.end:
                found.append(Block(start, region.end - start))
        return found

    def use(self) -> tuple[RegionUse, ...]:
        """How full each region is, in the platform's order."""
        return tuple(
            RegionUse(
                region.name,
                region.kind,
                region.bytes,
                sum(block.size for block in self._used if region.holds(block.address)),
            )
            for region in self.regions
        )

    @property
    def used_bytes(self) -> int:
        """Sum of the blocks in use."""
        return sum(block.size for block in self._used)
