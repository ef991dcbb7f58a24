"""Progress of a sweep: `SweepProgress` while it runs, `read_status` from its store at any time."""

from __future__ import annotations

import socket
import time
from collections import Counter, deque
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import sqlalchemy as sql

from covp.base.document import Amount, Count, Seconds, unit
from covp.exploration.sweep.database import open_to_read
from covp.exploration.sweep.lock import is_held
from covp.exploration.sweep.store import read_rows
from covp.exploration.sweep.tables import LEASE, coordinators, now, rows

_WINDOW = 60.0
"""Seconds over which a rate is taken."""


@dataclass(frozen=True)
class SweepProgress:
    """Progress of a sweep.

    Attributes:
        done: points with figures.
        failed: points with a reason why there are none.
        left: points without either.
        rate: points per second of late; None where it is not known yet.
    """

    done: int
    failed: int
    left: int
    rate: float | None = None

    @property
    def seconds_left(self) -> float | None:
        """Estimated; None where it is not known."""
        if self.left == 0:
            return 0.0
        return self.left / self.rate if self.rate else None

    def __str__(self) -> str:
        text = f"{self.done} done, {self.failed} failed, {self.left} left"
        if self.rate:
            text += f", {self.rate:.3g} points/s"
        if self.left and self.seconds_left is not None:
            text += f", {duration(self.seconds_left)} left"
        return text


class StatusDocument(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="covp.sweep-status/1"
):
    """The output of ``covp sweep --status --json``.

    Attributes:
        done: designs with figures
        failed: designs with a reason why there are none
        left: designs without either
        rate: designs per second of late; null where it is not known yet
        seconds_left: estimated
        running: `HOST:PID` of the processes that coordinate it now
        damaged: rows whose checksum is wrong; they count as left
    """

    done: Count
    failed: Count
    left: Count
    rate: Annotated[Amount, unit("1/s")] | None
    seconds_left: Seconds | None
    running: tuple[str, ...]
    damaged: Count


@dataclass(frozen=True)
class Status(SweepProgress):
    """Progress of a stored sweep.

    Attributes:
        running: "HOST:PID" of the processes that coordinate it now.
        damaged: rows that are not as they were stored; they count as left.
    """

    running: tuple[str, ...] = ()
    damaged: int = 0

    def record(self) -> StatusDocument:
        """Return the JSON document ``covp.sweep-status/1``."""
        return StatusDocument(**asdict(self), seconds_left=self.seconds_left)

    def __str__(self) -> str:
        state = f"running in {', '.join(self.running)}" if self.running else "not running"
        if self.damaged:
            state = f"rows whose checksum is wrong: {self.damaged}; {state}"
        return f"{super().__str__()}; {state}"


class Rate:
    """Points per second over the last minute."""

    def __init__(self) -> None:
        self._counts = deque([(time.monotonic(), 0)])

    def count(self, points: int) -> None:
        """Count points that are done now."""
        moment = time.monotonic()
        self._counts.append((moment, self._counts[-1][1] + points))
        while len(self._counts) > 2 and moment - self._counts[0][0] > _WINDOW:
            self._counts.popleft()

    @property
    def value(self) -> float | None:
        """Points per second, None before the first ones."""
        (first, before), (last, after) = self._counts[0], self._counts[-1]
        return (after - before) / (last - first) if last > first else None


def read_status(where: str | Path) -> Status:
    """Return the progress of the sweep in a store, whether or not it runs.

    Args:
        where: path or URL, as of `covp.exploration.sweep.store.Store`.

    Raises:
        UsageError: there is no such store.
        CovpError: it cannot be read.
    """
    with open_to_read(where) as (connection, location):
        return _status(connection, location.file)


def _status(connection: sql.Connection, file: Path | None) -> Status:
    found, damaged = read_rows(connection)
    counts = Counter(row.status for row in found)
    latest = coordinators.c.started.desc()
    sessions = connection.execute(sql.select(coordinators).order_by(latest).limit(20)).all()
    moment: float = connection.scalar(sql.select(now(connection))) or 0.0
    alive = [each for each in sessions if _is_alive(each, moment, file)]
    current = alive or sessions[:1]
    return Status(
        done=counts["ok"],
        failed=counts["failed"],
        left=min((each.left for each in current), default=0) + len(damaged),
        rate=_rate(connection, min(e.started for e in current), moment) if alive else None,
        running=tuple(f"{each.host}:{each.pid}" for each in alive),
        damaged=len(damaged),
    )


def _is_alive(session: Any, moment: float, file: Path | None) -> bool:
    """Return whether a coordinator still works, by its heartbeat and, on this host, its lock."""
    if session.ended or moment - session.heartbeat > LEASE:
        return False
    if file is not None and session.host == socket.gethostname():
        return is_held(file)
    return True


def _rate(connection: sql.Connection, started: float, moment: float) -> float | None:
    """Return points per second within the last minute of a session."""
    since = max(started, moment - _WINDOW)
    late = sql.select(sql.func.count()).where(rows.c.finished > since)
    count: int = connection.scalar(late) or 0
    return count / (moment - since) if count and moment > since else None


def duration(seconds: float) -> str:
    """Return a duration as text, such as "12 s", "3 min 20 s" or "2 h 5 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
