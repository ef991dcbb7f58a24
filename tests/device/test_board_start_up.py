"""A platform file's commands to its board before a run, seen through the real OpenOCD."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from covp.device.tcl_port import TclPort
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceError

from .openocd_board import virtual_board

# FLASH_ACR's address, and what it should hold before a run
FLASH_ACR = {
    "stm32f746": (0x40023C00, 0x307), "stm32l4r5": (0x40022000, 0x705),
    "stm32h743": (0x52002000, 0x24),
}  # fmt: skip
CCR = 0xE000ED14
IC = 1 << 17


@contextmanager
def connected(name: str) -> Iterator[tuple[VirtualDevice, TclPort]]:
    with virtual_board(name) as board:
        port = TclPort("127.0.0.1", board.openocd.port)
        try:
            yield board.core, port
        finally:
            port.close()


@pytest.mark.parametrize("name", FLASH_ACR)
def test_wait_states_of_full_speed(name: str) -> None:
    address, expected = FLASH_ACR[name]
    with connected(name) as (core, port):
        ram = core.platform.ram.start
        core.write(ram, b"\xfe\xe7")  # b .
        port.output("reset halt")
        port.output(f"resume 0x{ram:x}")
        port.output("halt")
        assert int.from_bytes(core.board.read_bus(address, 4), "little") == expected


def test_the_instruction_cache_is_on_after_each_reset() -> None:
    with connected("stm32f746") as (_, port):
        for _ in range(2):
            port.output(f"mww 0x{CCR:x} 0")
            port.output("reset halt")
            assert int(port.value(f"read_memory 0x{CCR:x} 32 1"), 0) & IC


@pytest.mark.parametrize("name", FLASH_ACR)
def test_a_board_resets_without_complaint(name: str) -> None:
    with virtual_board(name) as board:
        board.device().close()
        assert "Error" not in board.openocd.log.partition("covp: init done")[2]


def test_openocd_ends_with_the_command_that_started_it() -> None:
    if sys.platform != "linux":
        pytest.skip("prctl is Linux's")
    entry = "from covp.cli.main import main; main()"
    with virtual_board("stm32f746") as board:
        board.openocd.close()
        backend = f"hla_stlink_backend tcp {board.probe.port}"
        words = ["openocd", "start", "-p", "stm32f746", "--port", "0", "-c", backend]
        command = subprocess.Popen(
            [sys.executable, "-u", "-c", entry, *words], stdout=subprocess.PIPE, text=True
        )
        assert command.stdout is not None
        with command.stdout as said:
            assert "reached the board" in said.readline()
            port = int(said.readline().rpartition(":")[2])
        assert answers(port)
        command.send_signal(signal.SIGKILL)
        command.wait(10)
        deadline = time.monotonic() + 10
        while answers(port):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def answers(port: int) -> bool:
    try:
        TclPort("127.0.0.1", port).close()
    except DeviceError:
        return False
    return True
