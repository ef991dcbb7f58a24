"""Rows as a table: JSON, CSV, Parquet, pandas."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from covp.base.dependencies import load_extra
from covp.base.table_text import csv_cell
from covp.errors import CovpError
from covp.exploration.sweep.constraints import Constraint, is_feasible
from covp.exploration.sweep.points import Row

if TYPE_CHECKING:
    import pandas

_TOGETHER = " + "
"""Between the accelerators of a set-up."""


def record(row: Row, constraints: Sequence[Constraint] = ()) -> dict[str, Any]:
    """Return a row as JSON.

    Args:
        row: with or without figures.
        constraints: that it has to keep to be ``feasible``.
    """
    found: dict[str, Any] = msgspec.to_builtins(row)
    return {**found, "feasible": is_feasible(row, constraints)}


def columns(rows: Sequence[Row], constraints: Sequence[Constraint] = ()) -> dict[str, list[Any]]:
    """Return a table: a column per attribute of `Row`, ``feasible``, and per varied parameter.

    Args:
        rows: of the table, in this order.
        constraints: as for `record`.
    """
    names = [name for name in Row.__struct_fields__ if name != "vary"]
    table = {name: [getattr(row, name) for row in rows] for name in names}
    table["accelerators"] = [_TOGETHER.join(row.accelerators) for row in rows]
    table["feasible"] = [is_feasible(row, constraints) for row in rows]
    varied = dict.fromkeys(name for row in rows for name in row.vary)
    return table | {name: _alike([row.vary.get(name) for row in rows]) for name in sorted(varied)}


def _alike(values: list[Any]) -> list[Any]:
    """Return values of one type: text where they are of several, such as 65536 and "64K"."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) < 2 or kinds == {int, float}:
        return values
    return [None if value is None else str(value) for value in values]


def as_pandas(rows: Sequence[Row], constraints: Sequence[Constraint] = ()) -> pandas.DataFrame:
    """Return the table of `columns`, whole numbers that are not known as ``<NA>``.

    Args:
        rows, constraints: as for `columns`.

    Raises:
        UsageError: pandas is not installed.
    """
    table = columns(rows, constraints)
    frame: pandas.DataFrame = load_extra("pandas", "sweep").DataFrame(table).convert_dtypes()
    return frame


def write_csv(path: Path, rows: Sequence[Row], constraints: Sequence[Constraint] = ()) -> None:
    """Write the table of `columns` as CSV with a header; empty where nothing is known.

    Args:
        path: of the file; it is there when all of it is.
        rows, constraints: as for `columns`.

    Raises:
        CovpError: it cannot be written.
    """
    table = columns(rows, constraints)
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(map(csv_cell, table))
    writer.writerows(map(csv_cell, row) for row in zip(*table.values(), strict=True))
    write_file(path, text.getvalue().encode())


def write_parquet(path: Path, rows: Sequence[Row], constraints: Sequence[Constraint] = ()) -> None:
    """Write the table of `columns` as Parquet, with the types of the columns.

    Args:
        path: of the file; it is there when all of it is.
        rows, constraints: as for `columns`.

    Raises:
        UsageError: pandas or pyarrow is not installed.
        CovpError: it cannot be written.
    """
    load_extra("pyarrow", "sweep")
    content = io.BytesIO()
    as_pandas(rows, constraints).to_parquet(content, engine="pyarrow", index=False)
    write_file(path, content.getvalue())


def write_file(path: Path, data: bytes) -> None:
    """Write a file for others to read; it is there when all of it is.

    Args:
        path: of the file.
        data: its content.

    Raises:
        CovpError: it cannot be written; what was there stays.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            partial.write_bytes(data)
            os.replace(partial, path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CovpError(f"{path}: cannot be written: {error.strerror or error}") from None
