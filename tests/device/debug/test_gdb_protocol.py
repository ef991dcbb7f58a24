"""The server of GDB's remote protocol byte by byte: what GDB itself never sends, too."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from covp.chip.platform_file import load_platform
from covp.device.debug.gdb_stub import GdbStub
from covp.device.debug.server import DebugServer
from covp.device.debug.target import DebugTarget
from covp.device.virtual import VirtualDevice

RAM, FLASH = 0x20000000, 0x08000000


class Client:
    """The other end, written down once more from the manual."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.socket.close()

    def raw(self, size: int) -> bytes:
        """The next bytes that are not "+"."""
        while len(self.buffer) < size:
            self.buffer = (self.buffer + self.socket.recv(65536)).lstrip(b"+")
        found, self.buffer = self.buffer[:size], self.buffer[size:]
        return found

    def send(self, payload: bytes) -> None:
        self.socket.sendall(frame(payload))

    def receive(self) -> bytes:
        while True:
            start, end = self.buffer.find(b"$"), self.buffer.find(b"#")
            if 0 <= start < end and len(self.buffer) >= end + 3:
                payload, sum_ = self.buffer[start + 1 : end], self.buffer[end + 1 : end + 3]
                self.buffer = self.buffer[end + 3 :]
                assert int(sum_, 16) == sum(payload) & 0xFF
                self.socket.sendall(b"+")
                return payload
            piece = self.socket.recv(65536)
            assert piece, "the server closed the connection"
            self.buffer += piece

    def ask(self, payload: bytes) -> bytes:
        self.send(payload)
        return self.receive()


def frame(payload: bytes) -> bytes:
    escaped = b"".join(
        bytes([0x7D, byte ^ 0x20]) if byte in b"#$}*" else bytes([byte]) for byte in payload
    )
    return b"$%s#%02x" % (escaped, sum(escaped) & 0xFF)


@pytest.fixture(scope="module")
def target() -> Iterator[DebugTarget]:
    with VirtualDevice(load_platform("cortex-m7")) as device, DebugTarget(device) as target:
        yield target


@pytest.fixture
def port(target: DebugTarget) -> Iterator[int]:
    target.reset(halt=True)
    before = set(threading.enumerate())
    with DebugServer(GdbStub(target).serve) as server:
        yield server.port
        assert not server.failures
    assert set(threading.enumerate()) <= before


@pytest.fixture
def client(port: int) -> Iterator[Client]:
    with Client(port) as client:
        yield client


def test_what_is_offered(client: Client) -> None:
    features = client.ask(b"qSupported:multiprocess+;swbreak+").split(b";")
    offered = (b"QStartNoAckMode+", b"qXfer:features:read+", b"qXfer:memory-map:read+",
               b"swbreak+", b"hwbreak+", b"vContSupported+")  # fmt: skip
    assert set(offered) <= set(features)
    size = next(int(f[11:], 16) for f in features if f.startswith(b"PacketSize="))
    client.send(b"X%x,%x:" % (RAM, size - 20) + b"\xaa" * (size - 20))
    assert client.receive() == b"OK"
    assert client.ask(b"m%x,4" % (RAM + size - 24)) == b"aaaaaaaa"


def test_unknown_packets_are_answered_empty(client: Client) -> None:
    for packet in (b"vMustReplyEmpty", b"qNonsense", b"Q", b"_", b"Z9,0,4", b"vFlash", b"", b"y"):
        assert client.ask(packet) == b""


def test_malformed_packets_are_refused(client: Client, target: DebugTarget) -> None:
    packets = (
        b"m", b"m1", b"mx,4", b"m-1,4", b"m0x1,4", b"m 1,4", b"m123456789,4", b"M%x,2:aa" % RAM,
        b"M%x,1:zz" % RAM, b"X%x,2:a" % RAM, b"p", b"p99", b"P0=12", b"Pff=00000000", b"Gaa", b"G",
        b"Z0,1", b"Z2,%x,0" % RAM, b"vCont;x", b"vCont;", b"cqq", b"qRcmd,0", b"vFlashErase:1",
        b"qXfer:features:read:target.xml:0", b"qXfer:features:read:target.xml:-1,4",
    )  # fmt: skip
    for packet in packets:
        assert client.ask(packet).startswith(b"E"), packet
    assert target.is_halted
    assert client.ask(b"qC") == b"QC1"


