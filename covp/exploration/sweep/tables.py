"""The tables of a store; `rows` has a column per attribute of `Row`.

A row is stored with a checksum, and read only where it matches: figures that were altered, by a
defect of a disk or by hand, are not results.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import sqlalchemy as sql

from covp.exploration.sweep.points import Row

LEASE = 60.0
"""Seconds without a heartbeat after which a coordinator counts as gone."""

_meta = sql.MetaData()
_TYPES: dict[type, Any] = {
    msgspec.inspect.StrType: sql.Text,
    msgspec.inspect.LiteralType: sql.Text,
    msgspec.inspect.IntType: sql.BigInteger,
    msgspec.inspect.FloatType: sql.Double,
    msgspec.inspect.BoolType: sql.Boolean,
}
"""Column types by kind of an attribute; anything else is JSON in a text."""


def _column(field: msgspec.inspect.Field) -> sql.Column[Any]:
    given = _TYPES.get(type(_plain(field.type)), sql.Text)
    return sql.Column(field.name, given, primary_key=field.name == "key")


def _plain(kind: msgspec.inspect.Type) -> msgspec.inspect.Type:
    """Return a type without None, units and limits."""
    if isinstance(kind, msgspec.inspect.Metadata):
        return _plain(kind.type)
    if isinstance(kind, msgspec.inspect.UnionType):
        return _plain(next(e for e in kind.types if not isinstance(e, msgspec.inspect.NoneType)))
    return kind


def _fields() -> tuple[msgspec.inspect.Field, ...]:
    described = msgspec.inspect.type_info(Row)
    assert isinstance(described, msgspec.inspect.StructType)
    return described.fields


def _is_json(field: msgspec.inspect.Field) -> bool:
    kinds = msgspec.inspect
    return isinstance(_plain(field.type), (kinds.DictType, kinds.ListType, kinds.VarTupleType))


_JSON = frozenset(field.name for field in _fields() if _is_json(field))

SCHEMA = 2
"""Version of the table `rows`; 1 had no checksums. Rows of another one count as damaged."""

rows = sql.Table(
    "rows",
    _meta,
    *map(_column, _fields()),
    sql.Column("finished", sql.Double, index=True),
    sql.Column("schema", sql.Integer),
    sql.Column("checksum", sql.Text),
)
"""Results of points. ``finished``: seconds since 1970."""

raw_rows = [sql.type_coerce(column, sql.types.NullType()).label(column.name) for column in rows.c]
"""The columns of `rows` as they lie there: of SQLite any may hold anything."""

coordinators = sql.Table(
    "coordinators",
    _meta,
    sql.Column("id", sql.Text, primary_key=True),
    sql.Column("host", sql.Text),
    sql.Column("pid", sql.BigInteger),
    sql.Column("started", sql.Double),
    sql.Column("heartbeat", sql.Double),
    sql.Column("left", sql.BigInteger),
    sql.Column("ended", sql.Boolean),
)
"""Who works or has worked on sweeps; ``left``: points of its sweep that had no row then."""

claims = sql.Table(
    "claims",
    _meta,
    sql.Column("key", sql.Text, primary_key=True),
    sql.Column("owner", sql.Text, index=True),
)
"""Coordinators that work on points without a row."""


def prepare(connection: sql.Connection) -> None:
    """Make what is missing: tables, and columns that an earlier version did not have."""
    if connection.dialect.name == "postgresql":
        # two coordinators that start at once would both make them; until the transaction's end
        connection.execute(sql.text("SELECT pg_advisory_xact_lock(7020117)"))
    _meta.create_all(connection)
    there = {column["name"] for column in sql.inspect(connection).get_columns(rows.name)}
    for column in rows.c:
        if column.name not in there:
            kind = column.type.compile(connection.dialect)
            connection.execute(sql.text(f'ALTER TABLE rows ADD COLUMN "{column.name}" {kind}'))


def now(connection: sql.Connection) -> sql.ColumnElement[float]:
    """Return the database's time, seconds since 1970."""
    if connection.dialect.name == "sqlite":
        days: sql.ColumnElement[float] = sql.func.julianday("now", type_=sql.Double)
        return (days - 2440587.5) * 86400.0
    return sql.cast(sql.extract("epoch", sql.func.clock_timestamp()), sql.Double)


def from_row(row: Row) -> dict[str, Any]:
    """Return the columns of a row."""
    # as it is read back: 0 in a column of floats is 0.0
    values = msgspec.structs.asdict(msgspec.convert(msgspec.structs.asdict(row), Row))
    for name in _JSON:
        values[name] = msgspec.json.encode(values[name]).decode()
    return {**values, "schema": SCHEMA, "checksum": _checksum(values)}


def to_row(columns: Any) -> Row | None:
    """Return the row that was stored in columns by name; None where it is damaged."""
    given = {str(name): value for name, value in columns.items() if value is not None}
    given.pop("finished", None)
    try:
        for name in _JSON & given.keys():
            given[name] = msgspec.json.decode(given[name])
        row = msgspec.convert(given, Row, strict=False)  # SQLite's booleans are integers
    except (msgspec.MsgspecError, RecursionError, TypeError, ValueError):
        return None
    expected = from_row(row)
    found = given.get("schema"), given.get("checksum")
    return row if found == (expected["schema"], expected["checksum"]) else None


def _checksum(values: dict[str, Any]) -> str:
    """Return the checksum of the columns that have a value, so that later versions may add some."""
    known = sorted((name, value) for name, value in values.items() if value is not None)
    return hashlib.sha256(msgspec.json.encode([SCHEMA, known])).hexdigest()[:32]
