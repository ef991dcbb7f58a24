"""Designs, the points of a sweep: set-up, parameters, what they share with others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from covp.report.objectives import Row

CORE_ALONE = "core alone"
FACTORS = {
    "model": "Model",
    "platform": "Platform",
    "setup": "Accelerators",
    "toolchain": "Toolchain",
    "optimize": "Kernels for",
}
"""What every point has beside its parameters, with titles."""


def setup(row: Row) -> str:
    """Return the accelerators of a row as text."""
    return " + ".join(row.get("accelerators") or ()) or CORE_ALONE


def factor(row: Row, name: str) -> Any:
    """Return a value by which points differ, one of `FACTORS` or a parameter, or None."""
    if name == "setup":
        return setup(row)
    return row.get(name) if name in FACTORS else (row.get("vary") or {}).get(name)


def parameters(rows: Sequence[Row]) -> list[str]:
    """Return the names in ``vary``, in the order in which they come first."""
    return list(dict.fromkeys(name for row in rows for name in row.get("vary") or {}))


def identity(row: Row) -> tuple[Any, ...]:
    """Return what a point is without versions; the same in another sweep and any order."""
    vary = row.get("vary") or {}
    own = tuple(factor(row, name) or "" for name in FACTORS)
    return (*own, tuple(sorted((name, str(value)) for name, value in vary.items())))


def values_text(row: Row) -> str:
    """Return the varied parameters of a row in one line."""
    return ", ".join(f"{name}={value}" for name, value in (row.get("vary") or {}).items())


def text(row: Row) -> str:
    """Return the point in one line: platform, set-up and parameters, without the model."""
    return ", ".join(filter(None, (row.get("platform"), setup(row), values_text(row))))


def shorten_names(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return rows that name models, platforms and accelerators without the folders of their files.

    Two files of one name keep their folders.
    """
    copies = [dict(row) for row in rows]
    for name in ("model", "platform"):
        shorts = _short_names(str(row[name]) for row in copies)
        for row in copies:
            row[name] = shorts[str(row[name])]
    shorts = _short_names(unit for row in copies for unit in row.get("accelerators") or ())
    for row in copies:
        row["accelerators"] = [shorts[unit] for unit in row.get("accelerators") or ()]
    return copies


def _short_names(names: Iterable[str]) -> dict[str, str]:
    whole = dict.fromkeys(names)
    short = {name: name.rpartition("/")[2] for name in whole}
    seen = Counter(short.values())
    return {name: short[name] if seen[short[name]] == 1 else name for name in whole}


def sort_rows(rows: Sequence[Row]) -> list[Row]:
    """Return rows by what they are, so that every report of the same ones is the same."""

    def key(row: Row) -> Any:
        vary = row.get("vary") or {}
        own = tuple(str(factor(row, name) or "") for name in FACTORS)
        return (*own, tuple(sorted((name, *_sortable(value)) for name, value in vary.items())))

    return sorted(rows, key=key)


def _sortable(value: Any) -> tuple[int, float, str]:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return (0, float(value), "") if number else (1, 0.0, str(value))
