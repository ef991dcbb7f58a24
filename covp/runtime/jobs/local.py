"""`InLine` and `Processes`: calls in this process, or in others of this machine."""

from __future__ import annotations

import pickle
import queue
import tempfile
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from covp.base import temporary
from covp.base.closing import Closing
from covp.errors import CovpError, DeviceError
from covp.runtime.jobs.base import Given, Jobs, Result, take_all
from covp.runtime.jobs.child import Child, Outcome, pack


class InLine(Jobs[Given, Result]):
    """Calls in this process, one after the other in `wait`.

    Args:
        work: what is called; it is closed with this where it is `Closing`.
    """

    def __init__(self, work: Callable[[Given], Result]) -> None:
        super().__init__()
        self._work = work
        self._waiting: deque[tuple[int, Given]] = deque()

    @property
    def slots(self) -> int:
        """See `Jobs`."""
        return 1

    def _start(self, number: int, argument: Given) -> None:
        self._waiting.append((number, argument))

    def _wait_for_ends(self, seconds: float | None) -> list[tuple[int, Outcome, float]]:
        number, argument = self._waiting.popleft()
        started = time.monotonic()
        outcome: Outcome
        try:
            outcome = self._work(argument), None
        except CovpError as error:
            outcome = None, error
        return [(number, outcome, time.monotonic() - started)]

    def close(self) -> None:
        """Close the work."""
        if isinstance(self._work, Closing):
            self._work.close()


class Processes(Jobs[Given, Result]):
    """Calls in processes of this machine.

    Args:
        work: what is called; pickles.
        count: processes.
    """

    def __init__(self, work: Callable[[Given], Result], count: int) -> None:
        super().__init__()
        self._content = pack(work)
        self._children = [Child() for _ in range(count)]
        self._idle: queue.SimpleQueue[Child] = queue.SimpleQueue()
        for child in self._children:
            self._idle.put(child)
        self._results: queue.SimpleQueue[tuple[int, Outcome, float]] = queue.SimpleQueue()
        # a child ends with the thread that started it: these live as long as this object
        self._threads = ThreadPoolExecutor(count, "covp-jobs")

    @property
    def slots(self) -> int:
        """See `Jobs`."""
        return len(self._children)

    def _start(self, number: int, argument: Given) -> None:
        self._threads.submit(self._run, number, pickle.dumps(argument))

    def _run(self, number: int, argument: bytes) -> None:
        """Do a call in an idle child (called in a thread; there are as many as children)."""
        child = self._idle.get()
        started = time.monotonic()
        try:
            outcome = child.call(self._content, argument)
        except Exception as error:  # no process can be started
            outcome = None, DeviceError(f"no worker process: {type(error).__name__}: {error}")
        self._idle.put(child)
        self._results.put((number, outcome, time.monotonic() - started))

    def _wait_for_ends(self, seconds: float | None) -> list[tuple[int, Outcome, float]]:
        return take_all(self._results, seconds)

    def close(self) -> None:
        """End the processes."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for child in self._children:
            child.close()
        self._threads.shutdown()
        temporary.sweep(Path(tempfile.gettempdir()), again=True)  # of processes that were killed
