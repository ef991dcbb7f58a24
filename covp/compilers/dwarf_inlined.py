"""The calls that a compiler inlined at an instruction, out of an ELF file's debug information.

Source: DWARF 5, sections 2.17 (code addresses and ranges) and 3.3.8 (inlined subroutines).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from covp.errors import printable

_SCOPES = ("DW_TAG_subprogram", "DW_TAG_inlined_subroutine", "DW_TAG_lexical_block")


def inlined_calls(dwarf: Any, address: int) -> list[tuple[str, str]]:
    """(function, "file.c:12" of its call) of each inlined call at ``address``, innermost first.

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
    """The functions and blocks around ``address``, outermost first."""
    for child in die.iter_children():
        if child.tag in _SCOPES and _holds(dwarf, child, address):
            yield child
            yield from _scopes(dwarf, child, address)
            return


def _holds(dwarf: Any, die: Any, address: int) -> bool:
    return any(start <= address < end for start, end in _ranges(dwarf, die))


def _ranges(dwarf: Any, die: Any) -> Iterator[tuple[int, int]]:
    """The (start, end) of a scope's code; none of one that has no code."""
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
    """Of the function that was inlined; the text of a nameless one is "?"."""
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
    """The unit's file numbers with their names."""
    program = dwarf.line_program_for_CU(unit)
    if program is None:
        return {}
    first = 0 if program.header.version >= 5 else 1
    names = (PurePath(printable(entry.name)).name for entry in program["file_entry"])
    return dict(enumerate(names, first))


def _line(die: Any, files: dict[int, str]) -> str:
    """Of the call; empty where it is not known."""
    file, line = die.attributes.get("DW_AT_call_file"), die.attributes.get("DW_AT_call_line")
    if file is None or line is None or file.value not in files:
        return ""
    return f"{files[file.value]}:{line.value}"
