"""`ClockView`: a board's clock for one model, whose events a subclass lets come at other times."""

from __future__ import annotations

from covp.hardware.clock import Clock


class ClockView(Clock):
    """The very same clock, with the same attributes; subclasses override what a model asks of it.

    A subclass names attributes of its own in ``__slots__``: all others are the clock's.

    Args:
        clock: of the board.
    """

    __slots__ = ()

    def __init__(self, clock: Clock) -> None:
        self.__dict__ = vars(clock)
