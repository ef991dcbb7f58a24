"""A GDB server with one core, until a test lets it do something else."""

from __future__ import annotations

import socket
from collections.abc import Callable

from covp.device.rsp_link import Decoder, Packet, Signal, encode

from .fake_server import FakeServer

Misbehave = Callable[[socket.socket, bytes], bool]
"""What a server does instead of answering a packet; whether it did something."""

_PC = 15


class FakeGdb(FakeServer):
    """Memory and GDB's own numbers of Arm registers; it halts at its breakpoint at once.

    Attributes:
        misbehave: replaces the answer to a packet, after its acknowledgement.
        features: the answer to the greeting.
        packets, signals: all that came.
    """

    def __init__(self) -> None:
        self.misbehave: Misbehave = lambda client, data: False
        self.features = b"PacketSize=400"
        self.packets: list[bytes] = []
        self.signals: list[str] = []
        self._memory: dict[int, int] = {}
        self._registers = [0] * 26
        self._breakpoint = 0
        super().__init__()

    def __enter__(self) -> FakeGdb:
        return self

    @property
    def name(self) -> str:
        """As in errors."""
        return f"gdb:127.0.0.1:{self.port}"

    def answer_all(self, client: socket.socket) -> None:
        decoder = Decoder()
        while data := client.recv(1 << 16):
            for item in decoder.feed(data):
                if isinstance(item, Signal):
                    self.signals.append(item.byte)
                if item == Signal("\x03") and not self.misbehave(client, b"\x03"):
                    client.sendall(encode(b"T02"))
                if isinstance(item, Packet):
                    self.packets.append(item.data)
                    client.sendall(b"+")
                    if not self.misbehave(client, item.data):
                        client.sendall(encode(self._answer(item.data)))

    def _answer(self, data: bytes) -> bytes:
        kind, rest = data[:1], data[1:].decode("latin1")
        if data.startswith(b"qSupported"):
            return self.features
        if kind in b"?c":
            if kind == b"c":
                self._registers[_PC] = self._breakpoint
            return b"T05"
        if kind == b"g":
            general = b"".join(value.to_bytes(4, "little") for value in self._registers[:16])
            return (
                (general + bytes(4 * 9) + self._registers[25].to_bytes(4, "little")).hex().encode()
            )
        if kind == b"p":
            return self._registers[int(rest, 16)].to_bytes(4, "little").hex().encode()
        if kind == b"P":
            number, _, value = rest.partition("=")
            self._registers[int(number, 16)] = int.from_bytes(bytes.fromhex(value), "little")
        if kind == b"Z":
            self._breakpoint = int(rest.split(",")[1], 16)
        if kind in (b"m", b"M"):
            return self._access(rest)
        return b"OK" if kind in b"PZz" or data.startswith(b"qRcmd") else b""

    def _access(self, text: str) -> bytes:
        place, _, content = text.partition(":")
        start, size = (int(part, 16) for part in place.split(","))
        for offset, byte in enumerate(bytes.fromhex(content)):
            self._memory[start + offset] = byte
        if content:
            return b"OK"
        return bytes(self._memory.get(start + offset, 0) for offset in range(size)).hex().encode()
