"""`BenchDevice`: a virtual device that ends a program which does not end, on a busy host too."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from covp.chip.platform_file import Platform
from covp.device.stop import Stop
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceFault

MOST_INSTRUCTIONS = 2_000_000_000
"""The limit of a call: 20 times the largest layers of a search, and seconds of the host."""
_WORKING = 8.0
"""Processor seconds within which a call ends that does not hang; most go to models' accesses."""


@dataclass(frozen=True)
class Inside:
    """The part of an execution that is a function.

    Attributes:
        start: address of its first instruction.
        end: where it returns to.
        over: called with what executes it.
    """

    start: int
    end: int
    over: Callable[[Callable[[], object]], None]


class BenchDevice(VirtualDevice):
    """A virtual device limited in instructions and in processor time, fair on a busy host.

    Args:
        platform: of the device.

    Attributes:
        inside: a part of the next executions that is looked at; None: they are whole.
    """

    def __init__(self, platform: Platform) -> None:
        super().__init__(platform)
        self.inside: Inside | None = None
        self.core.control.now = time.process_time

    def execute(
        self,
        entry: int,
        stop: int,
        timeout: float | None = None,
        max_instructions: int | None = None,
    ) -> Stop:
        """Execute within the limits of a search; ``timeout`` does not count.

        Raises:
            DeviceFault: as there; of the kind "timeout" for a program that hangs.
        """
        limit = MOST_INSTRUCTIONS if max_instructions is None else max_instructions
        part = self.inside
        if part is None:
            return self._apply_limit(entry, stop, limit)
        self._apply_limit(entry, part.start, limit)
        part.over(lambda: self._apply_limit(part.start, part.end, limit))
        return self._apply_limit(part.end, stop, limit)

    def _apply_limit(self, entry: int, stop: int, limit: int) -> Stop:
        try:
            return super().execute(entry, stop, _WORKING, limit)
        except DeviceFault as fault:
            if fault.kind == "timeout":
                fault.detail = f"the driver hangs: it did not end within {fault.detail}"
            raise
