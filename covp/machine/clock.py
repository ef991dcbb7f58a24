"""The virtual clock of a device: core cycles, moved on by the core and by waiting."""

from __future__ import annotations

from collections.abc import Callable


class Clock:
    """Time in estimated core cycles since the device was made.

    Args:
        now: gives the cycles the core has spent so far, waiting included.
        skip: adds cycles that pass without an instruction.
        hertz: of the core.
    """

    def __init__(self, now: Callable[[], int], skip: Callable[[int], None], hertz: int) -> None:
        self._now = now
        self._skip = skip
        self.hertz = hertz

    @property
    def now(self) -> int:
        """Core cycles; inside a register access those in front of the accessing instruction."""
        return self._now()

    @property
    def seconds(self) -> float:
        """`now` at the core's clock frequency."""
        return self.now / self.hertz

    def wait_until(self, cycle: int) -> int:
        """Let the core stand still until ``cycle``; returns the cycles that passed.

        The time is skipped ahead, not simulated: it counts as cycles and as no instruction. A
        cycle that is over waits for nothing.
        """
        waited = max(0, cycle - self.now)
        if waited:
            self._skip(waited)
        return waited
