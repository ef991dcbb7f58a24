"""Printing: tables for people, JSON for programs, progress on terminals only."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click


def print_json(document: Any) -> None:
    """One JSON document on standard output."""
    click.echo(json.dumps(document, indent=2, allow_nan=False))


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], left: int = 1, title: str = ""
) -> None:
    """A table; the first ``left`` columns are text, the others numbers to the right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(
            column,
            justify="left" if index < left else "right",
            no_wrap=index < left,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(cell(value) for value in row))
    # in a pipe lines stay whole instead of being folded at 80 columns
    width = None if sys.stdout.isatty() else 200
    Console(width=width, highlight=False, markup=False).print(table)


def cell(value: object) -> str:
    """Numbers with thousands separators, what is not known as a dash."""
    if value is None:
        return "-"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)


@contextmanager
def progress(description: str, steps: int | None) -> Iterator[Any]:
    """Gives ``advance(text, steps)``; a bar on a terminal, nothing in a pipe.

    ``steps`` is None where their number is not known, or not yet.
    """
    if (steps is not None and steps < 2) or not sys.stderr.isatty():
        yield lambda text="", steps=None: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=steps)
        yield lambda text="", steps=steps: bar.update(
            task, total=steps, advance=1, description=text or description
        )
