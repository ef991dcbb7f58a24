"""Printing: text, tables, JSON, warnings, progress on terminals only."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import click
import msgspec

from covp.base.terminal import visible
from covp.report.table import Table
from covp.report.text_table import print_text

_TO_COPY = re.compile(r"\s*(again: )?covp \S|\|")
"""Pattern of lines that begin with a command, or are a row of a Markdown table."""


def echo(text: str = "", err: bool = False) -> None:
    """Print a text, whose control characters are shown; nothing else of covp prints to a terminal.

    Lines that are longer than the terminal is wide are folded at words. What is there to be copied
    (commands, Markdown's tables) stays whole, and so does what goes into a pipe.

    Args:
        text: of one or more lines.
        err: on standard error.
    """
    width = terminal_width(err)
    lines = visible(text).split("\n")
    click.echo("\n".join(_fold(line, width) for line in lines) if width else visible(text), err=err)


def print_code(text: str) -> None:
    """Print lines that are code, or like it: never folded.

    Args:
        text: of one or more lines.
    """
    click.echo(visible(text.rstrip("\n")))


def print_table(table: Table) -> None:
    """Print a table as wide as the terminal, or 200 columns in a pipe."""
    for line in print_text(table, terminal_width()):
        echo(line)


def terminal_width(err: bool = False) -> int | None:
    """Return the columns of the terminal that a stream goes to; None in a pipe.

    Standard output in a pipe has those of ``COLUMNS``, where that is set.

    Args:
        err: of standard error.
    """
    if (sys.stderr if err else sys.stdout).isatty():
        return max(20, shutil.get_terminal_size((80, 24)).columns)
    columns = "" if err else os.environ.get("COLUMNS", "")
    return max(20, int(columns)) if columns.isdigit() and 0 < len(columns) < 5 else None


def _fold(line: str, width: int) -> str:
    if len(line) <= width or _TO_COPY.match(line):
        return line
    indent = line[: len(line) - len(line.lstrip())]
    lines = textwrap.wrap(
        line.strip(),
        width,
        initial_indent=indent,
        subsequent_indent=indent + "    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines)


def print_json(document: Any) -> None:
    """Print one JSON document, of structures or of plain values, on standard output."""
    plain = msgspec.to_builtins(document, str_keys=True)
    click.echo(json.dumps(plain, indent=2, allow_nan=False))


def warn(warnings: Iterable[str]) -> None:
    """Print one line each on standard error; a repeated text is printed once."""
    for warning in dict.fromkeys(warnings):
        echo(f"warning: {warning}", err=True)


@contextmanager
def progress(description: str, steps: int | None) -> Iterator[Any]:
    """Yield ``advance(text, steps)``; a bar on a terminal, nothing in a pipe.

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
            task, total=steps, advance=1, description=visible(text or description)
        )
