"""`ElfImage`: the few things a loader asks of a 32-bit little-endian ELF file.

What is loaded is read strictly; names are optional: of a damaged table those that can be read.
Source: System V ABI, "Object Files" and "Program Loading".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from covp.errors import printable

_ALLOC, _NOBITS, _SYMTAB, _LOAD = 0x2, 8, 2, 1
_GLOBAL_OR_WEAK = (1, 2)
_OBJECT, _FUNC = 1, 2
_SHN_UNDEF, _SHN_ABS = 0, 0xFFF1
_SYMBOL = struct.Struct("<IIIBBH")


class _Header(NamedTuple):
    """The header of a section."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class _Segment(NamedTuple):
    kind: int
    offset: int
    virtual: int
    physical: int
    file_size: int
    memory_size: int
    flags: int
    alignment: int


@dataclass(frozen=True)
class ElfSection:
    """A section that occupies target memory; ``data`` is empty for zero-initialised ones.

    Attributes:
        load_address: where a programmer writes it; differs from ``address`` where start-up code
            copies it.
    """

    name: str
    address: int
    size: int
    alignment: int
    data: bytes
    zero: bool
    load_address: int


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
        """The address of the first byte."""
        return self.value & ~1 if self.function else self.value


class ElfImage:
    """An ELF file in memory: an object file or a linked image.

    Attributes:
        content: the bytes of the file.
        machine: `elf_machine` of one of `covp.chip.isa.ARCHITECTURES`.
        entry: address of the first instruction, as in the file.

    Raises:
        ValueError: it is none, or is damaged where it says what is loaded.
    """

    def __init__(self, content: bytes) -> None:
        if content[:7] != b"\x7fELF\x01\x01\x01":
            raise ValueError("not a 32-bit little-endian ELF file")
        if len(content) < 52:
            raise ValueError(f"it has {len(content)} bytes, less than a header")
        self.content = content
        self.machine, self.entry, segments, headers, *_, segment_count, _, count, names = (
            struct.unpack_from("<2xH4x3I4x6H", content, 16)
        )
        self._segments = [_Segment(*row) for row in self._table(segments, segment_count, "<8I")]
        self._headers = [_Header(*row) for row in self._table(headers, count, "<10I")]
        self._names = self._headers[names].offset if names < count else len(content)

    @cached_property
    def sections(self) -> list[ElfSection]:
        """The sections that occupy target memory, in file order, empty ones left out.

        Raises:
            ValueError: one reaches over the end of the file.
        """
        return [
            ElfSection(
                self._text(self._names + one.name),
                one.address,
                one.size,
                max(one.alignment, 1),
                b"" if one.kind == _NOBITS else self._data(one),
                one.kind == _NOBITS,
                self._load_address(one),
            )
            for one in self._headers
            if one.flags & _ALLOC and one.size
        ]

    @cached_property
    def symbols(self) -> dict[str, Symbol]:
        """The defined symbols by name; among equal names the visible one."""
        found: dict[str, Symbol] = {}
        for symbol, _ in self._defined_symbols():
            if symbol.visible or symbol.name not in found:
                found[symbol.name] = symbol
        return found

    @cached_property
    def variables(self) -> list[Symbol]:
        """Variables and constants, by address; names may occur more than once."""
        found = [
            symbol for symbol, kind in self._defined_symbols() if kind == _OBJECT and symbol.size
        ]
        return sorted(found, key=lambda symbol: symbol.address)

    def _defined_symbols(self) -> Iterator[tuple[Symbol, int]]:
        """Yield the defined symbols and their kinds."""
        for header in self._headers:
            if header.kind != _SYMTAB or header.link >= len(self._headers):
                continue
            names = self._headers[header.link].offset
            table = self.content[header.offset : header.offset + header.size]
            whole = len(table) // _SYMBOL.size * _SYMBOL.size
            for name, value, length, info, _, index in _SYMBOL.iter_unpack(table[:whole]):
                if index == _SHN_UNDEF or not name or info & 15 > _FUNC:
                    continue
                visible = info >> 4 in _GLOBAL_OR_WEAK
                function, absolute = info & 15 == _FUNC, index == _SHN_ABS
                text = self._text(names + name)
                if text:
                    yield Symbol(text, value, length, function, absolute, visible), info & 15

    def _table(self, start: int, count: int, form: str) -> Iterator[tuple[int, ...]]:
        size = struct.calcsize(form) * count
        if start + size > len(self.content):
            raise ValueError(f"a table of {count} headers at {start} reaches over its end")
        return struct.iter_unpack(form, self.content[start : start + size])

    def _data(self, header: _Header) -> bytes:
        end = header.offset + header.size
        if end > len(self.content):
            name = self._text(self._names + header.name)
            raise ValueError(f"section {name} is to end at {end}; it has {len(self.content)} bytes")
        return self.content[header.offset : end]

    def _load_address(self, header: _Header) -> int:
        """Return a section's address, moved as the segment is that has its bytes."""
        for segment in self._segments:
            at = header.offset - segment.offset
            if segment.kind == _LOAD and at >= 0 and at + header.size <= segment.file_size:
                return (header.address + segment.physical - segment.virtual) & 0xFFFFFFFF
        return header.address

    def _text(self, offset: int) -> str:
        """Return a name; empty where it is outside of the file."""
        end = self.content.find(b"\0", offset)
        return printable(self.content[offset:end]) if end >= 0 else ""


def global_names(objects: Sequence[Path]) -> list[str]:
    """Return the global symbols that object files define, sorted."""
    return sorted(
        {
            symbol.name
            for path in objects
            for symbol in ElfImage(path.read_bytes()).symbols.values()
            if symbol.visible
        }
    )
