"""Rows as text: HTML tables for notebooks, cells of CSV files that spreadsheets open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]], text_columns: int = 1) -> str:
    """Return an HTML table; the columns after the first ``text_columns`` are aligned right.

    Args:
        head: the titles of the columns.
        rows: the cells, as many in each row as there are titles; any text, it is escaped.
        text_columns: how many columns hold text.
    """

    def row(cells: Sequence[str], tag: str) -> str:
        sides = ["left" if i < text_columns else "right" for i in range(len(cells))]
        return "".join(
            f'<{tag} style="text-align: {side}">{escape(cell)}</{tag}>'
            for side, cell in zip(sides, cells, strict=True)
        )

    body = "".join(f"<tr>{row(cells, 'td')}</tr>" for cells in rows)
    return f"<table><thead><tr>{row(head, 'th')}</tr></thead><tbody>{body}</tbody></table>"


def csv_cell(value: object) -> object:
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
