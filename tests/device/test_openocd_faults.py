"""The OpenOCD client against a server that misbehaves: an error that says where, and no hang."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from covp.chip.platform_file import load_platform
from covp.device import tcl_port
from covp.device.openocd import OpenOcdDevice
from covp.device.tcl_port import TclPort
from covp.errors import DeviceError, DeviceFault

from .failing import NO_HANG, failing
from .fake_openocd import END, FakeOpenOcd

RAM = 0x20000000
LIMIT = 0.4  # seconds, in place of the usual ones

Action = Callable[[socket.socket], object]


@pytest.fixture
def server() -> Iterator[FakeOpenOcd]:
    with FakeOpenOcd() as fake:
        yield fake


@pytest.fixture
def device(server: FakeOpenOcd) -> Iterator[OpenOcdDevice]:
    opened = OpenOcdDevice(load_platform("stm32f746"), f"127.0.0.1:{server.port}", timeout=LIMIT)
    yield opened
    opened.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short limits for answers."""
    monkeypatch.setattr(tcl_port, "REPLY_SECONDS", LIMIT)
    for method in (TclPort.value, TclPort.output):
        monkeypatch.setattr(method, "__defaults__", (LIMIT,))


def once(start: str, action: Action) -> Callable[[socket.socket, str], bool]:
    """Carry out the action instead of answering a command that starts so, the first time only."""
    done: list[str] = []

    def misbehave(client: socket.socket, command: str) -> bool:
        if done or not command.startswith(start):
            return False
        done.append(command)
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


def floods(client: socket.socket) -> None:
    for _ in range(64):
        client.sendall(b"x" * 1024)


# -- a server that misbehaves ------------------------------------------------------------------

ANSWERS = {
    "dies": (sends_and_goes(b""), "closed the connection"),
    "is cut": (sends_and_goes(b"0 {0x1 0x"), "closed the connection"),
    "is cut and silent": (sends(b"0 {0x1 0x"), r"no answer within 0\.4 s"),
    "says nothing": (sends(b""), r"no answer within 0\.4 s"),
    "babbles": (
        sends(b"<html>\xff\xfe\x00</html>" + END),
        "not an answer of OpenOCD: '<html>.*Tcl port",
    ),
    "says nothing usable": (sends(END), "not an answer of OpenOCD: ''"),
    "has no numbers": (sends(b"0 {zz}" + END), "'zz' is not a number"),
    "has too many": (sends(b"0 {0x1 0x2}" + END), "2 values instead of 1"),
    "has too large ones": (sends(b"0 {0x1ffffffff}" + END), "0x1ffffffff.* does not fit 32 bits"),
    "has negative ones": (sends(b"0 {-1}" + END), "-1.* does not fit 32 bits"),
    "refuses": (sends(b"1 {Error: no power\nat line 1}" + END), "failed: Error: no power"),
    "refuses silently": (sends(b"-4 {}" + END), "failed: no reason given"),
    "never ends": (floods, "an answer without end"),
}


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("what", ANSWERS)
def test_a_read_that_fails(
    server: FakeOpenOcd, device: OpenOcdDevice, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tcl_port, "_LONGEST", 1 << 15)
    device.write(RAM, b"abcd")
    action, says = ANSWERS[what]
    server.misbehave = once("read_memory", action)
    with failing(server.name, "read_memory 0x20000000 32 1", says):
        device.read(RAM, 4)
    device.reopen()
    assert device.read(RAM, 4) == b"abcd"


@pytest.mark.usefixtures("impatient")
def test_a_late_answer_is_not_taken_for_the_next_one(
    server: FakeOpenOcd, device: OpenOcdDevice
) -> None:
    given_up = threading.Event()

    def late(client: socket.socket) -> None:
        assert given_up.wait(60)
        client.sendall(b"0 {0xbad}" + END)

    server.misbehave = once("read_memory", late)
    with failing(server.name, "no answer"):
        device.read(RAM, 4)
    given_up.set()
    with failing(server.name, "read_memory", "closed; open it again"):
        device.read(RAM, 4)
    device.reopen()
    assert device.read(RAM, 4) == bytes(4)


