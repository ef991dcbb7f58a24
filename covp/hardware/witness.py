"""`Witness`: an observer called where control flow depends on the timing of units."""

from __future__ import annotations

from typing import Protocol


class Witness(Protocol):
    """Everything that a core does depends on time at these places alone, as long as nothing but
    jobs takes time: between them it takes the same path whatever units take."""

    def on_start(self, unit: object, cycles: int) -> int:
        """A unit accepted a job of so many cycles; returns how many it is to take."""
        ...

    def on_poll(self, unit: object) -> None:
        """The core reads a unit's STATUS: it goes on when the unit is done."""
        ...

    def on_pending_read(self, unit: object, is_over: bool) -> None:
        """The core reads whether a unit's interrupt is pending: ``is_over``."""
        ...

    def on_sleep(self) -> None:
        """The core waits for an interrupt."""
        ...
