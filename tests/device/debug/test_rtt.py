"""RTT of a program on the virtual board: read by covp, and by the real OpenOCD."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from covp.chip.platform_file import load_platform
from covp.compilers.elf import ElfImage
from covp.device.debug.program_file import load_elf
from covp.device.debug.rtt import Rtt
from covp.device.debug.target import DebugTarget
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceError

from .gdb_bench import build
from .openocd_bench import openocd
from .test_stlink import open_port

PROGRAM = Path(__file__).with_name("rtt.c")
SQUARES = struct.pack("<100I", *(n * n for n in range(100)))
LINE = b"a line that is longer than the buffer of sixty-four bytes has room for at once\n"
SECONDS = 60


@pytest.fixture(params=["cortex-m0plus", "stm32f746", "riscv32"])
def target(request: pytest.FixtureRequest) -> Iterator[DebugTarget]:
    """The program, halted at reset."""
    elf = build(request.param, "zig", PROGRAM)
    with VirtualDevice(load_platform(request.param)) as device, DebugTarget(device) as opened:
        load_elf(device, elf)
        opened.reset(halt=True)
        opened.set_breakpoint(ElfImage(elf.read_bytes()).symbols["covp_exit"].address)
        yield opened


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def receive(rtt: Rtt, size: int, channel: int = 0) -> bytes:
    got = bytearray()

    def enough() -> bool:
        got.extend(rtt.read(channel))
        return len(got) >= size

    until(enough)
    return bytes(got)


def test_channels_of_a_running_program(target: DebugTarget) -> None:
    rtt = Rtt(target.read_memory, target.write_memory, target.device.platform.memory)
    assert not rtt.find() and rtt.read() == b"" and rtt.write(b"x") == 0 and rtt.names() == ([], [])
    target.resume()
    until(rtt.find)
    assert receive(rtt, 3) == b"up\n"
    assert rtt.names() == (["Terminal", "Numbers"], ["Keys"])
    assert receive(rtt, len(SQUARES), 1) == SQUARES
    assert receive(rtt, len(LINE)) == LINE
    keys, sent = b"every one of these keys comes back\n" * 4, 0
    answer = bytearray()

    def all_back() -> bool:
        nonlocal sent
        taken = rtt.write(keys[sent:])
        assert taken <= 7  # a ring of 8 bytes
        sent += taken
        answer.extend(rtt.read())
        return len(answer) >= len(keys)

    until(all_back)
    assert bytes(answer) == keys.upper()
    rtt.write(b".")
    assert target.wait(SECONDS)


def test_what_is_damaged_is_said(target: DebugTarget) -> None:
    rtt = Rtt(target.read_memory, target.write_memory, target.device.platform.memory)
    target.resume()
    until(rtt.find)
    target.halt()
    assert rtt.address is not None
    for channel in (2, -1):
        with pytest.raises(DeviceError, match=rf"no up buffer {channel}; the program has 2"):
            rtt.read(channel)
    with pytest.raises(DeviceError, match="no down buffer 1"):
        rtt.write(b"x", 1)
    target.write_memory(rtt.address + 24 + 12, struct.pack("<I", 64))
    with pytest.raises(DeviceError, match=r"buffer 0 at .* is damaged: offsets 64 and"):
        rtt.read()
    target.write_memory(rtt.address + 16, struct.pack("<i", -1))
    with pytest.raises(DeviceError, match=r"control block at 0x.* is damaged"):
        rtt.read(1)


def test_openocd_serves_the_channels() -> None:
    elf = build("stm32f746", "zig", PROGRAM)
    with open_port("stm32f746") as port, openocd(*port.hla) as ocd:
        ram = port.target.device.platform.ram
        ports = [free_port(), free_port()]
        ocd("halt")
        ocd(f"load_image {elf}")
        ocd(f"rtt setup {ram.start:#x} {ram.bytes} {{SEGGER RTT}}; rtt polling_interval 1")
        ocd("reset run")
        until(lambda: "Control block found at" in ocd("rtt start") + ocd.log)
        for channel, at in enumerate(ports):
            ocd(f"rtt server start {at} {channel}")
        with connect(ports[0]) as terminal, connect(ports[1]) as numbers:
            assert taken(numbers, len(SQUARES)) == SQUARES
            assert taken(terminal, 3 + len(LINE)) == b"up\n" + LINE
            terminal.sendall(b"keys")
            assert taken(terminal, 4) == b"KEYS"
        channels = ocd("rtt channels")
        assert "0: Terminal 64 0" in channels and "1: Numbers 40 0" in channels


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=SECONDS)


def taken(client: socket.socket, size: int) -> bytes:
    got = bytearray()
    while len(got) < size:
        piece = client.recv(size - len(got))
        assert piece
        got += piece
    return bytes(got)
