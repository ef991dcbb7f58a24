"""Files that are written as a whole, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from covp.base.temporary import temporary_folder
from covp.errors import CovpError, UsageError


@contextmanager
def written_whole(path: str | Path) -> Iterator[TextIO]:
    """Yield a text file that is put at its place at the end of the context.

    Raises:
        CovpError: it cannot be written.
    """
    target = Path(path)
    demand_writable(target)
    try:
        with temporary_folder("timeline", target.parent) as folder:
            part = Path(folder) / target.name
            with part.open("w", encoding="utf-8") as file:
                yield file
            os.replace(part, target)
    except OSError as error:
        raise CovpError(_failure(target, error)) from None


def demand_writable(path: str | Path) -> None:
    """Before long work. Raises UsageError: the file cannot be written."""
    target = Path(path)
    if target.exists() and not target.is_file():
        raise UsageError(f"{target}: cannot be written: it is not a regular file")
    try:
        with temporary_folder("timeline", target.parent):
            pass
    except OSError as error:
        raise UsageError(_failure(target, error)) from None


def _failure(target: Path, error: OSError) -> str:
    return f"{target}: cannot be written: {error.strerror or error}"
