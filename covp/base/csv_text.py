"""Text of users in CSV files that spreadsheets open."""

from __future__ import annotations

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def cell(value: object) -> object:
    """Return a value as a spreadsheet shows it instead of computing it.

    Names of tensors and layers come from a model's file, and a spreadsheet executes a cell that
    begins as a formula does (OWASP, CSV Injection): such texts get an apostrophe before them.

    Args:
        value: of a cell; numbers, also as text, stay as they are.
    """
    if not isinstance(value, str) or not value.startswith(_FORMULA):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value
