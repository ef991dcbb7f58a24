"""`SerialFeed`: bytes from a terminal, a socket or a process for a serial port, as they come."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from covp.base.closing import Owned
from covp.hardware.clock import Clock
from covp.hardware.serial_port import SerialPort


class SerialFeed(Owned):
    """A context in which a thread reads bytes; the port gets them in the simulation's thread.

    While it is open a program that sleeps waits for it. What comes depends on the host's time: such
    a run is not repeatable. What is known before is: see `replay`.

    Args:
        port: gets the bytes.
        clock: of the board.
        read: blocks until there are bytes, and returns them; empty at the end. Such as
            ``partial(client.recv, 4096)`` of a socket, or ``stream.readline``.
    """

    def __init__(self, port: SerialPort, clock: Clock, read: Callable[[], bytes]) -> None:
        self._port, self._read = port, read
        self._source = clock.outside()
        self._thread = threading.Thread(target=self._follow, name="covp-serial", daemon=True)
        self._thread.start()

    @property
    def label(self) -> str:
        """A description of the feed, for messages."""
        return "what feeds the serial port"

    def close(self) -> None:
        """Stop the feed; the thread ends with its next read."""
        self._source.close()

    def _follow(self) -> None:
        try:
            while data := self._read():
                self._source.post(partial(self._port.feed, data))
        except OSError:
            pass  # the other side has gone, as at the end
        finally:
            self._source.close()
