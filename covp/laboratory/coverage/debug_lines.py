"""Debug information: the source line and the function of each address."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

NO_FILE = ""


@dataclass(frozen=True)
class LineRow:
    """Code that belongs to a line: an entry of a line table.

    Attributes:
        start, end: addresses; equal where the line has no code of its own.
        file: absolute path as far as the compiler knew it.
        line: from 1; 0: made by the compiler for no line.
        column: from 1; 0: unknown.
        is_statement: a statement begins.
    """

    start: int
    end: int
    file: str
    line: int
    column: int
    is_statement: bool


@dataclass(frozen=True)
class Instance:
    """A copy of a function's code: its own, or one inlined somewhere.

    Attributes:
        name, file, line: of its declaration in the source.
        entry: address of its first instruction.
        ranges: (start, end) of its code, that of functions inlined in it included.
        inlined: it is part of another function's code.
    """

    name: str
    file: str
    line: int
    entry: int
    ranges: tuple[tuple[int, int], ...]
    inlined: bool = False

    @property
    def bytes(self) -> int:
        """The size of the code in bytes."""
        return sum(end - start for start, end in self.ranges)


def read_rows(dwarf: Any) -> list[LineRow]:
    """Read all entries of all line tables, in the tables' order."""
    return [row for unit in dwarf.iter_CUs() for row in _unit_rows(dwarf, unit)]


def _unit_rows(dwarf: Any, unit: Any) -> Iterator[LineRow]:
    program = dwarf.line_program_for_CU(unit)
    if program is None:
        return
    names = _file_names(unit, program)
    state = None
    for entry in program.get_entries():
        now = entry.state
        if now is None:
            continue
        if state is not None:
            file = names.get(state.file, NO_FILE)
            column, begins = state.column, bool(state.is_stmt)
            yield LineRow(state.address, now.address, file, state.line, column, begins)
        state = None if now.end_sequence else now


def _file_names(unit: Any, program: Any) -> dict[int, str]:
    """Return the paths of a line table's files by number."""
    home = _text(unit.get_top_DIE(), "DW_AT_comp_dir")
    folders = [os.fsdecode(folder) for folder in program["include_directory"]]
    first = 0 if program.header.version >= 5 else 1
    if first:
        folders = [home, *folders]
    names = {}
    for number, file in enumerate(program["file_entry"], first):
        folder = folders[file.dir_index] if file.dir_index < len(folders) else ""
        names[number] = os.path.normpath(os.path.join(home, folder, os.fsdecode(file.name)))
    return names


def read_instances(dwarf: Any) -> list[Instance]:
    """Read all functions with code, and their inlined copies."""
    found: list[Instance] = []
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        names = _file_names(unit, program) if program is not None else {}
        for die in unit.iter_DIEs():
            if die.tag in ("DW_TAG_subprogram", "DW_TAG_inlined_subroutine"):
                ranges = _ranges(dwarf, unit, die)
                if ranges:
                    found.append(_instance(die, names, ranges))
    return found


def _instance(die: Any, names: dict[int, str], ranges: tuple[tuple[int, int], ...]) -> Instance:
    number, line = _attribute(die, "DW_AT_decl_file"), _attribute(die, "DW_AT_decl_line")
    return Instance(
        _text(die, "DW_AT_name"),
        names.get(number, NO_FILE),
        line or 0,
        _entry(die, ranges),
        ranges,
        die.tag == "DW_TAG_inlined_subroutine",
    )


def _entry(die: Any, ranges: tuple[tuple[int, int], ...]) -> int:
    entry = die.attributes.get("DW_AT_entry_pc")
    if entry is not None and entry.form.startswith("DW_FORM_addr"):
        return int(entry.value)
    return ranges[0][0] + (int(entry.value) if entry is not None else 0)


def _ranges(dwarf: Any, unit: Any, die: Any) -> tuple[tuple[int, int], ...]:
    if "DW_AT_low_pc" in die.attributes and "DW_AT_high_pc" in die.attributes:
        low, high = die.attributes["DW_AT_low_pc"].value, die.attributes["DW_AT_high_pc"]
        end = high.value if high.form.startswith("DW_FORM_addr") else low + high.value
        return ((low, end),) if end > low else ()
    if "DW_AT_ranges" not in die.attributes:
        return ()
    return tuple(_listed_ranges(dwarf, unit, die.attributes["DW_AT_ranges"]))


def _listed_ranges(dwarf: Any, unit: Any, attribute: Any) -> Iterator[tuple[int, int]]:
    low = unit.get_top_DIE().attributes.get("DW_AT_low_pc")
    base = low.value if low is not None else 0
    entries = dwarf.range_lists().get_range_list_at_offset(attribute.value, cu=unit)
    for entry in entries:
        if hasattr(entry, "base_address"):
            base = entry.base_address
            continue
        shift = 0 if getattr(entry, "is_absolute", False) else base
        if entry.end_offset > entry.begin_offset:
            yield entry.begin_offset + shift, entry.end_offset + shift


def _attribute(die: Any, name: str) -> Any:
    """Return an attribute's value, also where the entry only refers to its declaration."""
    if name in die.attributes:
        return die.attributes[name].value
    for reference in ("DW_AT_abstract_origin", "DW_AT_specification"):
        if reference in die.attributes:
            return _attribute(die.get_DIE_from_attribute(reference), name)
    return None


def _text(die: Any, name: str) -> str:
    value = _attribute(die, name)
    return os.fsdecode(value) if value else ""
