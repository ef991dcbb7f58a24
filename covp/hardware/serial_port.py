"""`SerialPort`, what serial ports have in common, and `SerialFeed`: a terminal's bytes for one."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from functools import partial

from covp.base.closing import Owned
from covp.hardware.clock import Clock, Event
from covp.hardware.peripheral import Peripheral

BITS = 10
"""Bits of a frame: a start bit, eight data bits, a stop bit."""


class SerialPort(Peripheral):
    """A serial port; its outside is the other end of the cable.

    What the core sends goes at once. What is fed waits on the line until the receiver has room, so
    that nothing is lost; of a port that is ``paced`` the bytes come a frame apart at the baud rate
    that the core has set, and one that finds no room is lost.

    Args:
        on_byte: called with every byte the core sends.
        paced: bytes come at the baud rate.
        hertz: of the clock that the baud rate is divided from; by default the core's.

    Attributes:
        sent: everything the core sent since the last reset.
        received: the bytes in the receiver, for models; `take` takes one out.
        on_empty: called before the core reads a register while no byte has come for it; it may
            `feed` some.
    """

    def __init__(
        self,
        on_byte: Callable[[int], None] | None = None,
        paced: bool = False,
        hertz: int | None = None,
    ) -> None:
        self.on_byte, self.paced, self._hertz = on_byte, paced, hertz
        self.on_empty: Callable[[], None] | None = None
        self.sent = bytearray()
        self.received: deque[int] = deque()
        self._line: deque[int] = deque()
        self._frame: Event | None = None
        super().__init__()

    def reset(self) -> None:
        """Drop what was sent and received."""
        super().reset()
        for data in (self.sent, self.received, self._line):
            data.clear()
        if self._frame is not None:
            self._frame.cancel()
            self._frame = None

    def read_register(self, offset: int, size: int) -> int:
        """Read ``size`` bytes at ``offset``, after `look`."""
        self.look()
        return super().read_register(offset, size)

    def needs_exact_time(self, offset: int, is_store: bool) -> bool:
        """Return whether bytes take time, for any ``offset`` and ``is_store``."""
        return self.paced

    # -- outside ------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """The bytes that the core sent, as UTF-8."""
        return self.sent.decode("utf-8", errors="replace")

    def feed(self, data: bytes) -> None:
        """Append bytes for the core to receive."""
        self._line.extend(data)
        self._listen()

    @property
    def baud(self) -> float | None:
        """Bits per second as the core has set them; None where that is no valid rate."""
        return None

    # -- for models ---------------------------------------------------------------------------

    @property
    def hertz(self) -> int:
        """The frequency of the clock that the baud rate is divided from."""
        return self.clock.hertz if self._hertz is None else self._hertz

    @property
    def depth(self) -> float:
        """Number of bytes that the receiver can hold."""
        return float("inf")

    @property
    def is_listening(self) -> bool:
        """True if the receiver is on."""
        return True

    def transmit(self, byte: int) -> None:
        """Send a ``byte``."""
        self.sent.append(byte)
        if self.on_byte is not None:
            self.on_byte(byte)

    def take(self) -> int:
        """Take the receiver's oldest byte, 0 where there is none; the line may fill its place."""
        byte = self.received.popleft() if self.received else 0
        self._listen()
        return byte

    def look(self) -> None:
        """Call `on_empty` where nothing is to be received; for classes with a `read_register`."""
        if self.on_empty is not None and not self.received and not self._line:
            self.on_empty()

    def listen(self) -> None:
        """Receive again: the receiver may have been switched on, or have more room."""
        self._listen()

    def arrived(self) -> None:
        """Handle bytes that have come into the receiver; a hook."""

    def overrun(self, byte: int) -> None:
        """Handle a byte that came and found no room; a hook."""

    def _listen(self) -> None:
        if self.paced:
            self._await_frame()
            return
        before = len(self.received)
        while self._line and self.is_listening and len(self.received) < self.depth:
            self.received.append(self._line.popleft())
        if len(self.received) > before:
            self.arrived()

    def _await_frame(self) -> None:
        if self._frame is not None or not self._line:
            return
        cycles = round(BITS * self.clock.hertz / self.baud) if self.baud else 0
        self._frame = self.clock.at(self.clock.now + cycles, self._end_frame)

    def _end_frame(self) -> None:
        self._frame = None
        byte = self._line.popleft()
        if self.is_listening and len(self.received) < self.depth:
            self.received.append(byte)
            self.arrived()
        elif self.is_listening:
            self.overrun(byte)
        self._await_frame()


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
