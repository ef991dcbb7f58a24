"""The GDB client against a server that misbehaves: an error that says where, and no hang."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator

import pytest

from covp.chip.platform_file import load_platform
from covp.device import gdb_remote, rsp_link
from covp.device.gdb_remote import GdbDevice
from covp.device.rsp_link import RspLink, encode
from covp.errors import DeviceFault

from .failing import NO_HANG, failing
from .fake_gdb import FakeGdb, Misbehave

RAM = 0x20000000
LIMIT = 0.4  # seconds, in place of the usual ones

Action = Callable[[socket.socket], object]


@pytest.fixture
def server() -> Iterator[FakeGdb]:
    with FakeGdb() as fake:
        yield fake


@pytest.fixture
def device(server: FakeGdb) -> Iterator[GdbDevice]:
    opened = connected(server)
    yield opened
    opened.close()


def connected(server: FakeGdb) -> GdbDevice:
    device = GdbDevice.at(load_platform("stm32f746"), f"127.0.0.1:{server.port}")
    device.timeout = LIMIT
    return device


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short limits for answers."""
    monkeypatch.setattr(rsp_link, "REPLY_SECONDS", LIMIT)
    monkeypatch.setattr(gdb_remote, "_HALT_SECONDS", LIMIT)
    monkeypatch.setattr(GdbDevice._ask, "__defaults__", ("", LIMIT))
    monkeypatch.setattr(RspLink.request, "__defaults__", (LIMIT,))


def once(start: bytes, action: Action) -> Misbehave:
    """Carry out the action instead of answering a packet that starts so, the first time only."""
    done: list[bytes] = []

    def misbehave(client: socket.socket, data: bytes) -> bool:
        if done or not data.startswith(start):
            return False
        done.append(data)
        action(client)
        return True

    return misbehave


def sends(data: bytes) -> Action:
    return lambda client: client.sendall(data)


def sends_and_goes(data: bytes) -> Action:
    def action(client: socket.socket) -> None:
        client.sendall(data)
        client.shutdown(socket.SHUT_RDWR)

    return action


def chatters(client: socket.socket) -> None:
    """Console output without end, never an answer."""
    deadline = time.monotonic() + NO_HANG
    while time.monotonic() < deadline:
        client.sendall(encode(b"O" + b"hello".hex().encode()))
        time.sleep(LIMIT / 10)


ANSWERS = {
    "dies": (sends_and_goes(b""), "connection was closed during"),
    "is cut": (sends_and_goes(b"$0000"), "connection was closed during"),
    "is cut and silent": (sends(b"$0000"), r"no answer to .* within 0\.4 s"),
    "says nothing": (sends(b""), r"no answer to .* within 0\.4 s"),
    "chatters": (chatters, r"no answer to .* within 0\.4 s"),
    "babbles": (sends(b"$00#zz" * 5), "damaged answers during"),
    "speaks another protocol": (sends(b"HTTP/1.1 400\r\n\r\n"), "no answer to"),
    "is short": (sends(encode(b"00")), "failed"),
    "is long": (sends(encode(b"00" * 8)), "failed"),
    "has no numbers": (sends(encode(b"xxxxxxxx")), "failed"),
    "refuses": (sends(encode(b"E01")), "failed"),
    "knows no such packet": (sends(encode(b"")), "failed"),
}


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("what", ANSWERS)
def test_a_read_that_fails(server: FakeGdb, device: GdbDevice, what: str) -> None:
    device.write(RAM, b"abcd")
    action, says = ANSWERS[what]
    server.misbehave = once(b"m", action)
    with failing(server.name, says, "reading 4 bytes at 0x20000000"):
        device.read(RAM, 4)
    server.misbehave = lambda client, data: False
    device.reopen()
    assert device.read(RAM, 4) == b"abcd"


