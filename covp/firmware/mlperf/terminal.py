"""`Terminal`: a pseudo terminal whose other end is a program's serial port."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import termios
import threading
import time
import tty
from collections.abc import Callable

from covp.base.closing import Owned
from covp.errors import UsageError

_TICK = 0.5  # seconds between two calls of on_tick
_READS, _READ_SECONDS = 5, 0.05  # empty looks in a row that say that all is read
_PATIENCE = 1.0  # seconds that a full terminal is waited for


class Terminal(Owned):
    """A pseudo terminal in raw mode, which clients open and close by its path as they like.

    Its own end for clients stays open: otherwise the settings would be the kernel's again when the
    last client closes it, with an echo of all that the board sends.

    Args:
        on_input: called with the bytes that a client wrote, in a thread of the terminal's own.
        on_tick: called twice a second in that thread.

    Attributes:
        path: what clients open.

    Raises:
        UsageError: this machine has no pseudo terminal to spare.
    """

    def __init__(
        self,
        on_input: Callable[[bytes], None],
        on_tick: Callable[[], None] = lambda: None,
    ) -> None:
        self._on_input, self._on_tick = on_input, on_tick
        try:
            self._master, self._slave = os.openpty()
        except OSError as error:
            raise UsageError(f"no pseudo terminal: {error.strerror}; close some") from None
        tty.setraw(self._slave)
        os.set_blocking(self._master, False)
        self.path = os.ttyname(self._slave)
        self._writing = threading.Lock()
        self._full = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="covp-terminal", daemon=True)
        self._thread.start()

    @property
    def label(self) -> str:
        """Name of the resource in errors."""
        return f"the terminal {self.path}"

    def write(self, data: bytes) -> None:
        """Send bytes to the client; what no client reads is lost, as on a cable. Thread-safe.

        A client that is slow is waited for a second; after that bytes are lost until it reads.
        """
        with self._writing:
            while data and not self._ended.is_set():
                try:
                    data = data[os.write(self._master, data) :]
                    self._full = False
                except BlockingIOError:
                    if self._full or not self._has_room():
                        self._full = True
                        return

    def drain(self, seconds: float = 10.0) -> None:
        """Return when the client has read everything and had time to look at it, or has stopped.

        Args:
            seconds: at most.
        """
        deadline, empty = time.monotonic() + seconds, 0
        while empty < _READS and time.monotonic() < deadline and not self._ended.is_set():
            waiting = fcntl.ioctl(self._slave, termios.FIONREAD, bytes(4))
            empty = 0 if any(waiting) else empty + 1
            self._ended.wait(_READ_SECONDS)

    def _has_room(self) -> bool:
        return bool(select.select([], [self._master], [], _PATIENCE)[1])

    def _serve(self) -> None:
        while not self._ended.is_set():
            with contextlib.suppress(BlockingIOError):
                if select.select([self._master], [], [], _TICK)[0]:
                    self._on_input(os.read(self._master, 65536))
                else:
                    self._on_tick()

    def close(self) -> None:
        """Disconnect the cable. A second call does nothing."""
        if self._ended.is_set():
            return
        self._ended.set()
        with contextlib.suppress(OSError):
            os.write(self._slave, b"\n")  # the thread may wait for input
        self._thread.join()
        os.close(self._master)
        os.close(self._slave)
