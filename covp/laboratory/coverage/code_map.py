"""`CodeMap`: the instructions of an ELF file with their source lines and functions."""

from __future__ import annotations

import functools
import io
from bisect import bisect_right
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from covp.compilers.symbols import read_functions
from covp.laboratory.coverage.debug_lines import (
    NO_FILE,
    Instance,
    LineRow,
    read_instances,
    read_rows,
)
from covp.laboratory.coverage.instructions import DecodedInstruction, decode
from covp.laboratory.coverage.sanitizer_checks import without_checks
from covp.runtime.undefined_behaviour import HANDLER

_EXECUTABLE = 0x4
Place = tuple[str, int, int]
"""File, line and column; line 0: the compiler made it for no line."""


@dataclass(frozen=True)
class CodeMap:
    """The code of an ELF file: its instructions, functions and source lines.

    Attributes:
        steps: its instructions by address, in ascending order; data between them is left out.
        places: the source of instructions by address, as far as it is known.
        statements: (address, file, line) of statements that have no instruction of their own, and
            pass where that address does.
        instances: its functions and their inlined copies; those without debug information as the
            symbol table has them.
        owners: the innermost instance of instructions by address, a position in `instances`.
        blocks: for each instruction the first one of those that run equally often with it: no
            branch leads in between them.
    """

    steps: Mapping[int, DecodedInstruction]
    places: Mapping[int, Place]
    statements: tuple[tuple[int, str, int], ...]
    instances: tuple[Instance, ...]
    owners: Mapping[int, int]
    blocks: Mapping[int, int]


@functools.lru_cache(maxsize=64)
def read_code(elf: bytes) -> CodeMap:
    """Read the map of a linked ELF file of a 32-bit Arm or RISC-V core.

    Args:
        elf: its content; without debug information only instructions and symbols are known.
    """
    from elftools.elf.elffile import ELFFile

    file = ELFFile(io.BytesIO(elf))
    steps = {step.address: step for step in _steps(file)}
    dwarf = file.get_dwarf_info() if file.has_dwarf_info() else None
    rows = [row for row in read_rows(dwarf) if row.start in steps] if dwarf is not None else []
    found = read_instances(dwarf) if dwarf is not None else []
    known = [one for one in found if one.ranges[0][0] in steps]
    known += _symbols(file, known, steps)
    places = _places(rows, steps)
    steps = without_checks(steps, places, _handlers(file))
    owners = _owners(known, steps)
    if len(owners) < len(steps):  # assembly without a symbol for its function
        known.append(Instance("", NO_FILE, 0, -1, ()))
        owners = {at: owners.get(at, len(known) - 1) for at in steps}
    return CodeMap(
        steps,
        places,
        _without_code(rows),
        tuple(_place_instances(known, rows)),
        owners,
        _blocks(steps),
    )


def _steps(file: Any) -> Iterator[DecodedInstruction]:
    is_thumb = file["e_machine"] == "EM_ARM"
    marks = _mapping_symbols(file)
    for section in file.iter_sections():
        if not section["sh_flags"] & _EXECUTABLE or section["sh_type"] == "SHT_NOBITS":
            continue
        start, data = section["sh_addr"], section.data()
        end = start + len(data)
        inside = [(at, is_code) for at, is_code in marks if start <= at < end]
        if not inside or inside[0][0] > start:
            inside.insert(0, (start, True))
        for (at, is_code), (following, _) in zip(inside, [*inside[1:], (end, True)], strict=True):
            if is_code:
                yield from decode(data[at - start : following - start], at, is_thumb)


def _mapping_symbols(file: Any) -> list[tuple[int, bool]]:
    """Find where code ($t, $x) and data ($d) begin; ELF for the Arm Architecture 5.5.5."""
    table = file.get_section_by_name(".symtab")
    marks = {}
    for symbol in table.iter_symbols() if table is not None else ():
        if symbol.name[:2] in ("$t", "$x", "$d") and symbol["st_shndx"] != "SHN_ABS":
            marks[symbol["st_value"] & ~1] = symbol.name[:2] != "$d"
    found: list[tuple[int, bool]] = []
    for at, is_code in sorted(marks.items()):
        if not found or found[-1][1] != is_code:
            found.append((at, is_code))
    return found


def _handlers(file: Any) -> frozenset[int]:
    """Return the addresses of the runtime's functions that undefined-behaviour checks call."""
    table = file.get_section_by_name(".symtab")
    symbols = table.iter_symbols() if table is not None else ()
    return frozenset(
        symbol["st_value"] & ~1 for symbol in symbols if symbol.name.startswith(HANDLER)
    )


def _places(rows: Sequence[LineRow], steps: Mapping[int, DecodedInstruction]) -> dict[int, Place]:
    by_start = sorted(
        (row for row in rows if row.end > row.start), key=lambda row: (row.start, row.end)
    )
    starts = [row.start for row in by_start]
    places: dict[int, Place] = {}
    for address in steps:
        position = bisect_right(starts, address) - 1
        if position >= 0 and address < by_start[position].end:
            row = by_start[position]
            if row.file != NO_FILE:
                places[address] = (row.file, row.line, row.column)
    return places


def _without_code(rows: Sequence[LineRow]) -> tuple[tuple[int, str, int], ...]:
    """Return statements whose code was merged with what follows, as the compiler marks them."""
    found = {
        (row.start, row.file, row.line)
        for row in rows
        if row.end == row.start and row.is_statement and row.line and row.file != NO_FILE
    }
    return tuple(sorted(found))


def _symbols(file: Any, known: Sequence[Instance], steps: Container[int]) -> list[Instance]:
    """Return the functions of the symbol table that have no debug information."""
    covered = {one.entry for one in known if not one.inlined}
    found = []
    for start, end, name in read_functions(file):
        if start not in covered and start in steps:
            found.append(Instance(name, NO_FILE, 0, start, ((start, end),)))
    return found


def _place_instances(instances: Sequence[Instance], rows: Sequence[LineRow]) -> Iterator[Instance]:
    """Yield the instances; those without a declaration (assembly) are declared where they begin."""
    lines = {row.start: row for row in reversed(rows) if row.line}
    for one in instances:
        row = lines.get(one.entry) if one.file == NO_FILE else None
        yield one if row is None else replace(one, file=row.file, line=row.line)


def _blocks(steps: Mapping[int, DecodedInstruction]) -> dict[int, int]:
    begins = {step.target for step in steps.values() if step.kind in ("branch", "jump")}
    blocks: dict[int, int] = {}
    before: DecodedInstruction | None = None
    for at, step in steps.items():
        goes_on = before is not None and before.end == at and before.kind in ("plain", "call")
        if before is None or not goes_on or at in begins or step.conditional or before.conditional:
            blocks[at] = at
        else:
            blocks[at] = blocks[before.address]
        before = step
    return blocks


def _owners(
    instances: Sequence[Instance], steps: Mapping[int, DecodedInstruction]
) -> dict[int, int]:
    """Return the innermost instance of each instruction: the smallest that holds it."""
    addresses = sorted(steps)
    owners: dict[int, int] = {}
    by_size = sorted(range(len(instances)), key=lambda n: (-instances[n].bytes, n))
    for number in by_size:
        for start, end in instances[number].ranges:
            first, last = bisect_right(addresses, start - 1), bisect_right(addresses, end - 1)
            owners.update(dict.fromkeys(addresses[first:last], number))
    return owners