@pytest.mark.usefixtures("impatient")
def test_a_late_answer_is_not_taken_for_the_next_one(server: FakeGdb, device: GdbDevice) -> None:
    def late(client: socket.socket) -> None:
        time.sleep(2 * LIMIT)
        client.sendall(encode(b"0bad0bad"))

    server.misbehave = once(b"m", late)
    with failing(server.name, "no answer"):
        device.read(RAM, 4)
    with failing(server.name, "reading 4 bytes", "closed"):
        device.read(RAM, 4)
    device.reopen()
    assert device.read(RAM, 4) == bytes(4)


def test_damaged_packets_now_and_then(server: FakeGdb, device: GdbDevice) -> None:
    """Each is requested again; a link may see many of them in the course of time."""
    for _ in range(10):
        server.misbehave = once(b"m", sends(b"$00#00" + encode(b"61626364")))
        assert device.read(RAM, 4) == b"abcd"


def test_a_packet_that_is_asked_for_again(server: FakeGdb, device: GdbDevice) -> None:
    server.misbehave = once(b"m", sends(b"-"))
    before = len(server.packets)
    assert device.read(RAM, 4) == bytes(4)
    assert server.packets[before:] == [b"m20000000,4"] * 2


STEPS: dict[bytes, tuple[str, Callable[[GdbDevice], object]]] = {
    b"m": ("reading 4 bytes at 0x20000000", lambda device: device.read(RAM, 4)),
    b"M": ("writing 4 bytes at 0x20000000", lambda device: device.write(RAM, b"abcd")),
    b"P": ("writing register r0", lambda device: device.write_register("r0", 1)),
    b"p": ("reading register r0", lambda device: device.read_register("r0")),
    b"g": ("reading the registers", lambda device: device.registers()),
    b"Z": ("setting a breakpoint at 0x20000004", lambda device: device.execute(RAM, RAM + 4)),
    b"z": ("clearing a breakpoint at 0x20000004", lambda device: device.execute(RAM, RAM + 4)),
    b"c": ("waiting for the core to halt", lambda device: device.execute(RAM, RAM + 4)),
    b"qRcmd": ("monitor reset halt", lambda device: device.reset()),
    b"qSupported": ("the greeting", lambda device: device.reopen()),
    b"?": ("the first stop", lambda device: device.reopen()),
}


# to a refusal there is another way: single registers, the defaults, software breakpoints
NOT_REFUSED = (b"g", b"qSupported", b"Z", b"z")


@pytest.mark.parametrize(
    ("step", "what"),
    [
        (step, what)
        for step in STEPS
        for what in ("is cut", "babbles", "refuses")
        if what != "refuses" or step not in NOT_REFUSED
    ],
)
def test_every_step_is_named(server: FakeGdb, device: GdbDevice, step: bytes, what: str) -> None:
    action, says = ANSWERS[what]
    name, work = STEPS[step]
    server.misbehave = once(step, action)
    with failing(server.name, name, says):
        work(device)
    server.misbehave = lambda client, data: False
    device.reopen()
    assert device.execute(RAM, RAM + 4).pc == RAM + 4


def test_neither_kind_of_breakpoint(server: FakeGdb, device: GdbDevice) -> None:
    def refuses(client: socket.socket, data: bytes) -> bool:
        if data.startswith(b"Z"):
            client.sendall(encode(b"E0E"))
        return data.startswith(b"Z")

    server.misbehave = refuses
    with failing(server.name, "setting a breakpoint at 0x20000004 failed.*E0E"):
        device.execute(RAM, RAM + 4)


# -- the greeting ---------------------------------------------------------------------------------

DESCRIPTIONS = {
    "no XML": b"lnonsense",
    "no numbers": b'l<reg name="pc" bitsize="wide" regnum="many"/>',
    "huge registers": b'l<reg name="pc" bitsize="99999999999" regnum="1"/>',
    "itself": b'l<xi:include href="target.xml"/>' * 2,
    "nothing, again and again": b"m",
    "no end": b"m" + b"<reg/>" * 100,
    "an error": b"E00",
}


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("what", DESCRIPTIONS)
def test_descriptions(server: FakeGdb, what: str) -> None:
    """Either the default registers do, or the error says that the description is to blame."""

    def describes(client: socket.socket, data: bytes) -> bool:
        if data.startswith(b"qXfer:features"):
            client.sendall(encode(DESCRIPTIONS[what]))
        return data.startswith(b"qXfer:features")

    server.features += b";qXfer:features:read+"
    server.misbehave = describes
    if what in ("no XML", "itself"):
        device = connected(server)
        assert device.execute(RAM, RAM + 4).pc == RAM + 4
        device.close()
    else:
        with failing(server.name, "reading features target.xml failed"):
            connected(server)


