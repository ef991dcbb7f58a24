"""Tables of primitive components as Accelergy's table plug-ins have them: one CSV per class.

Two forms are read: `accelergy-table-based-plug-ins` (a column for each attribute, ``action``,
``energy`` in pJ, ``area`` in um2) and `accelergy-aladdin-plug-in` (``latency(ns)``,
``dynamic energy(pJ)``, ``area(um^2)``). A row counts if it agrees with the component in every
attribute that both have. Nothing is scaled: a width that no row has is an error.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from covp.errors import AcceleratorError

_ENERGY = ("energy", "dynamic energy(pJ)")
_AREA = ("area", "area(um^2)")
_LATENCY, _DEFAULT_LATENCY = "latency(ns)", "5ns"
"""Accelergy's plug-in for Aladdin's tables takes 5 ns where a component states no latency."""
_NO_ATTRIBUTES = {*_ENERGY, *_AREA, "action", "comment", "idle energy(pJ)", "leakage power(mW)"}
_UNITS = {"fs": 1e-6, "ps": 1e-3, "ns": 1.0, "us": 1e3, "nm": 1.0, "um": 1e3, "": 1.0}


@dataclass(frozen=True)
class ClassTable:
    """The table of one class.

    Attributes:
        path: of the file.
        rows: column to text, of each row.
    """

    path: Path
    rows: tuple[Mapping[str, str], ...]

    def energy(
        self, attributes: Mapping[str, Any], action: str, arguments: Mapping[str, Any]
    ) -> float:
        """Of one action, pJ.

        Raises:
            AcceleratorError: no row is of it, or several that differ.
        """
        wanted = {**attributes, **arguments}
        rows = [row for row in self._of(wanted) if row.get("action", action) == action]
        return self._figure(rows, _ENERGY, f"action {action}", wanted)

    def area(self, attributes: Mapping[str, Any]) -> float:
        """Square micrometres. Raises AcceleratorError: likewise."""
        return self._figure(self._of(attributes), _AREA, "the area", attributes)

    def _of(self, attributes: Mapping[str, Any]) -> list[Mapping[str, str]]:
        latency = attributes.get("latency", _DEFAULT_LATENCY)
        wanted = {**attributes, _LATENCY: latency}
        return [
            row
            for row in self.rows
            if all(
                same(text, wanted[name]) for name, text in row.items() if self._tells(name, wanted)
            )
        ]

    def _tells(self, column: str, wanted: Mapping[str, Any]) -> bool:
        return column in wanted and column not in _NO_ATTRIBUTES

    def _figure(
        self,
        rows: Sequence[Mapping[str, str]],
        columns: Sequence[str],
        what: str,
        attributes: Mapping[str, Any],
    ) -> float:
        stated = (
            ", ".join(f"{name}={value}" for name, value in attributes.items()) or "no attributes"
        )
        found = {row[name] for row in rows for name in columns if row.get(name)}
        if len(found) != 1:
            why = "no row is" if not found else f"{len(found)} rows that differ are"
            raise AcceleratorError(f"{self.path}: {why} of {what} with {stated}")
        return number(found.pop(), f"{self.path}: {columns[0]}")


def read_table(path: Path) -> ClassTable:
    """A CSV with a head.

    Raises:
        AcceleratorError: it cannot be read, or has no column of energy or area.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        rows = [row for row in csv.DictReader(text.splitlines(), strict=True) if any(row.values())]
    except OSError as error:
        raise AcceleratorError(f"{path}: cannot be read: {error.strerror}") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise AcceleratorError(f"{path}: is no CSV: {error}") from None
    if not rows or not {*rows[0]} & {*_ENERGY, *_AREA}:
        columns = ", ".join((*_ENERGY, *_AREA))
        raise AcceleratorError(f"{path}: has no rows, or no column of {columns}")
    if any(None in row or None in row.values() for row in rows):
        raise AcceleratorError(f"{path}: a row has not as many cells as the head")
    stripped = ({name.strip(): cell.strip() for name, cell in row.items()} for row in rows)
    return ClassTable(path, tuple(stripped))


def number(value: Any, where: str) -> float:
    """A finite figure of 0 and more. Raises AcceleratorError: it is none."""
    try:
        figure = float(value)
    except (TypeError, ValueError):
        figure = math.nan
    if isinstance(value, bool) or not 0 <= figure < 1e12:
        raise AcceleratorError(f"{where}: {value!r:.60} is no number of 0 and more")
    return figure


def same(one: Any, other: Any) -> bool:
    """Whether two values of an attribute are equal: numbers, with a unit (5ns) or none, or text."""
    first, second = _quantity(one), _quantity(other)
    if first is None or second is None:
        return str(one).strip() == str(other).strip()
    return math.isclose(first, second, rel_tol=1e-9)


def _quantity(value: Any) -> float | None:
    match = re.fullmatch(r"\s*([-+.\deE]+?)\s*([fpnu][sm]|)\s*", str(value))
    try:
        return float(match[1]) * _UNITS[match[2]] if match else None
    except (ValueError, KeyError):
        return None