def test_memory_that_is_not_there(client: Client) -> None:
    for packet in (b"m60000000,4", b"M60000000,1:00", b"X60000000,1:a", b"M40023c04,4:11111111"):
        assert client.ask(packet) == b"E0e"  # the last one: no key of the flash controller
    assert client.ask(b"m%x,0" % RAM) == b""
    assert client.ask(b"X60000000,0:") == b"OK"


def test_flash_is_erased_and_written(client: Client, target: DebugTarget) -> None:
    assert client.ask(b"vFlashErase:%x,400" % FLASH) == b"OK"
    assert client.ask(b"vFlashWrite:%x:#$}*\x00" % (FLASH + 1)) == b"OK"
    assert client.ask(b"vFlashDone") == b"OK"
    assert target.read_memory(FLASH, 8) == b"\xff#$}*\x00\xff\xff"
    assert client.ask(b"vFlashWrite:%x:a" % RAM) == b"E.memtype"
    assert client.ask(b"vFlashErase:%x,fffff000" % FLASH) == b"E.memtype"


def test_documents_come_in_pieces(client: Client) -> None:
    whole = client.ask(b"qXfer:features:read:target.xml:0,3fff")
    assert whole[:1] == b"l"
    text, start = b"", 0
    while True:
        piece = client.ask(b"qXfer:features:read:target.xml:%x,64" % start)
        text, start = text + piece[1:], start + len(piece) - 1
        if piece[:1] == b"l":
            break
    assert text == whole[1:] and text.count(b"<reg ") == 17 + 17 + 6
    assert client.ask(b"qXfer:features:read:target.xml:fffff,64") == b"l"
    assert client.ask(b"qXfer:features:read:other.xml:0,64") == b"E00"


def test_registers_all_and_one(client: Client, target: DebugTarget) -> None:
    target.write_register("r3", 0x11223344)
    everything = client.ask(b"g")
    assert len(everything) == 17 * 8 and everything[24:32] == b"44332211"
    assert client.ask(b"P3=78563412") == b"OK" and client.ask(b"p3") == b"78563412"
    changed = everything[:24] + b"01000000" + everything[32:]
    assert client.ask(b"G" + changed) == b"OK"
    assert target.read_register("r3") == 1


def test_breakpoints_are_set_once(client: Client, target: DebugTarget) -> None:
    write_loop(target)
    for _ in range(2):
        assert client.ask(b"Z1,%x,2" % RAM) == b"OK"
    assert client.ask(b"c%x" % RAM) == b"T05hwbreak:;thread:1;"  # at once
    assert client.ask(b"s") == b"T05thread:1;"
    assert client.ask(b"c") == b"T05hwbreak:;thread:1;"
    for _ in range(2):
        assert client.ask(b"z1,%x,2" % RAM) == b"OK"
    assert client.ask(b"Z0,%x,2" % (RAM + 2)) == b"OK"
    assert client.ask(b"vCont;c:-1") == b"T05swbreak:;thread:1;"


def test_a_range_is_stepped_through(client: Client, target: DebugTarget) -> None:
    write_loop(target, count=100)
    client.ask(b"P0=00000000")
    assert client.ask(b"vCont;r%x,%x:1;c" % (RAM, RAM + 6)) == b"T05thread:1;"
    assert target.read_register("pc") == RAM + 6 and target.read_register("r0") == 100
    client.ask(b"c%x" % (RAM + 6))  # into nothing: a fault, and the text of it


def test_an_interrupt_between_steps_and_in_a_run(client: Client, target: DebugTarget) -> None:
    for way in (b"c", b"vCont;r%x,%x:1" % (RAM, RAM + 4)):
        write_loop(target)
        client.send(way)
        while not target.read_register("r0"):
            pass
        client.socket.sendall(b"\x03")
        assert client.receive() == b"T02thread:1;"
    assert target.is_halted
    client.socket.sendall(b"\x03")  # it stands already: no answer
    assert client.ask(b"qC") == b"QC1"


