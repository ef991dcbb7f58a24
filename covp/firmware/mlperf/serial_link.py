"""`SerialLink`, the cable between a board's serial port and a terminal, and its `Pace`."""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Callable
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


_POLLS = 16  # reads without a byte in a row, after which the core is said to wait
_CYCLES = 200  # at most between two of them; an inference takes more
_REST = 0.05  # seconds that a waiting core is left alone at once
_ALIVE = 3.0  # seconds of silence during a command; the runner gives up after 5


class SerialLink:
    """Lines go out as they are complete; what comes in waits until the core asks for a byte.

    While a command is executed and says nothing, an empty line every few seconds tells the runner
    that the board is alive, as bridges of serial ports do.

    Args:
        clock: of the board.
        send: gets what goes out.
        on_line: called with every line of the board, without its end, in the core's thread.

    Attributes:
        pace: asked before lines go out; set before the core runs.
    """

    pace: Pace

    def __init__(
        self, clock: Clock, send: Callable[[bytes], None], on_line: Callable[[bytes], None]
    ) -> None:
        self._clock, self._send, self._on_line = clock, send, on_line
        self._line = bytearray()
        self._incoming: deque[bytes] = deque()
        self._changed = threading.Condition()
        self._polls, self._last_poll = 0, 0
        self._busy, self._latest = False, time.monotonic()

    # -- the core's side, in its thread -------------------------------------------------------

    def on_byte(self, byte: int) -> None:
        """Take a byte that the core has sent."""
        self._polls = 0
        self._line.append(byte)
        if byte != 0x0A:
            return
        line, self._line = bytes(self._line), bytearray()
        self.pace.before(line)
        text = line.rstrip()
        if text == b"m-ready":
            self._busy = False
        self._on_line(text)
        self._latest = time.monotonic()
        self._send(line)

    def take(self) -> bytes:
        """Return the bytes that have come since the last call.

        A core that polls is halted for moments, so that a board without work does not keep the
        host busy.
        """
        now = self._clock.now
        self._polls = self._polls + 1 if now - self._last_poll < _CYCLES else 0
        self._last_poll = now
        with self._changed:
            if not self._incoming and self._polls >= _POLLS:
                self._changed.wait(_REST)
                self.pace.on_wait()
                self._last_poll = self._clock.now
            data = b"".join(self._incoming)
            self._incoming.clear()
        return data

    # -- the terminal's side ------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Take what a client has written. Thread-safe."""
        with self._changed:
            self._incoming.append(data)
            self._changed.notify_all()
        if b"%" in data:
            self._latest, self._busy = time.monotonic(), True

    def keep_alive(self) -> None:
        """Send an empty line if a command goes on for long; call it regularly. Thread-safe."""
        if self._busy and time.monotonic() - self._latest > _ALIVE:
            self._latest = time.monotonic()
            self._send(b"\r\n")
