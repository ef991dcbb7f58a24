"""The target description of a GDB server: numbers and sizes of its registers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from covp.chip.isa import ARCHITECTURES

# A description is read with regular expressions: QEMU's uses the prefix xi: without declaring it.
_TAG = re.compile(r"<(?:xi:include|reg)\b[^>]*>")
_ATTRIBUTE = re.compile(r'(\w+)\s*=\s*"([^"]*)"')
_DEPTH = 4
_LARGEST = 256  # bytes; vector registers are the longest there are


@dataclass(frozen=True)
class RemoteRegister:
    """A register as the server numbers it; ``size`` is in bytes."""

    number: int
    size: int


def default_registers(architecture: str) -> dict[str, RemoteRegister]:
    """Return the registers of servers that describe none: GDB's own numbers."""
    shown = ARCHITECTURES[architecture].shown
    found = {name: RemoteRegister(number, 4) for number, name in enumerate(shown)}
    return found | ({"xpsr": RemoteRegister(25, 4)} if "xpsr" in found else {})


def parse_description(
    text: str, read_annex: Callable[[str], str], depth: int = 0, after: int = -1
) -> dict[str, RemoteRegister]:
    """Return registers by name, lower case, in the order of the description.

    Args:
        text: the XML of target.xml.
        read_annex: gives the text of an included file.

    Raises:
        ValueError: a number or a size of a register that makes no sense.
    """
    found: dict[str, RemoteRegister] = {}
    for tag in _TAG.findall(text):
        attributes = dict(_ATTRIBUTE.findall(tag))
        if tag.startswith("<reg"):
            after = int(attributes.get("regnum", after + 1))
            size = -(-int(attributes.get("bitsize", 32)) // 8)
            if not 0 < size <= _LARGEST or after < 0:
                raise ValueError(f"a register {after} of {size} bytes")
            found[_canonical(attributes.get("name", "").lower())] = RemoteRegister(after, size)
        elif depth < _DEPTH and "href" in attributes:
            inner = parse_description(read_annex(attributes["href"]), read_annex, depth + 1, after)
            found |= inner
            after = max((r.number for r in found.values()), default=after)
    return found


def _canonical(name: str) -> str:
    """Return the usual name of a register: fp is s0."""
    return {"fp": "s0", "cpsr": "xpsr"}.get(name, name)


_NUMBER = "(0x[0-9a-fA-F]+|[1-9][0-9]*|0)"
_FLASH = re.compile(
    rf'<memory\s+type="flash"\s+start="{_NUMBER}"\s+length="{_NUMBER}"\s*>'
    rf'\s*<property\s+name="blocksize"\s*>\s*{_NUMBER}\s*<'
)


@dataclass(frozen=True)
class FlashArea:
    """An area of flash [``start``, ``end``) that is erased in blocks of ``block`` bytes."""

    start: int
    end: int
    block: int

    def block_of(self, address: int) -> tuple[int, int]:
        """Return the first address of the block there, and the first one past its end."""
        start = address - (address - self.start) % self.block
        return start, min(start + self.block, self.end)


def parse_memory_map(text: str) -> list[FlashArea]:
    """Return the flash areas of the XML; those without a block size cannot be erased."""
    found = (tuple(int(number, 0) for number in match) for match in _FLASH.findall(text))
    return [FlashArea(start, start + size, block) for start, size, block in found if block]
