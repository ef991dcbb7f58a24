"""Databases of sweeps: which one a path or URL means, how it is opened, its errors as one line."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import sqlalchemy as sql
from sqlalchemy.engine import URL, make_url

from covp.errors import CovpError, UsageError

PATIENCE = 60.0
"""Seconds for which a server that was there may be away."""
_CONNECT = 5
"""Seconds for the answer of a server."""
_BUSY = 30.0
"""Seconds in which SQLite waits for a reader that just recovers the file."""

_Result = TypeVar("_Result")
_log = logging.getLogger(__name__)


class Unreachable(CovpError):
    """The database is not there, and may come back.

    Attributes:
        answered: a server is there that takes no connection yet, or no more.
    """

    def __init__(self, text: str, answered: bool = False) -> None:
        super().__init__(text)
        self.answered = answered


@dataclass(frozen=True)
class Location:
    """A database.

    Attributes:
        url: as SQLAlchemy takes it.
        file: of SQLite; None for a server.
    """

    url: URL
    file: Path | None

    def __str__(self) -> str:
        if self.file is not None:
            return str(self.file)
        shown = self.url.set(drivername="postgresql")
        return shown.render_as_string(hide_password=True)


def locate(where: str | Path) -> Location:
    """Return the database that a path or URL means.

    Raises:
        UsageError: it is no such URL.
    """
    if isinstance(where, Path) or "://" not in where:
        file = Path(where).absolute()
        return Location(URL.create("sqlite", database=str(file)), file)
    try:
        url = make_url(where)
    except (sql.exc.ArgumentError, ValueError):
        raise UsageError(
            f"{_without_password(where)}: not a database URL, such as "
            "postgresql://user@host:5432/database"
        ) from None
    kind = url.drivername.partition("+")[0]
    if kind in ("postgresql", "postgres"):
        return Location(url.set(drivername="postgresql+psycopg"), None)
    if kind == "sqlite" and url.database not in (None, "", ":memory:"):
        return locate(Path(str(url.database)))
    raise UsageError(
        f"{_without_password(where)}: results are kept in SQLite (the default) or PostgreSQL: "
        "postgresql://user@host/database"
    )


def _without_password(where: str) -> str:
    scheme, _, rest = where.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"


def open_engine(location: Location, read_only: bool = False) -> sql.Engine:
    """Return an engine; nothing is connected yet."""
    if location.file is None:
        wait = {"connect_timeout": _CONNECT}
        return sql.create_engine(location.url, pool_pre_ping=True, connect_args=wait)
    url = location.url
    if read_only:
        query = {"mode": "ro", "uri": "true"}
        if _is_finished_and_fixed(location.file):
            query["immutable"] = "1"
        url = url.set(database=f"file:{quote(str(location.file))}", query=query)
    engine = sql.create_engine(url, connect_args={"timeout": _BUSY}, poolclass=sql.StaticPool)
    sql.event.listen(engine, "connect", _lenient)
    if not read_only:
        sql.event.listen(engine, "connect", _durable)
    return engine


def _is_finished_and_fixed(file: Path) -> bool:
    """Return whether no process writes the file and this one cannot create its index.

    SQLite needs an index beside a file with a journal; one that is there is a writer's, who may
    be another user.
    """
    index, journal = (file.with_name(f"{file.name}-{end}") for end in ("shm", "wal"))
    waits = journal.is_file() and journal.stat().st_size > 0
    return not (waits or index.exists() or os.access(file.parent, os.W_OK))


def _lenient(connection: Any, _: Any) -> None:
    """Make SQLite read a text that is not UTF-8 as a damaged row, not an unreadable file."""
    connection.text_factory = lambda data: data.decode("utf-8", "replace")


def _durable(connection: Any, _: Any) -> None:
    """Let many read SQLite while one writes, and make commits survive a power cut."""
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.close()


@contextmanager
def open_to_read(where: str | Path) -> Iterator[tuple[sql.Connection, Location]]:
    """Open a database for reading, which another process may be writing.

    Raises:
        UsageError: there is no such file.
        CovpError: it cannot be read.
    """
    location = locate(where)
    if location.file is not None and not location.file.is_file():
        raise UsageError(f"{location.file}: no sweep found; `covp sweep FILE.yaml -o` makes one")
    engine = open_engine(location, read_only=True)
    try:
        with report_errors(location), engine.connect() as connection:
            demand_whole(connection, location)
            yield connection, location
    finally:
        engine.dispose()


def demand_whole(connection: sql.Connection, location: Location) -> None:
    """Check that a file's tables and indices are consistent: a query may miss damage.

    Raises:
        CovpError: they do not.
    """
    if location.file is None:
        return
    found = connection.execute(sql.text("PRAGMA integrity_check(1)")).scalar()
    if found != "ok":
        raise _of_file(location, f"database is malformed: {' '.join(str(found).split())}")


@contextmanager
def report_errors(location: Location) -> Iterator[None]:
    """Turn errors of the database into one line that names it."""
    try:
        yield
    except sql.exc.DBAPIError as error:
        text = " ".join(str(error.orig).split())
        if location.file is None:
            raise _of_server(location, text, error) from None
        raise _of_file(location, text) from None
    except (sql.exc.SQLAlchemyError, UnicodeError) as error:  # names of a damaged file
        raise CovpError(f"{location}: {' '.join(str(error).split())}") from None


def _of_server(location: Location, text: str, error: sql.exc.DBAPIError) -> CovpError:
    if not _is_away(error):
        return CovpError(f"{location}: {text}")
    hint = "check that the server runs and that user, password and database are right"
    answered = "FATAL" in text or getattr(error.orig, "sqlstate", None) is not None
    return Unreachable(f"{location}: {text}; {hint}. What was stored stays", answered)


_AWAY = ("08", "53", "57P0")
"""First characters of SQLSTATE for what passes: connection exceptions, insufficient resources, a
server that shuts down or starts (PostgreSQL manual, appendix A)."""
_PASSING = ("starting up", "shutting down", "recovery", "too many", "reserved for")


def _is_away(error: sql.exc.DBAPIError) -> bool:
    """Return whether the server may come back; False where it answered and refuses."""
    state: str | None = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return state.startswith(_AWAY)
    text = str(error.orig)
    if "FATAL" in text:  # the answer to a connection, of which psycopg has no SQLSTATE
        return any(part in text for part in _PASSING)
    return isinstance(error, sql.exc.OperationalError) or error.connection_invalidated


def _of_file(location: Location, text: str) -> CovpError:
    hints = {
        "full": "make room and start again: what was stored stays, and the sweep goes on",
        "disk i/o": "make room or check the disk, and start again: what was stored stays",
        "malformed": "start the sweep again to fix an index; else move it away to begin anew, or "
        "try sqlite3's .recover",
        "not a database": "name another folder with -o, or move the file away",
        "unable to open": "the folder must be there and writable: name another with -o",
        "readonly": "make the file writable, or name another folder with -o",
        "locked": "another program writes it: close that",
        "no such": "it was altered, or is not a store of a sweep: start the sweep again to fix it",
    }
    hint = next((hint for part, hint in hints.items() if part in text.lower()), None)
    return CovpError(f"{location}: {text}" + (f"; {hint}" if hint else ""))


def patiently(work: Callable[[], _Result], *, at_first: bool = False) -> _Result:
    """Do work; while the database cannot be reached, again for `PATIENCE` seconds.

    Args:
        work: that uses the database.
        at_first: it was never reached before, so a server that does not answer is not there.
    """
    started, pause = time.monotonic(), 0.1
    while True:
        try:
            return work()
        except Unreachable as error:
            gone = at_first and not error.answered
            if gone or time.monotonic() - started + pause > PATIENCE:
                raise
            _log.warning("%s; trying again", error)
            time.sleep(pause)
            pause = min(2 * pause, 5.0)
