"""`Witness`: an observer called where control flow depends on the timing of units."""

from __future__ import annotations

from typing import Protocol


class Witness(Protocol):
    """Everything that a core does depends on time at these places alone, as long as nothing but
    jobs takes time: between them it takes the same path whatever units take."""

    def on_start(self, unit: object, cycles: int) -> int:
        """Note that a unit accepted a job of ``cycles``; return how many it is to take."""
        ...

    def on_poll(self, unit: object) -> None:
        """Note that the core reads a unit's STATUS: it goes on when the unit is done."""
        ...

    def on_pending_read(self, unit: object, is_over: bool) -> None:
        """Note that the core reads whether a unit's interrupt is pending: ``is_over``."""
        ...

    def on_sleep(self) -> None:
        """Note that the core waits for an interrupt."""
        ...
