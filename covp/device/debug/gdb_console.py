"""`GdbConsole`: a program's standard streams, at the GDB that is attached."""

from __future__ import annotations

import threading

from covp.device.semihosting import Console


class GdbConsole:
    """Output goes to GDB's console while there is a GDB, else to the server's terminal.

    Args:
        terminal: of the server; all input comes from there.
    """

    is_terminal = True

    def __init__(self, terminal: Console) -> None:
        self._terminal = terminal
        self._lock = threading.Lock()
        self._attached = False
        self._pending = bytearray()

    def attach(self) -> None:
        """Keep output for a GDB that calls `take` from now on."""
        self._attached = True

    def detach(self) -> None:
        """Send what GDB did not take to the terminal, as it has disconnected."""
        with self._lock:
            self._attached = False
        if rest := self.take():
            self._terminal.write(rest, is_error=False)

    def take(self) -> bytes:
        """Return the output since the last call. From GDB's thread, while the core's may write."""
        with self._lock:
            taken = bytes(self._pending)
            self._pending.clear()
        return taken

    def write(self, data: bytes, is_error: bool) -> None:
        """Send ``data`` to GDB where it is attached, else to the terminal."""
        with self._lock:
            if self._attached:
                self._pending += data
                return
        self._terminal.write(data, is_error)

    def read(self, size: int) -> bytes | None:
        """Read up to ``size`` bytes from the terminal."""
        return self._terminal.read(size)
