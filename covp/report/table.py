"""`Table`: values under headings, rendered as HTML for pages, as Markdown, and as text.

In a page a table is sorted and copied, so its cells keep the values beside the text that is shown.
The text for terminals, which has to fit them, is made in `covp.report.text_table`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from covp.base.figure import FigureDescription, number_text
from covp.errors import printable

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
        unit: in the head too, e.g. "bytes".
        format: of numbers, see `number_text`; empty for text, which is aligned left.
        note: shown when the pointer rests on the title.
        bar: each number stands on a bar of its share of the greatest.
    """

    title: str
    unit: str = ""
    format: str = ""
    note: str = ""
    bar: bool = False

    @property
    def heading(self) -> str:
        """The title with the unit in parentheses, on one line."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


def figure_column(figure: FigureDescription, bar: bool = False) -> Column:
    """Return the column of a figure, whose cells are `figure_cell`."""
    unit = figure.shown_unit or figure.unit
    return Column(figure.title, unit, figure.format, bar=bar)


def figure_cell(figure: FigureDescription, value: float | None) -> float | None:
    """Return a figure in the unit that it is shown in; None where it is not known."""
    return value if value is None or figure.scale == 1 else value * figure.scale


def texts(*titles: str) -> list[Column]:
    """Return columns of text."""
    return [Column(title) for title in titles]


def numbers(*titles: str) -> list[Column]:
    """Return columns of numbers with separators of thousands, or of texts that are numbers."""
    return [Column(title, format=",") for title in titles]


@dataclass(frozen=True)
class Table:
    """Rows below a head.

    Attributes:
        title: above it; empty: none.
        columns: from left to right.
        rows: one value or `Cell` per column; None is shown as a dash. Any text, it is escaped.
        total: stays the last row, however the others are sorted; empty: none.
        caption: plain text below.
        drop: headings in the order in which a narrow terminal leaves columns out; then the others
            from the right.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Value | Cell]]
    total: Sequence[Value | Cell] = ()
    caption: str = ""
    drop: Sequence[str] = ()

    def texts(self, unknown: str = "–") -> list[list[str]]:
        """Return the cells of all rows and of the total as they are shown.

        Args:
            unknown: shown for None.
        """
        formats = [column.format for column in self.columns]
        rows = [*self.rows, self.total] if self.total else self.rows
        return [
            [shown(one, form, unknown) for one, form in zip(row, formats, strict=True)]
            for row in rows
        ]

    def markdown(self) -> str:
        """Return the table in Markdown, without its title and caption."""
        lines = [
            [column.heading for column in self.columns],
            ["---:" if column.format else "---" for column in self.columns],
            *self.texts("-"),
        ]
        return "".join(f"| {' | '.join(map(escape_markdown, line))} |\n" for line in lines)

    def html(self) -> str:
        """Return the table with its button and title, to be sorted and copied in a page."""
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
    text, title = shown(value, column.format), ""
    if isinstance(value, Cell):
        title, value = value.title, value.value
    raw = "" if value is None else str(value)
    attributes = f' data-v="{escape(raw)}"' if raw != text else ""
    attributes += f' title="{escape(title)}"' if title else ""
    kinds = "n" if column.format else "w" if len(text) > _WIDE else ""
    if most and isinstance(value, (int, float)):
        kinds += " bar"
        attributes += f' style="--part:{100 * value / most:.1f}%"'
    attributes += f' class="{kinds}"' if kinds else ""
    return f"<td{attributes}>{escape(text)}</td>"


def shown(value: Value | Cell, form: str, unknown: str = "–") -> str:
    """Return the text of a value.

    Args:
        value: of a cell.
        form: of numbers, as of a `Column`.
        unknown: shown for None.
    """
    if isinstance(value, Cell):
        return value.text
    if value is None:
        return unknown
    if isinstance(value, str):
        return value
    return number_text(value, form)


def escape_markdown(text: str) -> str:
    """Return text that cannot leave its cell or line of Markdown."""
    return printable(text).replace("\\", "\\\\").replace("|", "\\|")


def _greatest(rows: Sequence[Sequence[Value | Cell]], column: int) -> float:
    return max(_numbers(rows, column), default=0.0)


def _numbers(rows: Sequence[Sequence[Value | Cell]], column: int) -> Iterator[float]:
    for row in rows:
        cell = row[column]
        value = cell.value if isinstance(cell, Cell) else cell
        if isinstance(value, (int, float)):
            yield value