def test_a_fault_is_told_before_the_stop(client: Client, target: DebugTarget) -> None:
    target.write_memory(RAM, bytes.fromhex("0168"))  # ldr r1, [r0]
    target.write_register("r0", 0x60000000)
    target.write_register("pc", RAM)
    client.send(b"c")
    told = client.receive()
    assert told[:1] == b"O" and b"unmapped read" in bytes.fromhex(told[1:].decode())
    assert client.receive() == b"T0bthread:1;"
    assert client.ask(b"?") == b"T0bthread:1;"


def test_a_lost_connection_takes_its_breakpoints_along(port: int, target: DebugTarget) -> None:
    write_loop(target)
    with Client(port) as client:
        client.ask(b"Z0,%x,2" % RAM)
    with Client(port) as client:
        client.send(b"c")
        while target.read_register("r0") < 10:
            pass
        client.socket.sendall(b"\x03")
        assert client.receive() == b"T02thread:1;"


def test_a_second_client_waits_for_the_first(port: int) -> None:
    with Client(port) as first, Client(port) as second:
        second.send(b"qC")
        assert first.ask(b"qC") == b"QC1"
        first.socket.close()
        assert second.receive() == b"QC1"


def test_acknowledgements(client: Client) -> None:
    assert client.ask(b"qC") == b"QC1"
    client.socket.sendall(b"$qC#00")
    assert client.raw(1) == b"-"
    client.socket.sendall(b"-")
    assert client.receive() == b"QC1"  # once more
    assert client.ask(b"QStartNoAckMode") == b"OK"
    client.socket.sendall(b"$qC#00" + frame(b"qAttached"))
    assert client.raw(5) == b"$1#31"


def test_a_client_that_goes_while_the_core_runs(port: int, target: DebugTarget) -> None:
    write_loop(target)
    with Client(port) as client:
        client.send(b"c")
    with Client(port) as client:
        assert client.ask(b"?") == b"T02thread:1;"
    assert target.is_halted


def write_loop(target: DebugTarget, count: int | None = None) -> None:
    """r0 counts up; for ever, or to ``count`` <= 255 and then past the loop."""
    target.halt()
    code = "0130" + ("fde7" if count is None else f"{count:02x}28fcd1")
    target.write_memory(RAM, bytes.fromhex(code))
    target.write_register("pc", RAM)
    target.write_register("r0", 0)


LETTERS = b"?gGpPmMXZzcsCSvqQHTDkR!"
payloads = st.one_of(
    st.binary(max_size=40),
    st.builds(lambda letter, rest: letter + rest, st.sampled_from([bytes([b]) for b in LETTERS]),
              st.text("0123456789abcdef,:;=-", max_size=30).map(str.encode)),
    st.sampled_from([b"vCont;c", b"vCont;s:1", b"vCont;r0,ffffffff", b"c", b"s", b"D", b"k",
                     b"QStartNoAckMode", b"vFlashErase:8000000,100000", b"qSupported:x",
                     b"Z2,20000000,ffffffff", b"qRcmd,7265736574", b"m20000000,ffffffff"]),
)  # fmt: skip
pieces = st.one_of(
    st.binary(max_size=60), payloads.map(frame), st.sampled_from([b"\x03", b"+", b"-", b"$", b"#"])
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(pieces, max_size=12), st.booleans())
def test_nothing_breaks_the_server(
    port: int, target: DebugTarget, sent: list[bytes], rude: bool
) -> None:
    with Client(port) as client:
        try:
            client.socket.sendall(b"".join(sent))
            if not rude:
                client.socket.shutdown(socket.SHUT_WR)
                while client.socket.recv(65536):
                    pass
        except ConnectionError:
            pass  # it may hang up
    with Client(port) as good:
        assert good.ask(b"?")[:1] == b"T"
        assert len(good.ask(b"g")) == 17 * 8
        assert good.ask(b"M%x,4:01020304" % RAM) == b"OK"
        assert good.ask(b"m%x,4" % RAM) == b"01020304"
        assert target.is_halted
