"""Tables that fit a terminal: texts are folded, columns left out, numbers stay whole."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence

from covp.base.terminal import visible
from covp.cli.output import echo

_PIPE_WIDTH = 200
_NUMBER = re.compile(r"[<>~+-]?\d[\d,.]*( ?[%x]| [A-Za-z]{1,3}(/s)?)?|-|")
_GAP = 2  # between two columns
_LONGEST_WORD = 24  # longer ones, such as paths, may be broken


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    left: int = 1,
    title: str = "",
    drop: Sequence[str] = (),
) -> None:
    """A table as wide as the terminal, or 200 columns in a pipe.

    Where it is wider, headings and texts are folded at words; where that is not enough, columns
    are left out and named below.

    Args:
        columns: headings; the first column is always printed.
        rows: of as many cells.
        left: so many columns are text, the others numbers to the right.
        title: above the table.
        drop: headings in the order in which columns are left out; then the others from the right.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    title = visible(title)
    cells = [[cell(value) for value in row] for row in rows]
    width = output_width()
    shown, widths = fit(columns, cells, width, drop)
    table = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False)
    table.padding = (0, 1, 0, 0)
    for index, size in zip(shown, widths, strict=True):
        justify = "left" if index < left else "right"
        table.add_column(_folded(columns[index], size), justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for row in cells:
        table.add_row(*(_folded(row[i], size) for i, size in zip(shown, widths, strict=True)))
    Console(width=max(width, 20), highlight=False, markup=False).print(table)
    hidden = [name for index, name in enumerate(columns) if index not in shown]
    if hidden:
        text = f"not shown at {width} columns: {', '.join(hidden)}"
        echo(textwrap.fill(text, max(width, 20)))


def operator_cell(kind: str, name: str) -> str:
    """An operator's kind, with its name where the model gives it one: "CONV_2D /layer1/Conv"."""
    own = re.fullmatch(rf"{re.escape(kind.lower())}(_\d+)+", name)
    return kind if own else f"{kind} {name}"


def output_width() -> int:
    """The columns of the terminal; ``COLUMNS``, else 200, in a pipe."""
    if sys.stdout.isatty():
        return shutil.get_terminal_size((80, 24)).columns
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdigit() and 0 < len(columns) < 5 else _PIPE_WIDTH


def fit(
    columns: Sequence[str], rows: Sequence[Sequence[str]], width: int, drop: Sequence[str] = ()
) -> tuple[list[int], list[int]]:
    """The columns that are shown, and their widths."""
    shown = list(range(len(columns)))
    later = [name for name in reversed(columns[1:]) if name not in drop]
    leaving = [columns.index(name) for name in (*drop, *later) if name in columns]
    while True:
        widths = _widths([columns[i] for i in shown], [[row[i] for i in shown] for row in rows])
        room = width - _GAP * (len(shown) - 1) - 2
        chosen = _shrunk(widths, room)
        if chosen is not None or not leaving:
            return shown, chosen or [least for least, _, _ in widths]
        shown.remove(leaving.pop(0))


def _widths(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[tuple[int, int, int]]:
    """Of each column: the least width, that of its cells on one line, that of the heading too."""
    found = []
    for index, heading in enumerate(columns):
        cells = [row[index] for row in rows]
        longest = max(map(len, cells), default=0)
        words = max(map(len, heading.split()), default=0)
        is_number = all(_NUMBER.fullmatch(text) for text in cells)
        foldable = not is_number and index > 0
        word = max((len(word) for text in cells for word in text.split()), default=0)
        least = max(words, min(word, _LONGEST_WORD) if foldable else longest)
        found.append((least, max(words, longest), max(len(heading), longest)))
    return found


def _shrunk(widths: Sequence[tuple[int, int, int]], room: int) -> list[int] | None:
    """Widths that fit: headings are folded first, then texts, the widest first; or None."""
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


def _folded(text: str, width: int) -> str:
    return "\n".join(textwrap.wrap(text, width)) if len(text) > width else text


def cell(value: object) -> str:
    """Numbers with thousands separators, what is not known as a dash."""
    if value is None:
        return "-"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return visible(str(value))
