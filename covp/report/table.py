"""`Table`: sortable and copyable in the page; its cells keep the values beside the text shown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

Value = str | int | float | None
_WIDE = 50
"""Letters of a text that is shown in several lines."""


@dataclass(frozen=True)
class Cell:
    """A value that is not shown as its column says.

    Attributes:
        value: that the table is sorted by, and that is copied.
        text: shown instead.
        title: shown when the pointer rests on it.
    """

    value: Value
    text: str
    title: str = ""


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        title: in the head.
        unit: below the title, e.g. "bytes".
        format: of numbers, as in a format string, or "~3" for three significant digits without an
            exponent; empty for text, which is aligned left.
        note: shown when the pointer rests on the title.
        bar: each number stands on a bar of its share of the greatest.
    """

    title: str
    unit: str = ""
    format: str = ""
    note: str = ""
    bar: bool = False


@dataclass(frozen=True)
class Table:
    """Rows below a head, which the reader sorts by any column and copies as tab separated values.

    Attributes:
        title: above it.
        columns: from left to right.
        rows: one value or `Cell` per column; None is shown as a dash. Any text, it is escaped.
        total: stays the last row, however the others are sorted; empty: none.
        caption: plain text below.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Value | Cell]]
    total: Sequence[Value | Cell] = ()
    caption: str = ""

    def html(self) -> str:
        """The table with its button and title."""
        head = "".join(_head(column) for column in self.columns)
        most = [_greatest(self.rows, i) if c.bar else 0.0 for i, c in enumerate(self.columns)]
        body = "".join(self._row(row, most) for row in self.rows)
        plain = [0.0] * len(self.columns)
        foot = f"<tfoot>{self._row(self.total, plain)}</tfoot>" if self.total else ""
        caption = f"<p class=caption>{escape(self.caption)}</p>" if self.caption else ""
        return (
            f"<div class=table><div class=tablehead><h3>{escape(self.title)}</h3>"
            '<button type=button class=copy title="Copy the table as tab separated values">Copy'
            "</button></div>"
            f"<div class=scroll tabindex=0><table><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody>{foot}</table></div>{caption}</div>"
        )

    def _row(self, row: Sequence[Value | Cell], most: Sequence[float]) -> str:
        cells = zip(self.columns, row, most, strict=True)
        return f"<tr>{''.join(_cell(*cell) for cell in cells)}</tr>"


def _head(column: Column) -> str:
    kind = " class=n" if column.format else ""
    note = f' title="{escape(column.note)}"' if column.note else ""
    unit = f"<small>{escape(column.unit)}</small>" if column.unit else ""
    title = f"<span>{escape(column.title)}</span>"
    return f"<th scope=col{kind}{note}><button type=button>{title}{unit}</button></th>"


def _cell(column: Column, value: Value | Cell, most: float) -> str:
    title = ""
    if isinstance(value, Cell):
        text, title, value = value.text, value.title, value.value
    else:
        text = shown(value, column.format)
    raw = "" if value is None else str(value)
    attributes = f' data-v="{escape(raw)}"' if raw != text else ""
    attributes += f' title="{escape(title)}"' if title else ""
    kinds = "n" if column.format else "w" if len(text) > _WIDE else ""
    if most and isinstance(value, (int, float)):
        kinds += " bar"
        attributes += f' style="--part:{100 * value / most:.1f}%"'
    attributes += f' class="{kinds}"' if kinds else ""
    return f"<td{attributes}>{escape(text)}</td>"


def shown(value: Value, form: str) -> str:
    """The text of a value: a number in the format ``form``, None as a dash."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    return significant(value, int(form[1:])) if form.startswith("~") else format(value, form)


def significant(value: float, digits: int) -> str:
    """A number with separators of thousands and at least so many digits: 12,345.7 or 0.00123."""
    if not value or not math.isfinite(value):
        return f"{value:g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}" if decimals < 10 else f"{value:.{digits - 1}e}"


def _greatest(rows: Sequence[Sequence[Value | Cell]], column: int) -> float:
    return max(_numbers(rows, column), default=0.0)


def _numbers(rows: Sequence[Sequence[Value | Cell]], column: int) -> Iterator[float]:
    for row in rows:
        cell = row[column]
        value = cell.value if isinstance(cell, Cell) else cell
        if isinstance(value, (int, float)):
            yield value
