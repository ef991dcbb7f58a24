"""The virtual clock of a device: core cycles, moved on by the core and by waiting; events in it."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(order=True)
class Event:
    """Something that happens at a cycle; `Clock.at` makes them.

    Attributes:
        cycle: when.
        cancelled: it will not happen.
    """

    cycle: int
    _order: int
    happen: Callable[[], None] = field(compare=False)
    cancelled: bool = field(default=False, compare=False)

    def cancel(self) -> None:
        """Let it not happen; no effect when it has."""
        self.cancelled = True


class Clock:
    """Time in estimated core cycles since the device was made.

    Args:
        now: gives the cycles the core has spent so far, waiting included.
        skip: adds cycles that pass without an instruction.
        hertz: of the core.
        planned: told the cycle of the next event when one is added.

    Attributes:
        hertz: of the core.
        skipped: cycles that passed without an instruction so far.
        phase: the phase of the program that is running (a bucket of the device's counter) and the
            cycles spent in it so far, since the buckets were cleared.
    """

    def __init__(
        self,
        now: Callable[[], int],
        skip: Callable[[int], None],
        hertz: int,
        planned: Callable[[int], None] = lambda cycle: None,
    ) -> None:
        self._now = now
        self._skip = skip
        self._planned = planned
        self.hertz = hertz
        self.skipped = 0
        self.phase: Callable[[], tuple[int, int]] = lambda: (0, self.now)
        self._events: list[Event] = []
        self._order = itertools.count()

    @property
    def now(self) -> int:
        """Core cycles; inside a register access those in front of the accessing instruction."""
        return self._now()

    @property
    def seconds(self) -> float:
        """`now` at the core's clock frequency."""
        return self.now / self.hertz

    def at(self, cycle: int, happen: Callable[[], None]) -> Event:
        """Let something happen at a cycle, or at the next moment where that is over.

        The core goes on until then. It notices between two blocks of code, so that an interrupt
        raised by the event may come some instructions later.
        """
        event = Event(cycle, next(self._order), happen)
        heapq.heappush(self._events, event)
        self._planned(self._events[0].cycle)
        return event

    @property
    def next_event(self) -> int | None:
        """The cycle of the next event; None where nothing will happen by itself."""
        while self._events and self._events[0].cancelled:
            heapq.heappop(self._events)
        return self._events[0].cycle if self._events else None

    def run_due(self) -> None:
        """Let happen what is due, in the order of its time."""
        while (cycle := self.next_event) is not None and cycle <= self.now:
            heapq.heappop(self._events).happen()

    def wait_until(self, cycle: int) -> int:
        """Let the core stand still until ``cycle``; returns the cycles that passed.

        The time is skipped ahead, not simulated: it counts as cycles and as no instruction. What
        is due in between happens. A cycle that is over waits for nothing.
        """
        start = self.now
        while (due := self.next_event) is not None and due < cycle:
            self._stand_still(due - self.now)
            self.run_due()
        self._stand_still(cycle - self.now)
        return self.now - start

    def _stand_still(self, cycles: int) -> None:
        if cycles > 0:
            self._skip(cycles)
            self.skipped += cycles
