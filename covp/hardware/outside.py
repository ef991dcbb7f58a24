"""`OutsideQueue`: callbacks that threads outside the simulation post into it."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from covp.base.closing import Owned


class OutsideSource(Owned):
    """A registered source of input from outside: a terminal, a socket, a debugger.

    `Clock.outside` makes them. While one is open, a program that waits with nothing scheduled is
    not at fault: the simulation blocks until something is posted.

    Attributes:
        is_open: more input may come.
    """

    def __init__(self, queue: OutsideQueue) -> None:
        self._queue = queue
        self.is_open = True

    @property
    def label(self) -> str:
        """A description of the source, for messages."""
        return "the device's input from outside"

    def post(self, fire: Callable[[], None]) -> None:
        """Call ``fire`` in the simulation's thread, between two blocks of code. Thread-safe.

        It runs as events do: it may raise interrupts, feed peripherals and schedule events. A
        board that is closed ignores it.
        """
        self._queue.post(fire)

    def close(self) -> None:
        """Announce that this source sends no more input; a second call does nothing."""
        self.is_open = False
        self._queue.remove(self)


class OutsideQueue:
    """The callbacks that were posted and not yet called, and the open sources.

    Args:
        notify: stops the running core before its next block; called from the posting thread,
            with the queue's lock held.
    """

    def __init__(self, notify: Callable[[], None]) -> None:
        self._notify = notify
        self._changed = threading.Condition()
        self._posted: deque[Callable[[], None]] = deque()
        self._sources: list[OutsideSource] = []
        self._closed = False

    @property
    def is_open(self) -> bool:
        """True if input may come."""
        return any(source.is_open for source in self._sources)

    @property
    def has_posted(self) -> bool:
        """True if a callback waits for the simulation's thread."""
        return bool(self._posted)

    def add(self) -> OutsideSource:
        """Return a new open source."""
        source = OutsideSource(self)
        self._sources.append(source)
        return source

    def remove(self, source: OutsideSource) -> None:
        """Remove a closed source; a core that waits for it looks again."""
        with self._changed:
            if source in self._sources:
                self._sources.remove(source)
            self._changed.notify_all()

    def post(self, fire: Callable[[], None]) -> None:
        """Queue a callback for the simulation's thread; see `OutsideSource.post`."""
        with self._changed:
            if self._closed:
                return
            self._posted.append(fire)
            # after the append: a core that misses the notice finds the callback; see `Clock._plan`
            self._notify()
            self._changed.notify_all()

    def run_posted(self) -> None:
        """Call the posted callbacks, in order; in the simulation's thread."""
        while self._posted:
            self._posted.popleft()()

    def wait(self, is_over: Callable[[], bool], deadline: float) -> None:
        """Block this thread until something is posted, the last source closes or `wake` is called.

        Args:
            is_over: also ends it; looked at after every `wake`.
            deadline: `time.monotonic` at which it ends in any case.
        """
        with self._changed:
            while self.is_open and not self._posted and not is_over():
                left = deadline - time.monotonic()
                self._changed.wait(min(left, threading.TIMEOUT_MAX) if left > 0 else 0)

    def wake(self) -> None:
        """Let a blocked `wait` look at its condition again. Thread-safe."""
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """End the simulation: ignore later posts."""
        with self._changed:
            self._closed = True
            self._posted.clear()
