"""`replay`: what happened outside, at its times, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from covp.errors import AcceleratorError
from covp.hardware.clock import Clock, Event

Item = TypeVar("Item")


class Replay:
    """The events that are still to come; `replay` makes it.

    Attributes:
        done: how many have happened.
    """

    def __init__(self) -> None:
        self.done = 0
        self._next: Event | None = None

    def cancel(self) -> None:
        """Stop: no further event happens."""
        if self._next is not None:
            self._next.cancel()
            self._next = None


def replay(
    clock: Clock, events: Iterable[tuple[float, Item]], act: Callable[[Item], None]
) -> Replay:
    """Do something again at recorded times, such as `SerialPort.feed` with the lines of a log.

    Args:
        clock: of the board.
        events: (seconds from now, item), in the order of time; the next one of a generator
            is taken when the one before has happened.
        act: called with each item at its time.

    Raises:
        AcceleratorError: a time is before the one of the event before it; also while it runs.
    """
    state, begin = Replay(), clock.now
    waiting = iter(events)

    def plan(after: float) -> None:
        state._next = None
        event = next(waiting, None)
        if event is None:
            return
        seconds, item = event
        if not after <= seconds < float("inf"):
            raise AcceleratorError(
                f"event {state.done} to replay is at {seconds} s, the one before at {after} s; "
                "they must be in the order of time"
            )

        def happen() -> None:
            state.done += 1
            act(item)
            plan(seconds)

        state._next = clock.at(begin + round(seconds * clock.hertz), happen)

    plan(0.0)
    return state
