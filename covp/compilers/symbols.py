"""Names and source lines of code addresses, out of ELF files, read on demand.

They are optional: what a damaged file does not say is unknown, and no error.
"""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any, TypeVar

from covp.base.arguments import read_file
from covp.compilers.dwarf_frames import FrameRule, FrameTable
from covp.errors import printable

_SCOPES = ("DW_TAG_subprogram", "DW_TAG_inlined_subroutine", "DW_TAG_lexical_block")


def inlined_calls(dwarf: Any, address: int) -> list[tuple[str, str]]:
    """Find (function, "file.c:12" of its call) of each inlined call there, innermost first.

    Args:
        dwarf: pyelftools' ``DWARFInfo``, or None.
        address: of an instruction.
    """
    for unit in dwarf.iter_CUs() if dwarf is not None else ():
        top = unit.get_top_DIE()
        if not _holds(dwarf, top, address):
            continue
        files = _files(dwarf, unit)
        return [
            (_name(die), _line(die, files))
            for die in _scopes(dwarf, top, address)
            if die.tag == "DW_TAG_inlined_subroutine"
        ][::-1]
    return []


def _scopes(dwarf: Any, die: Any, address: int) -> Iterator[Any]:
    """Yield the functions and blocks around ``address``, outermost first."""
    for child in die.iter_children():
        if child.tag in _SCOPES and _holds(dwarf, child, address):
            yield child
            yield from _scopes(dwarf, child, address)
            return


def _holds(dwarf: Any, die: Any, address: int) -> bool:
    return any(start <= address < end for start, end in _ranges(dwarf, die))


def _ranges(dwarf: Any, die: Any) -> Iterator[tuple[int, int]]:
    """Yield the (start, end) of a scope's code; none of one that has no code."""
    attributes = die.attributes
    low, high = attributes.get("DW_AT_low_pc"), attributes.get("DW_AT_high_pc")
    if low is not None and high is not None:
        is_address = high.form == "DW_FORM_addr"
        yield low.value, high.value if is_address else low.value + high.value
        return
    ranges = attributes.get("DW_AT_ranges")
    lists = dwarf.range_lists() if ranges is not None else None
    if lists is None:
        return
    first = die.cu.get_top_DIE().attributes.get("DW_AT_low_pc")
    base = first.value if first is not None else 0
    for entry in lists.get_range_list_at_offset(ranges.value, die.cu):
        if hasattr(entry, "base_address"):
            base = entry.base_address
        else:
            start = 0 if entry.is_absolute else base
            yield start + entry.begin_offset, start + entry.end_offset


def _name(die: Any) -> str:
    """Return the name of the function that was inlined; "?" where it has none."""
    for _ in range(4):  # instance, abstract instance, declaration
        if "DW_AT_name" in die.attributes:
            return printable(die.attributes["DW_AT_name"].value)
        link = next(
            (k for k in ("DW_AT_abstract_origin", "DW_AT_specification") if k in die.attributes),
            None,
        )
        if link is None:
            break
        die = die.get_DIE_from_attribute(link)
    return "?"


def _files(dwarf: Any, unit: Any) -> dict[int, str]:
    """Return the unit's file numbers with their names."""
    program = dwarf.line_program_for_CU(unit)
    if program is None:
        return {}
    first = 0 if program.header.version >= 5 else 1
    names = (PurePath(printable(entry.name)).name for entry in program["file_entry"])
    return dict(enumerate(names, first))


def _line(die: Any, files: dict[int, str]) -> str:
    """Return the file and line of the call; empty where they are not known."""
    file, line = die.attributes.get("DW_AT_call_file"), die.attributes.get("DW_AT_call_line")
    if file is None or line is None or file.value not in files:
        return ""
    return f"{files[file.value]}:{line.value}"


_Read = TypeVar("_Read")


class Symbols:
    """The debug information of everything that is loaded."""

    def __init__(self) -> None:
        self._files: list[_ElfFile] = []

    def add(self, elf: str | bytes) -> None:
        """Add an ELF file by path or content; it is not read yet."""
        self._files.append(_ElfFile(elf))

    def remove(self, elf: str | bytes) -> None:
        """Forget a file; one that was not added is not an error."""
        for position, file in enumerate(self._files):
            if file.origin == elf:
                del self._files[position]
                return

    def locate(self, address: int | None) -> tuple[str | None, str | None]:
        """Return ("function+0x12", "file.c:12") of a code address; None where it is unknown."""
        if address is None:
            return None, None
        file = self._file_of(address)
        return (None, None) if file is None else (file.symbol(address), file.line(address))

    def calls(self, address: int) -> tuple[str, ...]:
        """Return ("function (file.c:12)", ...) at an address: inlined ones, then their function.

        Empty where the address is unknown.
        """
        file = self._file_of(address)
        return () if file is None else file.calls(address)

    def frame_rule(self, address: int) -> FrameRule | None:
        """Return where the caller's registers are at an instruction; None where it is not known."""
        file = self._file_of(address)
        return None if file is None else file.frame_rule(address)

    def functions(self) -> list[tuple[int, int, str]]:
        """Return (start, end, name) of all functions, by address."""
        return sorted(function for file in self._files for function in file.functions)

    def _file_of(self, address: int) -> _ElfFile | None:
        """Return the file that was added last of those that know the address."""
        for file in reversed(self._files):
            if file.symbol(address) is not None or file.line(address) is not None:
                return file
        return None


