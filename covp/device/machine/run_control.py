"""`RunControl`: a halt request and a deadline, which end a run from outside."""

from __future__ import annotations

import time
from collections.abc import Callable


class RunControl:
    """Shared by everything that may keep a core busy: running, polling, sleeping.

    Attributes:
        now: the clock of the deadline, in seconds.
        deadline: its time at which a run ends.
        halt_requested: set from any thread.
    """

    def __init__(self) -> None:
        self.now: Callable[[], float] = time.monotonic
        self.deadline = 0.0
        self.halt_requested = False

    def begin(self, deadline: float) -> None:
        """Start a run."""
        self.deadline, self.halt_requested = deadline, False

    def is_over(self) -> bool:
        """Return whether the run has to end now."""
        return self.halt_requested or self.is_late()

    def is_late(self) -> bool:
        """Return whether the deadline has passed."""
        return self.now() > self.deadline
