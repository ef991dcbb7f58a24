"""`runs_of`: the runs in JSON files of ``covp run``, ``compare`` and ``compare -p``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from covp.base.arguments import read_file
from covp.errors import UsageError

R = TypeVar("R", bound=msgspec.Struct)


class _Row(msgspec.Struct, Generic[R]):
    cpu: R
    accelerated: R


class _Compare(msgspec.Struct, Generic[R], tag_field="schema", tag="covp.compare/1"):
    rows: list[_Row[R]]


class _Trial(msgspec.Struct, Generic[R]):
    run: R | None


class _Survey(msgspec.Struct, Generic[R], tag_field="schema", tag="covp.survey/1"):
    rows: list[_Trial[R]]


def runs_of(path: Path, kind: type[R]) -> Iterator[R]:
    """Yield the runs of a file: of one document, or of a list of such.

    Args:
        path: of the file.
        kind: the fields of a run that are wanted, tagged as ``covp.run/1``.

    Raises:
        UsageError: the file cannot be read, or is no such document.
    """
    document: Any = kind | _Compare[kind] | _Survey[kind]  # type: ignore[valid-type]
    try:
        read = msgspec.json.decode(read_file(path), type=document | list[document])
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path}: not the JSON of covp run or covp compare, or a list of such: {error}"
        ) from None
    for one in read if isinstance(read, list) else [read]:
        if isinstance(one, _Compare):
            for row in one.rows:
                yield from (row.cpu, row.accelerated)
        elif isinstance(one, _Survey):
            yield from (trial.run for trial in one.rows if trial.run is not None)
        else:
            yield one
