"""`execute`: have points evaluated by workers and keep their rows in a store."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from covp.exploration.sweep.batches import Batch, Batches, binary
from covp.exploration.sweep.points import Point, Row
from covp.exploration.sweep.status import Rate, SweepProgress
from covp.exploration.sweep.store import Store
from covp.exploration.sweep.tables import LEASE
from covp.runtime.jobs import Done, Jobs

_BEAT = LEASE / 6
_AHEAD = 2
"""Batches in flight per process: one that is evaluated, and one that follows at once."""

Tell = Callable[[SweepProgress], None]
Workers = Jobs[Sequence[Point], list[Row]]
"""Processes that evaluate batches of points."""


def silent(progress: SweepProgress) -> None:
    """Tell nothing."""


def execute(
    points: Sequence[Point],
    store: Store,
    workers: Workers,
    *,
    tell: Tell = silent,
    group: Callable[[Point], Hashable] = binary,
) -> None:
    """Evaluate the points that have no row, so that afterwards all of them have one.

    Rows are stored as they come, so whatever ends this process, what was stored stays and the next
    call goes on from there.

    Args:
        points: in any order; of those with the same key one is evaluated.
        store: where rows are kept.
        workers: used only where there is something to do.
        tell: called with the progress after each batch.
        group: of a point; points of one group are best evaluated together.

    Raises:
        CovpError: the store or the workers are gone.
    """
    SweepExecution(store, workers, tell, group).run(points)


@contextmanager
def terminable() -> Iterator[None]:
    """End the block at SIGTERM as at Ctrl-C, by a KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class SweepExecution:
    """The evaluation of points, in one or several calls of `run`.

    Args:
        store, workers, tell, group: as of `execute`.
    """

    def __init__(
        self,
        store: Store,
        workers: Workers,
        tell: Tell = silent,
        group: Callable[[Point], Hashable] = binary,
    ) -> None:
        self._store, self._workers, self._tell, self._group = store, workers, tell, group
        self._batches = Batches((), group)
        self._left: set[str] = set()
        self._later = 0
        self._elsewhere: dict[str, Point] = {}  # claimed by other coordinators
        self._done = self._failed = 0
        self._rate = Rate()
        self._beat = time.monotonic()

    def run(self, points: Sequence[Point], later: int = 0) -> None:
        """Evaluate until every point has a row.

        Args:
            points: none that an earlier call had.
            later: points that later calls will have, for the progress.
        """
        by_key = {point.key: point for point in points}
        self._left, self._later = set(by_key), later
        self._found(self._store.statuses(list(by_key)))
        todo = [point for key, point in by_key.items() if key in self._left]
        self._batches = Batches(todo, self._group)
        self._store.join(len(todo) + later)
        self._report()
        while self._left:
            self._fill()
            found = self._workers.wait(1.0)
            rows = [row for each in found for row in self._rows(each)]
            if rows:
                self._keep(rows)
            self._keep_alive()

    def _fill(self) -> None:
        """Give the workers enough to do."""
        workers = self._workers
        most = max(1, _AHEAD * workers.slots)
        while workers.in_flight < most:
            batch = self._batches.take()
            if batch is None:
                if workers.in_flight == 0:
                    self._look_elsewhere()
                return
            mine = self._claim(batch)
            if mine:
                workers.submit(mine, retry=len(mine) == 1)
            else:
                self._batches.came_back(batch, 0.0)

    def _claim(self, batch: Batch) -> Batch:
        """Return the points of a batch that this coordinator claims; others have the rest."""
        keys = [point.key for point in batch]
        mine = self._store.claim(keys)
        if len(mine) < len(keys):
            done = self._store.statuses(keys)
            self._found(done)
            others = [point for point in batch if point.key not in mine | done.keys()]
            self._elsewhere |= {point.key: point for point in others}
        return tuple(point for point in batch if point.key in mine)

    def _look_elsewhere(self) -> None:
        """Wait for the points that others claimed, the only ones left, or take them over."""
        done = self._store.statuses(list(self._elsewhere))
        if self._found(done):
            self._report()
        self._elsewhere = {k: p for k, p in self._elsewhere.items() if k not in done}
        taken = self._store.claim(list(self._elsewhere))
        if taken:
            self._batches = Batches([self._elsewhere.pop(key) for key in taken], self._group)

    def _found(self, stored: Mapping[str, str]) -> bool:
        """Count rows that are in the store; return whether there are new ones."""
        new = self._left & stored.keys()
        self._left -= new
        failed = sum(stored[key] == "failed" for key in new)
        self._failed += failed
        self._done += len(new) - failed
        return bool(new)

    def _rows(self, done: Done[Sequence[Point], list[Row]]) -> list[Row]:
        """Return the rows of a batch, those of points that fail for good included."""
        batch = tuple(done.argument)
        if done.error is None and {row.key for row in done.result} == {p.key for p in batch}:
            self._batches.came_back(batch, done.seconds)
            return done.result
        if self._batches.broke(batch):
            return []
        reason = str(done.error or "internal error: the rows of other points came back")
        return [batch[0].row({"status": "failed", "reason": " ".join(reason.split())})]

    def _keep(self, rows: Sequence[Row]) -> None:
        left = self._left - {row.key for row in rows}
        self._store.put(rows, len(left) + self._later)
        self._found({row.key: row.status for row in rows})
        self._rate.count(len(rows))
        self._beat = time.monotonic()
        self._report()

    def _keep_alive(self) -> None:
        if time.monotonic() - self._beat > _BEAT:
            self._store.beat()
            self._beat = time.monotonic()

    def _report(self) -> None:
        left = len(self._left) + self._later
        self._tell(SweepProgress(self._done, self._failed, left, self._rate.value))
