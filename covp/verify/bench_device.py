"""`BenchDevice`: a virtual device that ends a program which does not end, on a busy host too."""

from __future__ import annotations

import time

from covp.device.base import Stop
from covp.device.virtual import VirtualDevice
from covp.errors import CovpError, DeviceFault

MOST_INSTRUCTIONS = 2_000_000_000
"""Of a call: 20 times those of the largest layers that a search tries, and seconds of the host."""
_WAITING = 10.0
"""Seconds of the clock that a call may take."""
_WORKING = 5.0
"""Seconds of processor time in which a call ends that does; accesses to models take most."""


class Undecided(CovpError):
    """The host was too busy to tell whether a call ends."""


class BenchDevice(VirtualDevice):
    """Limits of instructions and processor time: the clock alone shows nothing on a busy host."""

    def execute(
        self,
        entry: int,
        stop: int,
        timeout: float | None = None,
        max_instructions: int | None = None,
    ) -> Stop:
        """As `VirtualDevice.execute`, within the limits of a search by default.

        Raises:
            DeviceFault: as there.
            Undecided: the clock's limit was passed before the host did much.
        """
        limit = MOST_INSTRUCTIONS if max_instructions is None else max_instructions
        before, used = self.core.totals.instructions, time.process_time()
        try:
            return super().execute(entry, stop, _WAITING if timeout is None else timeout, limit)
        except DeviceFault as fault:
            ended = self.core.totals.instructions - before >= limit
            if fault.kind != "timeout" or ended or time.process_time() - used > _WORKING:
                raise
            raise Undecided(
                f"a call did not end within {fault.detail}, but the host was busy otherwise; "
                "try again later"
            ) from fault