@pytest.mark.parametrize("features", [b"PacketSize=", b"PacketSize=-4", b"=;;=", b"PacketSize=1"])
def test_features_that_make_no_sense(server: FakeGdb, features: bytes) -> None:
    server.features = features
    device = connected(server)
    device.write(RAM, bytes(range(250)))
    assert device.read(RAM, 250) == bytes(range(250))
    device.close()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("banner", "says"),
    [(b"HTTP/1.1 400 Bad Request\r\n\r\n", "no answer to"), (b"SSH-2.0-X\r\n", "damaged answers")],
)
def test_what_is_no_gdb_server(server: FakeGdb, banner: bytes, says: str) -> None:
    def greets(client: socket.socket, data: bytes) -> bool:
        client.sendall(banner)
        return True

    server.misbehave = greets
    with failing(server.name, says, "the greeting"):
        connected(server)


def test_nothing_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with failing(f"gdb:127.0.0.1:{port}", "cannot connect.*is the server running"):
        GdbDevice.at(load_platform("stm32f746"), f"127.0.0.1:{port}")


# -- running --------------------------------------------------------------------------------------


def test_written_memory_that_holds_something_else(server: FakeGdb, device: GdbDevice) -> None:
    server.misbehave = once(b"M", sends(encode(b"OK")))
    with failing(server.name, "verify failed.*0x20000001 holds 0x00, not 0x01.*memory map"):
        device.write(RAM, b"\0\1\2\3")
    device.write(RAM, b"\0\1\2\3")


def never_halts(client: socket.socket, data: bytes) -> bool:
    return data == b"c"


def test_a_breakpoint_that_is_never_reached(server: FakeGdb, device: GdbDevice) -> None:
    server.misbehave = never_halts
    with failing(server.name, r"timeout, pc 0x20000000.*0\.4 seconds", kind=DeviceFault):
        device.execute(RAM, RAM + 4)
    assert server.signals.count("\x03") == 1
    assert b"z1,20000004,2" in server.packets
    server.misbehave = lambda client, data: False
    assert device.execute(RAM, RAM + 4).pc == RAM + 4


@pytest.mark.usefixtures("impatient")
def test_console_output_does_not_lengthen_the_time(server: FakeGdb, device: GdbDevice) -> None:
    server.misbehave = once(b"c", chatters)
    with failing(server.name, "halt within|closed|broke"):
        device.execute(RAM, RAM + 4)


@pytest.mark.usefixtures("impatient")
def test_a_core_that_cannot_be_halted_either(server: FakeGdb, device: GdbDevice) -> None:
    server.misbehave = lambda client, data: data in (b"c", b"\x03")
    with failing(server.name, r"did not halt within 0\.4 s of an interrupt; reset the board"):
        device.execute(RAM, RAM + 4)
    server.misbehave = lambda client, data: False
    device.reopen()
    assert device.execute(RAM, RAM + 4).pc == RAM + 4


def test_a_halt_somewhere_else(server: FakeGdb, device: GdbDevice) -> None:
    server.misbehave = once(b"c", sends(encode(b"T05")))
    with failing(server.name, "unexpected halt, pc 0x20000000.*0x20000004", kind=DeviceFault):
        device.execute(RAM, RAM + 4)
    assert device.execute(RAM, RAM + 4).pc == RAM + 4


@pytest.mark.parametrize("reply", [b"W00", b"X09"])
def test_a_target_that_ends(server: FakeGdb, device: GdbDevice, reply: bytes) -> None:
    server.misbehave = once(b"c", sends(encode(reply)))
    with failing(server.name, "the target has ended during waiting for the core to halt"):
        device.execute(RAM, RAM + 4)