STEPS: dict[str, Callable[[OpenOcdDevice], object]] = {
    "read_memory": lambda device: device.read(RAM, 4),
    "dump_image": lambda device: device.read(RAM, 1 << 14),
    "write_memory": lambda device: device.write(RAM, b"abcd"),
    "load_image": lambda device: device.write(RAM, bytes(1 << 14)),
    "get_reg": lambda device: device.registers(),
    "set_reg": lambda device: device.write_register("r0", 1),
    "bp": lambda device: device.execute(RAM, RAM + 4),
    "resume": lambda device: device.execute(RAM, RAM + 4),
    "wait_halt": lambda device: device.execute(RAM, RAM + 4),
    "rbp": lambda device: device.execute(RAM, RAM + 4),
    "reset halt": lambda device: device.reset(),
    "flash banks": lambda device: device.reopen(),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("what", ["is cut", "babbles", "refuses"])
def test_every_step_is_named(
    server: FakeOpenOcd, device: OpenOcdDevice, step: str, what: str
) -> None:
    action, says = ANSWERS[what]
    server.misbehave = once(step, action)
    with failing(server.name, step, says):
        STEPS[step](device)
    server.misbehave = lambda client, command: False
    device.reopen()
    assert device.execute(RAM, RAM + 4).pc == RAM + 4


def test_a_dump_that_writes_no_file(server: FakeOpenOcd, device: OpenOcdDevice) -> None:
    with failing(server.name, r"dump_image .* 0x20000000 16384: 0 bytes came"):
        device.read(RAM, 1 << 14)


def test_a_target_that_runs_where_it_should_be_halted(
    server: FakeOpenOcd, device: OpenOcdDevice
) -> None:
    server.state = "running"
    with failing(server.name, "the target is running after reset halt; is the board powered"):
        device.reset()
    device.close()
    with failing(server.name, "the target is running after reset halt"):
        OpenOcdDevice(device.platform, f"127.0.0.1:{server.port}")
    server.state = "halted"
    device.reopen()


def test_written_memory_that_holds_something_else(
    server: FakeOpenOcd, device: OpenOcdDevice
) -> None:
    server.misbehave = once("write_memory", sends(b"0 {}" + END))
    with failing(server.name, "verify failed.*0x20000001 holds 0x00, not 0x01.*memory map"):
        device.write(RAM, b"\0\1\2\3")
    device.write(RAM, b"\0\1\2\3")


def never_halts(client: socket.socket, command: str) -> bool:
    if command.startswith("wait_halt"):
        milliseconds = int(command.split()[1])
        time.sleep(milliseconds / 1000)
        client.sendall(b"-302 {timed out while waiting for target halted\n}" + END)
        return True
    return False


def test_a_breakpoint_that_is_never_reached(server: FakeOpenOcd, device: OpenOcdDevice) -> None:
    server.misbehave = never_halts
    with failing(server.name, r"timeout, pc 0x20000000.*0\.4 seconds", kind=DeviceFault):
        device.execute(RAM, RAM + 4)
    assert server.commands.index("halt") < server.commands.index("rbp 0x20000004")
    server.misbehave = lambda client, command: False
    assert device.execute(RAM, RAM + 4).pc == RAM + 4


def test_a_core_that_cannot_be_halted_either(server: FakeOpenOcd, device: OpenOcdDevice) -> None:
    def dead(client: socket.socket, command: str) -> bool:
        if command == "halt":
            client.sendall(b"-302 {Error: timed out while waiting for target halted\n}" + END)
            return True
        return never_halts(client, command)

    server.misbehave = dead
    with failing(server.name, "halt failed: Error: timed out"):
        device.execute(RAM, RAM + 4)


def test_a_halt_somewhere_else(server: FakeOpenOcd, device: OpenOcdDevice) -> None:
    server.misbehave = once("wait_halt", sends(b"0 {}" + END))
    with failing(server.name, "unexpected halt, pc 0x20000000.*0x20000004", kind=DeviceFault):
        device.execute(RAM, RAM + 4)
    assert device.execute(RAM, RAM + 4).pc == RAM + 4


@pytest.mark.usefixtures("impatient")
def test_a_server_that_takes_no_data(server: FakeOpenOcd, device: OpenOcdDevice) -> None:
    ending = threading.Event()
    server.misbehave = once("read_memory", lambda client: ending.wait(NO_HANG))
    try:
        device._port._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # type: ignore[union-attr]
        device._port._send(b"read_memory 0x20000000 32 1", "read_memory")
        with failing(server.name, "write_memory", "takes no data|no answer"):
            device._port.value("write_memory " + "x" * (1 << 24))
    finally:
        ending.set()


def test_nothing_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with failing(f"openocd:127.0.0.1:{port}", "cannot connect.*is the server running"):
        OpenOcdDevice(load_platform("stm32f746"), f"127.0.0.1:{port}")
    for nonsense in ("", "1.2.3.4:x", ":6666", "h:70000"):
        with pytest.raises(DeviceError, match="HOST:PORT"):
            OpenOcdDevice(load_platform("stm32f746"), nonsense)
