"""The real OpenOCD killed, stopped and started again under a client."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from covp.chip.platform_file import load_platform
from covp.device.openocd_server import OpenOcdServer
from covp.device.tcl_port import TclPort
from covp.errors import DeviceError, DeviceFault, PlatformError
from covp.runtime.session import Session

from .failing import NO_HANG, failing
from .openocd_board import Board, start_openocd, virtual_board

RAM = 0x20000000
C = """
#include <stdint.h>
int32_t add(int32_t a, int32_t b) { return a + b; }
void spin(void) { for (;;) __asm__ volatile(""); }
"""


@pytest.fixture
def board() -> Iterator[Board]:
    with virtual_board("stm32f746") as opened:
        yield opened


def kill(server: OpenOcdServer) -> None:
    server._process.kill()
    server._process.wait()


@contextmanager
def killed_soon(server: OpenOcdServer) -> Iterator[None]:
    """It takes what it is sent, and is killed while the block waits for an answer."""
    os.kill(server._process.pid, signal.SIGSTOP)
    thread = threading.Timer(0.3, kill, [server])
    thread.start()
    try:
        yield
    finally:
        thread.join()


def works_again(board: Board) -> None:
    """With an OpenOCD at the same port, a new session works."""
    port = board.openocd.port
    kill(board.openocd)
    with (
        start_openocd(board.core, board.probe.port, port),
        Session(board.core.platform, device=board.name, timeout=20) as session,
    ):
        assert session.load_c(C)["add"](3, 4).result() == 7


@pytest.mark.parametrize("size", [4, 1 << 16])
def test_killed_in_a_read(board: Board, size: int) -> None:
    device = board.device()
    says = "closed the connection|connection broke"
    with failing(board.name, "read_memory|dump_image", says), killed_soon(board.openocd):
        device.read(RAM, size)
    with failing(board.name, "cannot connect"):
        device.reopen()
    port = board.openocd.port
    with start_openocd(board.core, board.probe.port, port):
        device.reopen()
        device.write(RAM, b"abcd" * (size // 4))
        assert device.read(RAM, size) == b"abcd" * (size // 4)
    device.close()


def test_killed_while_the_core_runs(board: Board) -> None:
    with Session(board.core.platform, device=board.name, timeout=NO_HANG) as session:
        module = session.load_c(C)
        with failing(board.name, "wait_halt"), killed_while_running(board):
            module["spin"]()
            session.sync()
    works_again(board)


@contextmanager
def killed_while_running(board: Board) -> Iterator[None]:
    def wait_and_kill() -> None:
        deadline = time.monotonic() + NO_HANG
        while board.target.is_halted and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.1)
        kill(board.openocd)

    thread = threading.Thread(target=wait_and_kill)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def test_one_that_hangs(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TclPort.value, "__defaults__", (0.4,))
    device = board.device()
    process = board.openocd._process
    os.kill(process.pid, signal.SIGSTOP)
    with failing(board.name, "read_memory", r"no answer within 0\.4 s"):
        device.read(RAM, 4)
    os.kill(process.pid, signal.SIGCONT)
    monkeypatch.undo()
    device.reopen()
    device.write(RAM, b"abcd")
    device.close()


def test_a_client_that_broke_off_leaves_nothing_over(board: Board) -> None:
    """Its breakpoint is still in OpenOCD, and the core still runs."""
    with Session(board.core.platform, device=board.name, timeout=NO_HANG) as session:
        module = session.load_c(C)

        def hang_up() -> None:
            while board.target.is_halted:
                time.sleep(0.01)
            session.device._port._socket.shutdown(socket.SHUT_RDWR)  # type: ignore[attr-defined]

        thread = threading.Thread(target=hang_up)
        thread.start()
        with failing(board.name, "resume|wait_halt"):
            module["spin"]()
            session.sync()
        thread.join()
    for _ in range(2):
        with Session(board.core.platform, device=board.name, timeout=20) as session:
            assert session.load_c(C)["add"](3, 4).result() == 7


def test_an_endless_loop_ends_with_the_time(board: Board) -> None:
    with Session(board.core.platform, device=board.name, timeout=0.5) as session:
        module = session.load_c(C)
        with failing(board.name, r"timeout.*spin.*0\.5 seconds", kind=DeviceFault):
            module["spin"]()
            session.sync()
        assert module["add"](1, 2).result() == 3


@pytest.mark.costly
def test_a_probe_that_is_pulled_out(board: Board) -> None:
    device = board.device()
    device.write(RAM, b"abcd")
    board.probe.close()
    with failing(board.name, "read_memory 0x20000000 32 1 failed"):
        device.read(RAM, 4)
    with failing(board.name, "reset halt"):
        device.reopen()
    device.close()


def test_memory_that_is_not_there(board: Board) -> None:
    """A platform that promises more RAM than the chip has."""
    device = board.device()
    with failing(board.name, r"read_memory 0x60000000 32 1 failed: .*ailed"):
        device.read_memory(0x60000000, 4)
    with failing(board.name, r"write_memory 0x60000000 .* failed: .*ailed"):
        device.write_memory(0x60000000, bytes(4))
    device.write(RAM, b"abcd")
    device.close()


def test_starting_it_in_vain() -> None:
    platform = load_platform("stm32f746")
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with pytest.raises(DeviceError, match=r"OpenOCD does not start: .+"):
        OpenOcdServer(platform, commands=[f"hla_stlink_backend tcp {port}"])
    with pytest.raises(DeviceError, match=r"OpenOCD does not start: .*nonsense"):
        OpenOcdServer(platform, configs=["nonsense.cfg"])
    with pytest.raises(PlatformError, match=r"names no OpenOCD board.*openocd\.board"):
        OpenOcdServer(load_platform("riscv32"))
