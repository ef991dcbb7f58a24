"""`ElfImage`: the few things a loader asks of a 32-bit little-endian ELF file."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

_ALLOC, _NOBITS, _SYMTAB = 0x2, 8, 2
_GLOBAL_OR_WEAK = (1, 2)
_OBJECT, _FUNC = 1, 2
_SHN_UNDEF, _SHN_ABS = 0, 0xFFF1


@dataclass(frozen=True)
class Section:
    """A section that occupies target memory; ``data`` is empty for zero-initialised ones."""

    name: str
    address: int
    size: int
    alignment: int
    data: bytes
    zero: bool


@dataclass(frozen=True)
class Symbol:
    """A defined symbol. ``address`` has the Thumb bit removed, ``value`` is as in the file."""

    name: str
    value: int
    size: int
    function: bool
    absolute: bool
    visible: bool

    @property
    def address(self) -> int:
        """Address of its first byte."""
        return self.value & ~1 if self.function else self.value


class ElfImage:
    """An ELF file in memory: an object file or a linked image.

    Attributes:
        content: the bytes of the file.
    """

    def __init__(self, content: bytes) -> None:
        if content[:7] != b"\x7fELF\x01\x01\x01":
            raise ValueError("not a 32-bit little-endian ELF file")
        self.content = content
        self._headers = self._section_headers()

    @property
    def sections(self) -> list[Section]:
        """The sections that occupy target memory, in file order, empty ones left out."""
        found = []
        for name, kind, flags, address, offset, size, _, alignment, _ in self._headers:
            if flags & _ALLOC and size:
                zero = kind == _NOBITS
                data = b"" if zero else self.content[offset : offset + size]
                found.append(Section(name, address, size, max(alignment, 1), data, zero))
        return found

    @cached_property
    def symbols(self) -> dict[str, Symbol]:
        """Defined symbols by name; of equal names the visible one."""
        found: dict[str, Symbol] = {}
        for symbol, _ in self._defined():
            if symbol.visible or symbol.name not in found:
                found[symbol.name] = symbol
        return found

    @cached_property
    def variables(self) -> list[Symbol]:
        """Variables and constants, by address; files may have some of equal names."""
        found = [symbol for symbol, kind in self._defined() if kind == _OBJECT and symbol.size]
        return sorted(found, key=lambda symbol: symbol.address)

    def _defined(self) -> Iterator[tuple[Symbol, int]]:
        """Defined symbols, with their kinds."""
        for _, kind, _, _, offset, size, strings, _, _ in self._headers:
            if kind != _SYMTAB:
                continue
            names = self._headers[strings][4]
            table = self.content[offset : offset + size]
            for name, value, length, info, _, index in struct.iter_unpack("<IIIBBH", table):
                if index == _SHN_UNDEF or not name or info & 15 > _FUNC:
                    continue
                visible = info >> 4 in _GLOBAL_OR_WEAK
                function, absolute = info & 15 == _FUNC, index == _SHN_ABS
                text = self._text(names + name)
                yield Symbol(text, value, length, function, absolute, visible), info & 15

    def _section_headers(self) -> list[tuple[str, int, int, int, int, int, int, int, int]]:
        (start,) = struct.unpack_from("<I", self.content, 0x20)
        count, names = struct.unpack_from("<HH", self.content, 0x30)
        rows = [struct.unpack_from("<10I", self.content, start + 40 * i) for i in range(count)]
        base = rows[names][4] if rows else 0
        return [
            (self._text(base + r[0]), r[1], r[2], r[3], r[4], r[5], r[6], r[8], r[9]) for r in rows
        ]

    def _text(self, offset: int) -> str:
        return self.content[offset : self.content.index(b"\0", offset)].decode()


def global_names(objects: Sequence[Path]) -> list[str]:
    """The global symbols that object files define, sorted."""
    return sorted(
        {
            symbol.name
            for path in objects
            for symbol in ElfImage(path.read_bytes()).symbols.values()
            if symbol.visible
        }
    )
