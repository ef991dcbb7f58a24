"""`Jobs`: calls of one function, done elsewhere; what becomes of those whose process dies."""

from __future__ import annotations

import itertools
import queue
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from covp.base.closing import Owned
from covp.errors import CovpError, DeviceError
from covp.runtime.jobs.child import Died, Outcome

Given = TypeVar("Given")
Result = TypeVar("Result")

_CRASHES = 3
"""Processes that a call may end by itself."""
_LOSSES = 5
"""Workers that may be lost while they have a call."""


class Lost(DeviceError):
    """The workers that had a call ended, several in turn; that says nothing of the call."""


@dataclass(frozen=True)
class Done(Generic[Given, Result]):
    """A call that came to an end.

    Attributes:
        number: of the call, 0, 1, 2 ... as they were submitted.
        argument: as it was submitted.
        outcome: what it gave, and the error instead.
        seconds: that it took.
    """

    number: int
    argument: Given
    outcome: Outcome
    seconds: float

    @property
    def error(self) -> CovpError | None:
        """Why there is no result: `Died`, `Lost`, `Raised`, or what the work raised."""
        return self.outcome[1]

    @property
    def result(self) -> Result:
        """Result of the work. Raises `error` where there is one."""
        if isinstance(self.error, Died | Lost):
            raise DeviceError(
                f"a worker process died: it {self.error}, as when the memory of this machine is "
                "full: fewer --jobs take less"
            )
        if self.error is not None:
            raise self.error
        found: Result = self.outcome[0]
        return found


@dataclass
class _Call(Generic[Given]):
    """A call that is not done. ``ends``: processes and workers that ended meanwhile."""

    argument: Given
    retry: bool
    ends: int = 0


class Jobs(Owned, Generic[Given, Result]):
    """Calls of one function, the work, with many arguments.

    Wherever they are done, a call whose process or worker ends is repeated: three times where it
    crashes; where it was killed from elsewhere, as by the system when memory is full, three times
    more with nothing beside it; five times where a cluster lost its worker. Ctrl-C reaches this
    process alone, which ends the others; and they end with it, whatever ends it.
    """

    def __init__(self) -> None:
        self._calls: dict[int, _Call[Given]] = {}
        self._numbers = itertools.count()
        self._alone: deque[int] = deque()

    @property
    def label(self) -> str:
        """Name of the pool in messages."""
        return "the pool of worker processes"

    @property
    @abstractmethod
    def slots(self) -> int:
        """Calls that can be done at a time; 0 while there is no worker."""

    @abstractmethod
    def _start(self, number: int, argument: Given) -> None:
        """Have a call done."""

    @abstractmethod
    def _wait_for_ends(self, seconds: float | None) -> list[tuple[int, Outcome, float]]:
        """Return number, outcome and seconds of calls that ended; none after a time."""

    @property
    def in_flight(self) -> int:
        """Calls that were submitted and that `wait` has not given."""
        return len(self._calls)

    def submit(self, argument: Given, *, retry: bool = True) -> int:
        """Have a call done; `wait` gives what comes of it.

        Args:
            argument: of the work; pickles.
            retry: repeat it where it ends its process.

        Returns:
            The number of the call.
        """
        number = next(self._numbers)
        self._calls[number] = _Call(argument, retry)
        self._start(number, argument)
        return number

    def wait(self, seconds: float | None = None) -> list[Done[Given, Result]]:
        """Wait for calls to end and return them; none after ``seconds``, or if all are repeated.

        Args:
            seconds: to wait at most; None: until something happens.

        Raises:
            DeviceError: the workers are gone.
        """
        found: list[Done[Given, Result]] = []
        if not self._calls:
            time.sleep(seconds or 0.0)
            return found
        for number, outcome, passed in self._wait_for_ends(seconds):
            if self._is_again(number, outcome[1]):
                continue
            call = self._calls.pop(number)
            if isinstance(outcome[1], Died):
                outcome = None, Died(outcome[1].status, max(call.ends, 1))
            found.append(Done(number, call.argument, outcome, passed))
        if self._alone and len(self._calls) == len(self._alone):
            number = self._alone.popleft()
            self._start(number, self._calls[number].argument)
        return found

    def call(self, arguments: Iterable[Given]) -> Iterator[Done[Given, Result]]:
        """Do a call with each argument; yield each when it is done, in any order."""
        for argument in arguments:
            self.submit(argument)
        while self.in_flight:
            yield from self.wait()

    def _is_again(self, number: int, error: CovpError | None) -> bool:
        """Return whether a call is repeated; if so, start it again."""
        call = self._calls[number]
        if isinstance(error, Lost):
            call.ends += 1
            again = call.ends < _LOSSES
        elif isinstance(error, Died) and call.retry:
            call.ends += 1
            again = call.ends < _CRASHES
            if not again and not error.is_crash and call.ends < 2 * _CRASHES:
                self._alone.append(number)
                return True
        else:
            return False
        if again:
            self._start(number, call.argument)
        return again


_Item = TypeVar("_Item")


def take_all(results: queue.SimpleQueue[_Item], seconds: float | None) -> list[_Item]:
    """Take all that a queue has: at least one item, or none after ``seconds``."""
    found = []
    try:
        found.append(results.get(timeout=seconds))
        while True:
            found.append(results.get_nowait())
    except queue.Empty:
        return found
