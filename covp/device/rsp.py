"""Framing of the GDB remote serial protocol: bytes in, packets out, no sockets.

GDB's manual, appendix E.1: ``$data#checksum``, escapes with ``}``, run lengths with ``*``, ``+``
and ``-`` as acknowledgements, 0x03 as interrupt.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    """A packet with that content."""
    body = bytearray()
    for byte in data:
        if byte in _ESCAPED:
            body += bytes([_ESCAPE, byte ^ 0x20])
        else:
            body.append(byte)
    return b"$" + bytes(body) + b"#%02x" % (sum(body) & 0xFF)


class Decoder:
    """Takes bytes as they come and gives what is complete."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[Item]:
        """The packets, signals and damaged packets that these bytes complete, in order."""
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
        return Damaged(f"checksum {sent!r} is no number")
    if checksum != sum(body) & 0xFF:
        return Damaged(f"checksum 0x{checksum:02x} instead of 0x{sum(body) & 0xFF:02x}")
    return _expanded(body)


def _expanded(body: bytes) -> Item:
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
