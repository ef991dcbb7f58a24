"""The standard streams at the start and the end of a command."""

from __future__ import annotations

import contextlib
import os
import sys


def occupy_closed_streams() -> None:
    """Open a failing stream for each standard stream that a shell closed (``covp run ... >&-``).

    Else the next file that is opened would take its number, and get what is printed.
    """
    for number, flags in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_RDWR)):
        with contextlib.suppress(OSError):
            os.fstat(number)
            continue
        os.open(os.devnull, flags)  # takes the lowest free number
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115


def drop_output() -> None:
    """Forget what could not be printed, so that the interpreter does not try again at exit."""
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115
