"""`Budget`: the processor time that a search may take."""

from __future__ import annotations

import math
import os
import time


class Budget:
    """Processor time of this process and the children that it has waited for, since it was made.

    The clock on the wall would give another search on a busy host.

    Args:
        seconds: that may be used.
    """

    def __init__(self, seconds: float = math.inf) -> None:
        self.seconds = seconds
        self._began = _processor_time()

    def used(self) -> float:
        """Seconds so far."""
        return _processor_time() - self._began

    @property
    def is_spent(self) -> bool:
        """Return whether nothing is left."""
        return self.used() >= self.seconds


def _processor_time() -> float:
    times = os.times()
    return time.process_time() + times.children_user + times.children_system
