"""`GdbLink`: packets of GDB's remote protocol over a socket, acknowledged."""

from __future__ import annotations

import socket
from collections import deque

from covp.device.rsp import Damaged, Decoder, Packet, Signal, encode

_RECEIVE = 1 << 16
_SEND_TIMEOUT = 10.0  # seconds for GDB to take what is sent


class Closed(Exception):
    """GDB has gone."""


class GdbLink:
    """The server's end of one connection.

    Attributes:
        acknowledges: packets are answered with + or -; False after QStartNoAckMode.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.acknowledges = True
        self._connection = connection
        self._decoder = Decoder()
        self._waiting: deque[bytes | None] = deque()
        self._sent = b""

    def receive(self) -> bytes | None:
        """The next packet; None for the interrupt byte. Raises Closed."""
        while not self._waiting:
            self._take(None)
        return self._waiting.popleft()

    def interrupted(self) -> bool:
        """Whether an interrupt byte has come; packets after it stay. Raises Closed."""
        self._take(0.0)
        if self._waiting and self._waiting[0] is None:
            self._waiting.popleft()
            return True
        return False

    def send(self, payload: bytes) -> None:
        """Send a packet. Raises Closed."""
        self._sent = encode(payload)
        self._put(self._sent)

    def _take(self, seconds: float | None) -> None:
        """Receive the bytes that come within the time; None: wait."""
        try:
            self._connection.settimeout(seconds)
            data = self._connection.recv(_RECEIVE)
        except (TimeoutError, BlockingIOError):
            return
        except OSError:
            raise Closed from None
        if not data:
            raise Closed
        for item in self._decoder.feed(data):
            if isinstance(item, Packet):
                self._acknowledge(b"+")
                self._waiting.append(item.data)
            elif isinstance(item, Damaged):
                self._acknowledge(b"-")
            elif item == Signal("\x03"):
                self._waiting.append(None)
            elif item == Signal("-") and self.acknowledges:
                self._put(self._sent)

    def _acknowledge(self, sign: bytes) -> None:
        if self.acknowledges:
            self._put(sign)

    def _put(self, data: bytes) -> None:
        try:
            self._connection.settimeout(_SEND_TIMEOUT)
            self._connection.sendall(data)
        except OSError:
            raise Closed from None
