"""Registers that functions save, by instruction: the call frame information of an ELF file.

Source: DWARF 4, section 6.4 ("Call Frame Information"). Sections .debug_frame, which compilers
write with ``-g`` although covp's code has no unwind tables of its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FrameRule:
    """The places of the caller's registers at one instruction of a function.

    The canonical frame address (CFA) is the caller's stack pointer before the call.

    Attributes:
        base: DWARF number of the register that the CFA is counted from.
        offset: the CFA less that register, in bytes.
        saved: DWARF number of a saved register to the place of its value, less the CFA; None
            where its value is lost.
    """

    base: int
    offset: int
    saved: Mapping[int, int | None]


class FrameTable:
    """The frame rules of one ELF file.

    Args:
        entries: first address, end and pyelftools' entry of each function.
    """

    def __init__(self, entries: Sequence[tuple[int, int, Any]] = ()) -> None:
        self._entries = sorted(entries, key=lambda entry: entry[:2])
        self._rows: dict[int, list[dict[Any, Any]]] = {}

    @classmethod
    def of(cls, dwarf: Any, functions: Sequence[tuple[int, int, str]]) -> FrameTable:
        """Return the table of a file.

        Args:
            dwarf: pyelftools' ``DWARFInfo``, or None.
            functions: (start, end, name), by address. Entries of functions that the linker dropped
                are left in the section, at address 0: they are recognized by their length.
        """
        if dwarf is None or not dwarf.has_CFI():
            return cls()
        entries = []
        lengths = {start: end - start for start, end, _ in functions}
        for entry in dwarf.CFI_entries():
            if "initial_location" not in entry.header:
                continue  # what several functions have in common
            start, size = entry.header["initial_location"], entry.header["address_range"]
            if start or lengths.get(0) == size:
                entries.append((start, start + size, entry))
        return cls(entries)

    def rule(self, address: int) -> FrameRule | None:
        """Return the rule at an instruction; None where nothing, or nothing simple, is known."""
        position = bisect_right(self._entries, address, key=lambda entry: entry[0]) - 1
        if position < 0 or address >= self._entries[position][1]:
            return None
        if position not in self._rows:
            self._rows[position] = self._entries[position][2].get_decoded().table
        row = next((r for r in reversed(self._rows[position]) if r["pc"] <= address), None)
        return None if row is None else _rule(row)


def _rule(row: Mapping[Any, Any]) -> FrameRule | None:
    cfa = row["cfa"]
    if cfa.reg is None:
        return None  # an expression
    saved: dict[int, int | None] = {}
    for register, rule in row.items():
        if isinstance(register, int) and rule.type != "SAME_VALUE":
            saved[register] = rule.arg if rule.type == "OFFSET" else None
    return FrameRule(cfa.reg, cfa.offset, saved)
