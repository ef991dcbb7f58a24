"""The memory map of a GDB server (GDB manual, E.15 "Memory Map Format"): where its flash is."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NUMBER = "(0x[0-9a-fA-F]+|[1-9][0-9]*|0)"
_FLASH = re.compile(
    rf'<memory\s+type="flash"\s+start="{_NUMBER}"\s+length="{_NUMBER}"\s*>'
    rf'\s*<property\s+name="blocksize"\s*>\s*{_NUMBER}\s*<'
)


@dataclass(frozen=True)
class FlashArea:
    """From ``start`` up to, not including, ``end``; ``block`` bytes are erased at once."""

    start: int
    end: int
    block: int

    def block_of(self, address: int) -> tuple[int, int]:
        """The first address of the block there, and the first one past its end."""
        start = address - (address - self.start) % self.block
        return start, min(start + self.block, self.end)


def parse_memory_map(text: str) -> list[FlashArea]:
    """The flash areas of the XML; those without a block size are none that could be erased."""
    found = (tuple(int(number, 0) for number in match) for match in _FLASH.findall(text))
    return [FlashArea(start, start + size, block) for start, size, block in found if block]
