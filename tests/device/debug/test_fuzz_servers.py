"""Whatever bytes a client sends to a debug server: the next client is served properly."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covp.chip.platform_file import load_platform
from covp.device.debug.gdb_stub import GdbStub
from covp.device.debug.remote_bitbang import debug_port
from covp.device.debug.server import DebugServer
from covp.device.debug.target import DebugTarget
from covp.device.rsp_link import encode
from covp.device.virtual import VirtualDevice

TIMEOUT = 20  # seconds for an answer; beyond that the server is stuck


# -- what is nearly right ----------------------------------------------------------------------

ADDRESSES = st.one_of(
    st.sampled_from([0, 0x08000000, 0x20000000, 0x80000000, 0xE000EDF0, 0xE000ED0C, 0xFFFFFFFE]),
    st.integers(0, 0xFFFFFFFF),
)
SIZES = st.one_of(st.integers(0, 64), st.sampled_from([0xFFFF, 0x10000, 0xFFFFFFFF]))


def usb(kind: int, sub: int, address: int, rest: bytes, way: int, size: int) -> bytes:
    """A USB transfer of the ST-Link's TCP protocol, without the data that follows."""
    command = bytes([kind, sub]) + struct.pack("<I", address) + rest
    return struct.pack("<B7x16sB3xI", 5, command, way, size)


STLINK = st.one_of(
    st.binary(max_size=48),
    st.builds(
        usb,
        st.sampled_from([0xF1, 0xF2, 0xF2, 0xF2, 0xF5, 0xF7]),
        st.integers(0, 0x60),
        ADDRESSES,
        st.binary(min_size=10, max_size=10),
        st.integers(0, 3),
        SIZES,
    ),
)
SCAN = st.sampled_from(
    [
        b"26" * 5 + b"04",  # to Test-Logic-Reset and Run-Test/Idle
        b"26260404",  # to Shift-IR
        b"260404",  # to Shift-DR
        b"2626",  # through Exit1 to Update
        b"04",
        *(b"0R4" * 32, b"1R5" * 7, b"15" * 35, b"04" * 35, b"0415" * 20),
    ]
)
JTAG = st.one_of(
    SCAN, SCAN, st.text("01234567Rrstu\n", max_size=64).map(str.encode), st.binary(max_size=8)
)
HEX = st.text("0123456789abcdef", max_size=16)
GDB = st.one_of(
    st.binary(max_size=32),
    st.binary(max_size=32).map(encode),
    st.sampled_from([b"+", b"-", b"\x03", b"$", b"#", b"$}#7d", b"$*#2a"]),
    st.builds(
        lambda kind, address, size, data: encode(f"{kind}{address:x},{size:x}:{data}".encode()),
        st.sampled_from([*"mMXZzpPGgcsCSHTkD?", "Z0,", "Z2,", "vCont;", "qXfer:features:read:"]),
        ADDRESSES,
        SIZES,
        HEX,
    ),
    st.sampled_from([b"QStartNoAckMode", b"vCont;c", b"c", b"s", b"D", b"k", b"?"]).map(encode),
)


# -- whether a server still serves ---------------------------------------------------------------


def answered(client: socket.socket, request: bytes, size: int) -> bytes:
    client.sendall(request)
    answer = b""
    while len(answer) < size:
        piece = client.recv(size - len(answer))
        assert piece, "the server closed the connection"
        answer += piece
    return answer


def stlink_serves(client: socket.socket) -> None:
    """READDEBUGREG of CPUID: a Cortex-M7 r0p1."""
    answer = answered(client, usb(0xF2, 0x36, 0xE000ED00, bytes(10), 1, 8), 12)
    assert answer == struct.pack("<3I", 1, 0x80, 0x410FC271)


def jtag_serves(idcode: int) -> Callable[[socket.socket], None]:
    """The first 32 bits of the data register after a reset: IDCODE of the port next to TDO."""

    def serves(client: socket.socket) -> None:
        tms = [1, 1, 1, 1, 1, 0, 1, 0, 0]  # reset, idle, to Shift-DR
        edges = "".join(f"{bit << 1}{4 | bit << 1}" for bit in tms)
        answer = answered(client, f"tr{edges}{'R04' * 32}".encode(), 32)
        assert int(answer[::-1], 2) == idcode

    return serves


