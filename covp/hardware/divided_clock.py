"""`DividedClock`: a board's time in the cycles of a core that is slower than the board's clock."""

from __future__ import annotations

from collections.abc import Callable

from covp.hardware.clock import Clock, Event


class DividedClock(Clock):
    """A clock for the own timers of a slower core. Events are the board's.

    Args:
        clock: of the board.
        divider: its cycles per cycle of this one, rounded down in `now` and exact in `at`.
    """

    def __init__(self, clock: Clock, divider: int) -> None:
        super().__init__(lambda: clock.now // divider, lambda cycles: None, clock.hertz // divider)
        self._clock, self._divider = clock, divider

    def at(self, cycle: int, fire: Callable[[], None]) -> Event:
        """Call ``fire`` when ``cycle`` of this clock has come; see `Clock.at`."""
        return self._clock.at(cycle * self._divider, fire)
