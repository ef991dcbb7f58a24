"""`RspLink`: requests and replies of the GDB remote protocol over a socket, with time limits."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from dataclasses import dataclass

from covp.errors import DeviceError

_START, _END, _ESCAPE, _RUN = b"$"[0], b"#"[0], b"}"[0], b"*"[0]
_ESCAPED = frozenset(b"#$}*")
_LONGEST = 1 << 22


@dataclass(frozen=True)
class Packet:
    """A packet's content, escapes and run lengths undone."""

    data: bytes


@dataclass(frozen=True)
class Signal:
    """A byte outside of packets: "+", "-" or "\\x03"."""

    byte: str


@dataclass(frozen=True)
class Damaged:
    """A packet whose checksum or form is wrong."""

    reason: str


Item = Packet | Signal | Damaged


def encode(data: bytes) -> bytes:
    """Return a packet with that content."""
    body = bytearray()
    for byte in data:
        if byte in _ESCAPED:
            body += bytes([_ESCAPE, byte ^ 0x20])
        else:
            body.append(byte)
    return b"$" + bytes(body) + b"#%02x" % (sum(body) & 0xFF)


class Decoder:
    """A decoder that takes bytes as they come and gives what is complete."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[Item]:
        """Return the packets, signals and damaged packets that these bytes complete, in order."""
        self._rest += data
        items: list[Item] = []
        while self._rest:
            if self._rest[0] != _START:
                signal = chr(self._rest.pop(0))
                if signal in "+-\x03":
                    items.append(Signal(signal))
                continue
            end = self._rest.find(_END)
            if end < 0 or len(self._rest) < end + 3:
                if len(self._rest) > _LONGEST:
                    self._rest.clear()
                    items.append(Damaged("a packet without end"))
                break
            body, sent = bytes(self._rest[1:end]), bytes(self._rest[end + 1 : end + 3])
            del self._rest[: end + 3]
            items.append(_packet(body, sent))
        return items


def _packet(body: bytes, sent: bytes) -> Item:
    try:
        checksum = int(sent, 16)
    except ValueError:
        return Damaged(f"checksum {sent!r} is not a number")
    if checksum != sum(body) & 0xFF:
        return Damaged(f"checksum 0x{checksum:02x} instead of 0x{sum(body) & 0xFF:02x}")
    return _expand(body)


def _expand(body: bytes) -> Item:
    out = bytearray()
    position = 0
    while position < len(body):
        byte = body[position]
        if byte in (_ESCAPE, _RUN):
            if position + 1 == len(body):
                return Damaged("it ends inside an escape or a run")
            count = body[position + 1]
            if byte == _ESCAPE:
                out.append(count ^ 0x20)
            elif not out or count < 29:
                return Damaged("a run length without a byte or below 3")
            else:
                out += out[-1:] * (count - 29)
            position += 2
        else:
            out.append(byte)
            position += 1
    return Packet(bytes(out))


REPLY_SECONDS = 10.0
_CLOSE_SECONDS = 0.5
_RESENDS = 3


class RspLink:
    """The client's side of one connection.

    Args:
        connected: a socket; it is closed with the link.
        transport: for messages, e.g. "gdb:127.0.0.1:3333".
    """

    def __init__(self, connected: socket.socket, transport: str) -> None:
        self.transport = transport
        self._socket = connected
        self._socket.setblocking(False)
        self._decoder = Decoder()
        self._packets: list[bytes] = []
        self._acknowledges = True
        self._damaged = 0

    def close(self) -> None:
        """End the connection; a second call does nothing.

        OpenOCD has one client: it rejects the next until it has noticed that this one is gone.
        """
        with contextlib.suppress(OSError, ValueError):
            self._socket.shutdown(socket.SHUT_WR)
            deadline = time.monotonic() + _CLOSE_SECONDS
            while (left := deadline - time.monotonic()) > 0:
                if select.select([self._socket], [], [], left)[0] and not self._socket.recv(4096):
                    break
        self._socket.close()

    def request(self, data: bytes | str, step: str, seconds: float = REPLY_SECONDS) -> bytes:
        """Return the reply to a packet; console output before it is left out.

        Raises:
            DeviceError: no reply in time, a broken connection or nonsense; names the step.
        """
        self.send(data, step)
        deadline = time.monotonic() + seconds
        while True:
            reply = self.receive(deadline - time.monotonic(), step)
            if reply is None:
                self.close()  # a reply that comes late would be taken for the next one's
                raise DeviceError(f"{self.transport}: no answer to {step} within {seconds:g} s")
            if not (reply.startswith(b"O") and reply != b"OK"):
                return reply

    def send(self, data: bytes | str, step: str) -> None:
        """Send a packet without waiting for its reply. Raises DeviceError."""
        raw = data.encode() if isinstance(data, str) else data
        self._latest = encode(raw)
        self._packets.clear()
        self._damaged = 0
        self._send(self._latest, step)

    def interrupt(self) -> None:
        """Ask a running target to stop. Raises DeviceError."""
        self._send(b"\x03", "the interrupt")

    def leave_acknowledgements(self) -> None:
        """Stop acknowledging packets, on both sides."""
        self._acknowledges = False

    def receive(self, seconds: float, step: str) -> bytes | None:
        """Return the next packet's content; None when none comes in time. Raises DeviceError."""
        deadline = time.monotonic() + seconds
        while not self._packets:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            # short looks, so that Ctrl-C is noticed
            ready, _, _ = select.select([self._socket], [], [], min(left, 0.2))
            if ready:
                self._read(step)
        return self._packets.pop(0)

    def _read(self, step: str) -> None:
        try:
            data = self._socket.recv(1 << 16)
        except OSError as error:
            raise self._broken_error(step, error) from None
        if not data:
            raise DeviceError(f"{self.transport}: the connection was closed during {step}")
        for item in self._decoder.feed(data):
            if isinstance(item, Packet):
                self._acknowledge(b"+", step)
                self._packets.append(item.data)
            elif isinstance(item, Damaged):
                self._note_damage(item.reason, step)
                self._acknowledge(b"-", step)
            elif item == Signal("-"):
                self._note_damage("the request is repeated again and again", step)
                self._send(self._latest, step)

    def _note_damage(self, reason: str, step: str) -> None:
        self._damaged += 1
        if self._damaged > _RESENDS:
            self.close()
            raise DeviceError(
                f"{self.transport}: damaged answers during {step}: {reason}; is there a GDB server "
                "on that port?"
            )

    def _acknowledge(self, sign: bytes, step: str) -> None:
        if self._acknowledges:
            self._send(sign, step)

    def _send(self, data: bytes, step: str) -> None:
        if self._socket.fileno() < 0:
            raise DeviceError(f"{self.transport}: {step}: the connection is closed; open it again")
        deadline = time.monotonic() + REPLY_SECONDS
        view = memoryview(data)
        while view:
            try:
                view = view[self._socket.send(view) :]
            except BlockingIOError:
                left = deadline - time.monotonic()
                if left <= 0 or not select.select([], [self._socket], [], left)[1]:
                    raise DeviceError(
                        f"{self.transport}: the other side takes no data during {step}"
                    ) from None
            except OSError as error:
                raise self._broken_error(step, error) from None

    def _broken_error(self, step: str, error: OSError) -> DeviceError:
        return DeviceError(f"{self.transport}: the connection broke during {step}: {error}")

    _latest = b""


def connect(host: str, port: int, transport: str, seconds: float = REPLY_SECONDS) -> socket.socket:
    """Return a TCP connection without delays. Raises DeviceError."""
    try:
        connected = socket.create_connection((host, port), seconds)
    except OSError as error:
        reason = error.strerror or error
        raise DeviceError(
            f"{transport}: cannot connect: {reason}; is the server running there?"
        ) from None
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connected


def split_address(text: str, scheme: str, default_port: int | None = None) -> tuple[str, int]:
    """Split HOST:PORT, or HOST alone where there is a default port. Raises DeviceError."""
    host, colon, port = text.rpartition(":")
    if not colon and default_port is not None:
        host, port = text, str(default_port)
    with contextlib.suppress(ValueError):
        if host and 0 < int(port) < 1 << 16:
            return host.strip("[]"), int(port)
    raise DeviceError(f"device {scheme}: {text!r} is not HOST:PORT, as in {scheme}:127.0.0.1:3333")