def gdb_serves(memory: int) -> Callable[[socket.socket], None]:
    """A stop reply, and memory that can be written and read."""

    def serves(client: socket.socket) -> None:
        text = answered(client, encode(b"?") + encode(b"M%x,2:0ff0" % memory), 1)
        while b"OK#9a" not in text:
            text += answered(client, b"", 1)
        assert text.lstrip(b"+").startswith((b"$T", b"$S"))
        expected = b"+" + encode(b"0ff0")
        assert answered(client, b"+" + encode(b"m%x,2" % memory), len(expected)) == expected

    return serves


@dataclass(frozen=True)
class Kind:
    """A server: its platform, the bytes to send, and a check that it serves."""

    name: str
    platform: str
    pieces: st.SearchStrategy[bytes]
    serves: Callable[[socket.socket], None]

    def handler(self, target: DebugTarget) -> Callable[[socket.socket], None]:
        return GdbStub(target).serve if self.name == "gdb" else debug_port(self.name, target)


KINDS = (
    Kind("stlink", "stm32f746", STLINK, stlink_serves),
    Kind("jtag", "stm32f746", JTAG, jtag_serves(0x5BA00477)),
    Kind("jtag", "riscv32", JTAG, jtag_serves(0x10001FFF)),
    Kind("gdb", "stm32f746", GDB, gdb_serves(0x20000000)),
    Kind("gdb", "riscv32", GDB, gdb_serves(0x80000000)),
)
EVERY_KIND = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.name}-{kind.platform}")


@contextmanager
def serving(kind: Kind) -> Iterator[DebugServer]:
    """The server; after it no thread is left, and nothing failed but connections."""
    before = set(threading.enumerate())
    with VirtualDevice(load_platform(kind.platform)) as device, DebugTarget(device) as target:
        with DebugServer(kind.handler(target)) as server:
            yield server
        assert not [e for e in server.failures if not isinstance(e, ConnectionError)]
    assert set(threading.enumerate()) <= before


def connect(server: DebugServer) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


@contextmanager
def may_hang_up() -> Iterator[None]:
    """The server may end the connection; a time-out is none of that."""
    try:
        yield
    except OSError as error:
        if isinstance(error, TimeoutError):
            raise


def leave_politely(client: socket.socket) -> None:
    client.shutdown(socket.SHUT_WR)
    while client.recv(1 << 16):
        pass  # a server that is stuck runs into the time-out


def leave_rudely(client: socket.socket) -> None:
    """With a reset, and answers that were not read."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@EVERY_KIND
def test_the_next_client_is_served(kind: Kind) -> None:
    @settings(max_examples=120, deadline=None)
    @given(
        st.lists(kind.pieces, max_size=12),
        st.sampled_from([leave_politely, leave_rudely]),
        st.data(),
    )
    def check(
        pieces: list[bytes], leave: Callable[[socket.socket], None], data: st.DataObject
    ) -> None:
        sent = b"".join(pieces)
        cut = data.draw(st.integers(0, len(sent)))
        with connect(server) as client, may_hang_up():
            client.sendall(sent[:cut])
            client.sendall(sent[cut:])
            leave(client)
        with connect(server) as client:
            kind.serves(client)

    with serving(kind) as server:
        check()


@EVERY_KIND
def test_a_client_that_waits_blocks_nothing_for_ever(kind: Kind) -> None:
    """The server ends at once with a client connected that says nothing, or half of something."""
    for sent in (b"", b"\x05\1", b"$m0", b"0R"):
        with serving(kind) as server:
            client = connect(server)
            client.sendall(sent)
        client.close()


@EVERY_KIND
def test_only_this_machine_gets_in(kind: Kind) -> None:
    with serving(kind) as server:
        assert server._listener.getsockname()[0] == server.host == "127.0.0.1"
        with connect(server) as client:
            kind.serves(client)


@EVERY_KIND
def test_two_clients_are_served_one_after_the_other(kind: Kind) -> None:
    with serving(kind) as server, connect(server) as first:
        kind.serves(first)
        second = connect(server)
        first.close()
        kind.serves(second)
        second.close()
