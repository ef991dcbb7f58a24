"""`read_labels`: what is right for each sample: a class, or values."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.base.arguments import demand_content
from covp.errors import UsageError
from covp.evaluation.data.files import read_array
from covp.evaluation.data.samples import SampleSource

Array = NDArray[Any]


def read_labels(path: Path, samples: SampleSource) -> Array:
    """Return the labels of samples, in their order.

    Args:
        path: of a .npy file, or of text with one line for each sample: a number, several numbers
            between commas, or for a folder of samples ``FILE,NUMBER`` in any order. A first line
            without a number is a heading.
        samples: that they are of.

    Returns:
        int64 (samples,) where each is a whole number, which is a class; else float64
        (samples, ...).

    Raises:
        UsageError: they cannot be read, or are not as many as there are samples.
    """
    if path.suffix.lower() == ".npy":
        found = read_array(path)
        if found.dtype.kind not in "biuf":
            raise UsageError(f"is {found.dtype}; labels are integers or floats", where=path)
    else:
        found = _of_text(path, samples)
    found = found.reshape(1) if not found.shape else found
    if len(found) != samples.count:
        raise UsageError(
            f"has {len(found):,} labels, {samples.path} has {samples.count:,} samples", where=path
        )
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.dtype.kind == "f":
        return found.astype(np.float64)
    if found.ndim != 1:
        raise UsageError(
            f"has the shape {found.shape}; labels of classes are one integer for each "
            "sample (numpy.argmax makes them of one-hot rows), target values are floats",
            where=path,
        )
    return found.astype(np.int64)


def _of_text(path: Path, samples: SampleSource) -> Array:
    try:
        demand_content(path)
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            lines = [(reader.line_num, [word.strip() for word in row]) for row in reader]
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror or error}", where=path) from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise UsageError(f"is not a text of numbers: {error}", where=path) from None
    rows = [(number, row) for number, row in lines if any(row)]
    if rows and _number(rows[0][1][-1]) is None:
        rows = rows[1:]  # a heading
    if not rows:
        raise UsageError("has no labels", where=path)
    if samples.files and all(len(row) == 2 for _, row in rows) and _number(rows[0][1][0]) is None:
        rows = _in_order(path, rows, samples.files)
    width = len(rows[0][1])
    values = []
    for number, row in rows:
        found = [_number(word) for word in row]
        if None in found or len(row) != width:
            what = f"{row[found.index(None)]!r:.40} is not a number" if None in found else ""
            raise UsageError(f"{path}:{number}: {what or f'{len(row)} numbers, not {width}'}")
        values.append(found)
    whole = all(isinstance(value, int) for row in values for value in row)
    if width == 1 and whole:
        return np.array([row[0] for row in values], np.int64)
    return np.array(values, np.float64)


def _in_order(
    path: Path, rows: Sequence[tuple[int, list[str]]], files: Sequence[Path]
) -> list[tuple[int, list[str]]]:
    """Return rows ``FILE,NUMBER`` in the order of the files."""
    by_name: dict[str, tuple[int, list[str]]] = {}
    for number, (name, word) in rows:
        if by_name.setdefault(name, (number, [word])) != (number, [word]):
            raise UsageError(f"{path}:{number}: {name!r:.80} has a label already")
    names = [file.name for file in files]
    missing = [name for name in names if name not in by_name]
    if missing:
        raise UsageError(f"has no label for {missing[0]}", where=path)
    more = by_name.keys() - set(names)
    if more:
        raise UsageError(f"names {min(more)!r:.80}, which is not a sample", where=path)
    return [by_name[name] for name in names]


def _number(word: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return None
