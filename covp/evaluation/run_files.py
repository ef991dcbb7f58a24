"""`read_runs`: the runs in JSON files of ``covp run``, ``compare`` and ``compare -p``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from covp.base.arguments import read_file
from covp.errors import UsageError
from covp.evaluation.documents import Compare, Run, Survey

_Document = Run | Compare | Survey


def read_runs(path: Path) -> list[Run]:
    """Return the runs of a file: of one document, or of a list of such.

    Args:
        path: of the file.

    Raises:
        UsageError: the file cannot be read, or is no such document.
    """
    try:
        read = msgspec.json.decode(read_file(path), type=_Document | list[_Document])
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=path) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise UsageError(
            f"not the JSON of covp run or covp compare, or a list of such: {error}", where=path
        ) from None
    documents = read if isinstance(read, list) else [read]
    return [run for document in documents for run in _runs(document)]


def _runs(document: _Document) -> Iterator[Run]:
    if isinstance(document, Compare):
        for row in document.rows:
            yield from (row.cpu, row.accelerated)
    elif isinstance(document, Survey):
        yield from (row.run for row in document.rows if row.run is not None)
    else:
        yield document
