"""Tables as text that fits a terminal: texts are folded, columns left out, numbers stay whole."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence

from covp.base.terminal import visible
from covp.report.table import Table

_PIPE_WIDTH = 200
_NUMBER = re.compile(r"[<>~+-]?\d[\d,.]*( ?[%x]| [A-Za-z]{1,3}(/s)?)?|-|")
_GAP = 2  # between two columns
_LONGEST_WORD = 24  # longer ones, such as paths, may be broken
_MOST_LINES = 3
_RAGGED = 1.2
"""Factor of a folded text's width: words leave the ends of lines empty."""


def print_text(table: Table, width: int | None = None) -> list[str]:
    """Print a table as text on standard output, in letters that its encoding has.

    Where it is wider, headings and texts are folded at words; where that is not enough, columns
    are left out.

    Args:
        table: whose first column is always shown.
        width: columns of the terminal; None: a pipe, 200.

    Returns:
        Lines to be printed below: which columns were left out, and the caption.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table as Lines

    width = width or _PIPE_WIDTH
    headings = [column.heading for column in table.columns]
    cells = [[visible(text) for text in row] for row in table.texts("-")]
    title = visible(table.title)
    shown, widths = fit(headings, cells, width, table.drop)
    lines = Lines(box=box.SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False)
    lines.padding = (0, 1, 0, 0)
    for index, size in zip(shown, widths, strict=True):
        justify = "right" if table.columns[index].format else "left"
        lines.add_column(_fold(headings[index], size), justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for row in cells:
        lines.add_row(*(_fold(row[i], size) for i, size in zip(shown, widths, strict=True)))
    Console(width=width, highlight=False, markup=False).print(lines)
    hidden = [name for index, name in enumerate(headings) if index not in shown]
    notes = [f"not shown at {width} columns: {', '.join(hidden)}"] if hidden else []
    return [*notes, table.caption] if table.caption else notes


def fit(
    columns: Sequence[str], rows: Sequence[Sequence[str]], width: int, drop: Sequence[str] = ()
) -> tuple[list[int], list[int]]:
    """Return the columns that are shown, and their widths.

    Those in ``drop`` are left out before a text is folded to more than three lines, the others
    only where no folding helps.
    """
    shown = list(range(len(columns)))
    leaving = [columns.index(name) for name in drop if name in columns]
    rest = [index for index in reversed(range(1, len(columns))) if index not in leaving]
    room = width - 2
    for lines, names in ((_MOST_LINES, leaving), (None, rest)):
        while True:
            widths = _widths(columns, rows, shown, lines)
            chosen = _shrink(widths, room - _GAP * (len(shown) - 1))
            if chosen is not None or (lines is None and not names):
                return shown, chosen or [least for least, _, _ in widths]
            if not names:
                break
            shown.remove(names.pop(0))
    raise AssertionError("the second pass returns")


def _widths(
    columns: Sequence[str], rows: Sequence[Sequence[str]], shown: Sequence[int], lines: int | None
) -> list[tuple[int, int, int]]:
    """Return the widths of each column: least, cells on one line, heading on that line too.

    Args:
        columns, rows: as for `fit`.
        shown: which.
        lines: that a text may be folded to; None: any number.
    """
    found = []
    for index in shown:
        heading, cells = columns[index], [row[index] for row in rows]
        longest = max(map(len, cells), default=0)
        words = max(map(len, heading.split()), default=0)
        is_number = all(_NUMBER.fullmatch(text) for text in cells)
        foldable = not is_number and index > 0
        word = max((len(word) for text in cells for word in text.split()), default=0)
        least = min(word, _LONGEST_WORD) if foldable else longest
        if foldable and lines is not None:
            least = max(least, math.ceil(_RAGGED * longest / lines))
        found.append((max(words, least), max(words, longest), max(len(heading), longest)))
    return found


def _shrink(widths: Sequence[tuple[int, int, int]], room: int) -> list[int] | None:
    """Return widths that fit: headings are folded first, then texts, the widest first; or None."""
    for step in (2, 1):
        chosen = [width[step] for width in widths]
        if sum(chosen) <= room:
            return chosen
    least = [width[0] for width in widths]
    if sum(least) > room:
        return None
    while sum(chosen) > room:
        slack = [size - low for size, low in zip(chosen, least, strict=True)]
        chosen[slack.index(max(slack))] -= 1
    return chosen


def _fold(text: str, width: int) -> str:
    return "\n".join(textwrap.wrap(text, width)) if len(text) > width else text
