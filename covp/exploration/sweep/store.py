"""`Store`: the rows of sweeps in a database, one row per key.

SQLite, in a file, has one writer: the process that coordinates a sweep holds a lock beside the
file, and anything may read. In PostgreSQL several coordinators share work: a claim says who works
on a point, and counts as long as its owner's heartbeat does. All times are the database's own.
"""

from __future__ import annotations

import logging
import os
import socket
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.dialects import postgresql, sqlite

from covp.base.closing import Owned
from covp.errors import CovpError
from covp.exploration.sweep.database import (
    Location,
    demand_whole,
    locate,
    open_engine,
    open_to_read,
    patiently,
    report_errors,
)
from covp.exploration.sweep.lock import Lock
from covp.exploration.sweep.points import Row
from covp.exploration.sweep.tables import (
    LEASE,
    claims,
    coordinators,
    from_row,
    now,
    prepare,
    raw_rows,
    rows,
    to_row,
)

_log = logging.getLogger(__name__)
_AT_ONCE = 500
"""Keys in one statement; databases limit the number of parameters."""


class Store(Owned):
    """The rows of sweeps, to be read and written by a coordinator.

    Args:
        where: the path of an SQLite file, made where there is none, or a URL such as
            ``postgresql://user@host/database``.

    Raises:
        UsageError: the URL is wrong, or another process writes that file.
        CovpError: the database cannot be reached, or is damaged.
    """

    def __init__(self, where: str | Path) -> None:
        self._where = where
        self.location: Location = locate(where)
        self._lock = Lock(self.location.file) if self.location.file else None
        self._me = uuid.uuid4().hex
        self._insert: Any = sqlite.insert if self.location.file else postgresql.insert
        self._engine = open_engine(self.location)
        self._closed = False
        self._identity: tuple[int, int] | None = None
        try:
            patiently(self._prepare, at_first=True)
            self._identity = self._found()
        except BaseException:
            self.close()
            raise

    @property
    def label(self) -> str:
        """Name of the resource in errors."""
        return f"the store {self.location}"

    def _prepare(self) -> None:
        with self._begin() as connection:
            try:
                demand_whole(connection, self.location)
            except CovpError as error:
                connection.execute(sql.text("REINDEX"))  # an index is made of its table
                demand_whole(connection, self.location)
                _log.warning("%s; its indices are made anew", error)
            prepare(connection)

    def close(self) -> None:
        """Give back what is claimed, and close the database."""
        if self._closed:
            return
        self._closed = True
        try:
            # what a lost database keeps of this coordinator expires
            with self._engine.begin() as connection:
                mine = coordinators.c.id == self._me
                connection.execute(sql.update(coordinators).where(mine).values(ended=True))
                connection.execute(sql.delete(claims).where(claims.c.owner == self._me))
        except sql.exc.SQLAlchemyError:
            pass
        finally:
            self._engine.dispose()
            if self._lock is not None:
                self._lock.close()

    def join(self, left: int) -> None:
        """Say that this process begins to work.

        Args:
            left: points that it knows and that have no row.
        """

        def write() -> None:
            with self._begin() as connection:
                time = connection.scalar(sql.select(now(connection)))
                state = {"heartbeat": time, "left": left, "ended": False}
                new = {"id": self._me, "host": socket.gethostname(), "pid": os.getpid()}
                statement = self._insert(coordinators).values(**new, started=time, **state)
                statement = statement.on_conflict_do_update(index_elements=["id"], set_=state)
                connection.execute(statement)

        patiently(write)

    def beat(self) -> None:
        """Say that this process is still there; well more often than once per `LEASE`."""

        def write() -> None:
            with self._begin() as connection:
                mine = coordinators.c.id == self._me
                time = now(connection)
                connection.execute(sql.update(coordinators).where(mine).values(heartbeat=time))

        patiently(write)

    def claim(self, keys: Sequence[str]) -> set[str]:
        """Claim keys for this coordinator; return those that it shall work on.

        Not those that have a row, and not those that another one has claimed that is alive.
        """
        if self._lock is not None:  # the only one
            return set(keys) - self.statuses(keys).keys()
        wanted = sorted(set(keys))  # in one order everywhere: no two wait for each other

        def write() -> set[str]:
            with self._begin() as connection:
                self._claim(connection, wanted)
                held = _among(connection, claims.c.key, wanted, claims.c.owner == self._me)
                done = _among(connection, rows.c.key, sorted(held))
                self._release(connection, done)
                return held - done

        return patiently(write)

    def _claim(self, connection: sql.Connection, keys: list[str]) -> None:
        if not keys:
            return
        alive = (
            sql.select(coordinators.c.id)
            .where(~coordinators.c.ended)
            .where(coordinators.c.heartbeat > now(connection) - LEASE)
        )
        statement = self._insert(claims).on_conflict_do_update(
            index_elements=["key"],
            set_={"owner": self._me},
            where=claims.c.owner.not_in(alive),
        )
        connection.execute(statement, [{"key": key, "owner": self._me} for key in keys])

    def _release(self, connection: sql.Connection, keys: Iterable[str]) -> None:
        mine = sql.delete(claims).where(claims.c.owner == self._me)
        for part in _parts(sorted(keys)):
            connection.execute(mine.where(claims.c.key.in_(part)))

    def put(self, found: Sequence[Row], left: int) -> None:
        """Keep rows, all or none of them. One that is kept stays, but for a failed one.

        Args:
            found: rows, whoever computed them.
            left: points of this sweep that have no row then.

        Raises:
            CovpError: they cannot be kept: the disk is full, the server does not answer.
        """

        def write() -> None:
            with self._begin() as connection:
                time = connection.scalar(sql.select(now(connection)))
                self._upsert(connection, [{**from_row(row), "finished": time} for row in found])
                if self._lock is None:
                    self._release(connection, [row.key for row in found])
                state = {"heartbeat": time, "left": left}
                mine = coordinators.c.id == self._me
                connection.execute(sql.update(coordinators).where(mine).values(**state))

        patiently(write)

    def _upsert(self, connection: sql.Connection, values: list[dict[str, Any]]) -> None:
        if not values:
            return
        statement = self._insert(rows)
        new = {column.name: statement.excluded[column.name] for column in rows.c}
        statement = statement.on_conflict_do_update(
            index_elements=["key"], set_=new, where=rows.c.status == "failed"
        )
        connection.execute(statement, sorted(values, key=lambda value: str(value["key"])))

    def statuses(self, keys: Sequence[str]) -> dict[str, str]:
        """Return the keys that have a row, with its status, "ok" or "failed"."""
        return {row.key: row.status for row in self.rows(keys)}

    def forget_failures(self, keys: Sequence[str]) -> None:
        """Remove the failed ones among the rows of some keys, so that they are tried again."""
        with self._begin() as connection:
            for part in _parts(keys):
                failed = rows.c.key.in_(part) & (rows.c.status == "failed")
                connection.execute(sql.delete(rows).where(failed))

    def rows(self, keys: Sequence[str] | None = None) -> list[Row]:
        """Return the rows of some keys, in their order, without those that there are not.

        Damaged ones are removed, so that their points are evaluated again.

        Args:
            keys: None for all rows, in the order in which they were found.
        """

        def read() -> list[Row]:
            with self._begin() as connection:
                found, damaged = read_rows(connection, keys)
                for part in _parts(damaged):
                    connection.execute(sql.delete(rows).where(rows.c.key.in_(part)))
            if damaged:
                _report_damage(self.location, len(damaged), "removed")
            return found

        return patiently(read)

    def results(self, keys: Sequence[str]) -> list[Row]:
        """Return the rows of keys that all have one, in order, as another process reads them.

        Raises:
            CovpError: rows are not there that were stored.
        """
        found = patiently(lambda: stored_rows(self._where, keys))
        missing = len(set(keys)) - len(found)
        if missing:
            raise CovpError(
                f"{self.location}: {missing} of {len(set(keys))} rows that were stored are not "
                "there any more: something altered it meanwhile; start the sweep again"
            )
        return found

    @contextmanager
    def _begin(self) -> Iterator[sql.Connection]:
        """Open a transaction. Errors are one line."""
        if self._identity is not None and self._found() != self._identity:
            raise CovpError(
                f"{self.location}: was removed or replaced while the sweep ran: what it held is "
                "lost; start the sweep again"
            )
        with report_errors(self.location), self._engine.begin() as connection:
            yield connection

    def _found(self) -> tuple[int, int] | None:
        """Return device and number of the file that the path means now; None: there is none."""
        if self.location.file is None:
            return None
        try:
            state = self.location.file.stat()
        except OSError:
            return None
        return state.st_dev, state.st_ino


