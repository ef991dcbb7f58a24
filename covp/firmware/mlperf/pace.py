"""`Pace`: how virtual time and that of the host go together, seen from a board's serial port."""

from __future__ import annotations

import re
import threading
import time
from typing import Protocol

from covp.hardware.clock import Clock

WINDOW = 2.05
"""Seconds of the host that a measured window lasts at least: the runner's five have to take 10."""

_LONGEST_SKIP = 1.0  # seconds; counters of 32 bits in the core must not go around unseen
_START = re.compile(rb"m-infer-start-(\d+)")


class Pace(Protocol):
    """Timing of a serial port: consulted before each line and after each wait for input."""

    def before(self, line: bytes) -> None:
        """Return when the host may see a line that the core has sent."""
        ...

    def on_wait(self) -> None:
        """Note that the core polls for input and the host has let it wait."""
        ...


class Fast:
    """Pace of the emulator; while the core waits for input no virtual time passes.

    A window with more than one inference takes at least `WINDOW` seconds of the host, which the
    board spends waiting: the official runner rejects five windows that are over in 10 seconds. The
    times that the board states are virtual and do not depend on it.

    Args:
        ended: ends every waiting.
    """

    def __init__(self, ended: threading.Event) -> None:
        self._ended = ended
        self._until = 0.0

    def before(self, line: bytes) -> None:
        """Hold the end of a window back."""
        if match := _START.match(line):
            self._until = time.monotonic() + WINDOW if int(match[1]) > 1 else 0.0
        elif line.startswith(b"m-infer-done"):
            self._ended.wait(max(0.0, self._until - time.monotonic()))

    def on_wait(self) -> None:
        """Do nothing."""


class Real:
    """No line is seen before its virtual time has passed on the host, and waiting takes as long.

    Args:
        clock: of the board.
        ended: ends every waiting.
    """

    def __init__(self, clock: Clock, ended: threading.Event) -> None:
        self._clock, self._ended = clock, ended
        self._start, self._first = time.monotonic(), clock.now

    def before(self, line: bytes) -> None:
        """Wait for the virtual time of the line."""
        due = self._start + (self._clock.now - self._first) / self._clock.hertz
        self._ended.wait(max(0.0, due - time.monotonic()))

    def on_wait(self) -> None:
        """Let virtual time catch up with the host's."""
        passed = round((time.monotonic() - self._start) * self._clock.hertz)
        longest = self._clock.now + round(_LONGEST_SKIP * self._clock.hertz)
        self._clock.wait_until(min(self._first + passed, longest))
