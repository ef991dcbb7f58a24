"""Options for semihosting, and the host that they describe."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from covp.device.semihosting import Streams

where = click.option(
    "--semihosting",
    "where",
    type=click.Choice(["gdb", "terminal", "off"]),
    default="gdb",
    show_default=True,
    help="Answer the program's semihosting calls; its output goes to GDB's console or to this "
    "terminal, input comes from this terminal. off: such a call is a breakpoint.",
)
files = click.option(
    "--files",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The one folder in which the program may open files, by semihosting; default: none.",
)
arguments = click.option(
    "--arguments", default="", help="The program's command line, by semihosting."
)


def terminal() -> Streams:
    """Return this terminal as a program's console."""
    stdin, stdout, stderr = sys.stdin.buffer, sys.stdout.buffer, sys.stderr.buffer
    return Streams(stdin, stdout, stderr)