def stored_rows(where: str | Path, keys: Sequence[str] | None = None) -> list[Row]:
    """Return the rows of a store that may be in use, as `Store.rows` gives them.

    Raises:
        UsageError: there is no such store.
        CovpError: it cannot be read.
    """
    with open_to_read(where) as (connection, location):
        found, damaged = read_rows(connection, keys)
    if damaged:
        _report_damage(location, len(damaged), "left out")
    return found


def _report_damage(location: Location, count: int, what: str) -> None:
    _log.warning(
        "%s: rows whose checksum is wrong: %d; %s, the sweep evaluates them again",
        *(location, count, what),
    )


def read_rows(
    connection: sql.Connection, keys: Sequence[str] | None = None
) -> tuple[list[Row], list[str]]:
    """Return the rows of some keys, or all, see `Store.rows`; and the keys of damaged rows."""
    some = sql.select(*raw_rows)
    if keys is None or len(keys) > _AT_ONCE:
        some = some.order_by(rows.c.finished, rows.c.key)
    else:
        some = some.where(rows.c.key.in_(keys))
    wanted = None if keys is None else set(keys)
    by_key: dict[str, Row] = {}
    damaged = []
    for entry in connection.execute(some).mappings():
        if wanted is not None and entry["key"] not in wanted:
            continue
        row = to_row(entry)
        if row is None:
            damaged.append(entry["key"])
        else:
            by_key[row.key] = row
    if keys is None:
        return list(by_key.values()), damaged
    return [by_key[key] for key in dict.fromkeys(keys) if key in by_key], damaged


def _among(
    connection: sql.Connection,
    column: sql.Column[str],
    keys: Sequence[str],
    *conditions: sql.ColumnElement[bool],
) -> set[str]:
    """Return the keys that a table has, under conditions."""
    found: set[str] = set()
    for part in _parts(keys):
        found |= set(connection.scalars(sql.select(column).where(column.in_(part), *conditions)))
    return found


def _parts(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(keys), _AT_ONCE):
        yield keys[start : start + _AT_ONCE]
