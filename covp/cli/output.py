"""Printing: JSON, warnings, progress on terminals only; tables are in `covp.cli.tables`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from covp.base.terminal import visible


def echo(text: str = "", err: bool = False) -> None:
    """Print a text, whose control characters are shown; nothing else of covp prints to a terminal.

    Args:
        text: of one or more lines.
        err: on standard error.
    """
    click.echo(visible(text), err=err)


def print_json(document: Any) -> None:
    """One JSON document on standard output."""
    echo(json.dumps(document, indent=2, allow_nan=False))


def warn(warnings: Iterable[str]) -> None:
    """One line each on standard error; a text that comes again is printed once."""
    for warning in dict.fromkeys(warnings):
        echo(f"warning: {warning}", err=True)


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
            task, total=steps, advance=1, description=visible(text or description)
        )