class _ElfFile:
    def __init__(self, origin: str | bytes) -> None:
        self.origin = origin
        self._calls: dict[int, tuple[str, ...]] = {}

    @cached_property
    def _elf(self) -> Any:
        from elftools.elf.elffile import ELFFile

        data = self.origin if isinstance(self.origin, bytes) else read_file(Path(self.origin))
        return ELFFile(io.BytesIO(data))

    @cached_property
    def _dwarf(self) -> Any:
        """pyelftools' ``DWARFInfo``; None where the file has none."""
        return _optional(lambda: self._elf.get_dwarf_info() if self._elf.has_dwarf_info() else None)

    @cached_property
    def functions(self) -> list[tuple[int, int, str]]:
        """Tuples (start, end, name) by address; a symbol without size extends to the next one."""
        return _optional(lambda: read_functions(self._elf)) or []

    @cached_property
    def _lines(self) -> list[tuple[int, str | None]]:
        return _optional(lambda: _read_lines(self._dwarf)) or []

    @cached_property
    def _frames(self) -> FrameTable:
        return _optional(lambda: FrameTable.of(self._dwarf, self.functions)) or FrameTable()

    def symbol(self, address: int) -> str | None:
        position = bisect_right(self.functions, (address, 1 << 32, "")) - 1
        if position < 0:
            return None
        start, end, name = self.functions[position]
        return f"{name}+0x{address - start:x}" if start <= address < end else None

    def line(self, address: int) -> str | None:
        position = bisect_right(self._lines, address, key=lambda entry: entry[0]) - 1
        return self._lines[position][1] if position >= 0 else None

    def frame_rule(self, address: int) -> FrameRule | None:
        return _optional(lambda: self._frames.rule(address))

    def calls(self, address: int) -> tuple[str, ...]:
        if address not in self._calls:
            inlined = _optional(lambda: inlined_calls(self._dwarf, address)) or []
            symbol = self.symbol(address)
            names = [name for name, _ in inlined] + [symbol.partition("+")[0] if symbol else "?"]
            lines = [self.line(address) or "", *(line for _, line in inlined)]
            self._calls[address] = tuple(
                f"{name} ({line})" if line else name
                for name, line in zip(names, lines, strict=True)
            )
        return self._calls[address]


def _optional(read: Callable[[], _Read]) -> _Read | None:
    """Call ``read`` and return its result; None where the file is damaged there."""
    try:
        return read()
    except Exception:  # pyelftools raises whatever its code meets in such a file
        return None


def read_functions(elf: Any) -> list[tuple[int, int, str]]:
    """Read (start, end, name) of an ELF file's functions; see `Symbols.functions`."""
    table = elf.get_section_by_name(".symtab")
    thumb = 1 if elf["e_machine"] == "EM_ARM" else 0
    found: dict[int, tuple[int, str]] = {}
    for symbol in table.iter_symbols() if table is not None else ():
        if symbol["st_info"]["type"] != "STT_FUNC" or symbol["st_shndx"] == "SHN_UNDEF":
            continue
        start, size = symbol["st_value"] & ~thumb, symbol["st_size"]
        if start not in found or size > found[start][0]:
            found[start] = (size, printable(symbol.name))
    starts = sorted(found)
    functions = []
    for start, following in zip(starts, [*starts[1:], 1 << 32], strict=False):
        size, name = found[start]
        functions.append((start, start + size if size else min(following, start + 0x1000), name))
    return functions


def _read_lines(dwarf: Any) -> list[tuple[int, str | None]]:
    """Read (first address, "file:line" or None past the end of a sequence), by address."""
    lines: list[tuple[int, str | None]] = []
    for unit in dwarf.iter_CUs() if dwarf is not None else ():
        program = dwarf.line_program_for_CU(unit)
        if program is None:
            continue
        files = program["file_entry"]
        first = 0 if program.header.version >= 5 else 1
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            if state.end_sequence:
                lines.append((state.address, None))
            elif state.line and state.file - first < len(files):  # 0: the compiler's own code
                name = PurePath(printable(files[state.file - first].name)).name
                lines.append((state.address, f"{name}:{state.line}"))
    # A sequence's end yields to a sequence that starts at the same address.
    lines.sort(key=lambda entry: (entry[0], entry[1] is not None))
    return lines
