"""The GDB client against the GDB server of the real OpenOCD, connected to a virtual board."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec
import numpy as np
import pytest

import covp
from covp.chip.platform_file import Region
from covp.device.gdb_remote import GdbDevice
from covp.device.openocd_server import OpenOcdServer
from covp.errors import DeviceError, DeviceFault
from covp.graph.random_inputs import random_inputs
from covp.runtime.session import Session

from .openocd_board import Board, virtual_board

C = """
#include <stdint.h>
int32_t add(int32_t a, int32_t b) { return a + b; }
int64_t wide(int32_t a, int64_t b) { return a + b; }
void spin(void) { for (;;) __asm__ volatile(""); }
"""


@dataclass
class GdbBoard:
    """A virtual board, and HOST:PORT of OpenOCD's GDB server at it."""

    board: Board
    address: str

    def session(self, timeout: float = 60) -> Session:
        """A session through that server."""
        return Session(self.board.core.platform, device=f"gdb:{self.address}", timeout=timeout)


@pytest.fixture(scope="module", params=["stm32f746", "stm32l4r5"])
def through(request: pytest.FixtureRequest) -> Iterator[GdbBoard]:
    with virtual_board(request.param) as board:
        board.openocd.close()
        with gdb_server(board) as address:
            yield GdbBoard(board, address)


@contextmanager
def gdb_server(board: Board, *commands: str) -> Iterator[str]:
    """HOST:PORT of the GDB server of an OpenOCD with further commands."""
    every = [f"hla_stlink_backend tcp {board.probe.port}", "gdb_port 0", *commands]
    with OpenOcdServer(board.core.platform, commands=every) as openocd:
        port = re.search(r"port (\d+) for gdb connections", openocd.log)
        assert port is not None
        yield f"127.0.0.1:{port[1]}"


@pytest.mark.costly
def test_calls(through: GdbBoard) -> None:
    with through.session() as session:
        module = session.load_c(C)
        assert module["add"](-3, 4).result() == 1
        assert module["wide"](-1, 1 << 40).result() == (1 << 40) - 1


@pytest.mark.parametrize("size", [1, 3, 4, 4097, 1 << 16])
def test_memory(through: GdbBoard, size: int) -> None:
    core = through.board.core
    data = np.random.default_rng(size).bytes(size)
    device = GdbDevice.at(core.platform, through.address)
    rams = [region for region in core.platform.own_memory if region.kind == "ram"]
    start = max(rams, key=lambda region: region.bytes).start + 0x8000 + size % 4
    device.write(start, data)
    assert device.read(start, size) == data == core.read(start, size)
    device.close()


def test_registers(through: GdbBoard) -> None:
    core = through.board.core
    device = GdbDevice.at(core.platform, through.address)
    expected = {f"r{n}": 0x20000000 + 0x100 * n for n in range(13)}
    for name, value in expected.items():
        device.write_register(name, value)
    read = device.registers()
    device.close()
    assert read.keys() == core.core.registers().keys()
    assert {name: read[name] for name in expected} == expected


@pytest.mark.costly
def test_an_endless_loop_is_stopped_and_the_board_works_on(through: GdbBoard) -> None:
    with through.session(timeout=0.5) as session, pytest.raises(DeviceFault, match="timeout"):
        session.load_c(C)["spin"]().result()
    with through.session() as session:
        assert session.load_c(C)["add"](1, 2).result() == 3


def test_flash_is_programmed_by_whole_blocks() -> None:
    """OpenOCD refuses others; its driver "faux" keeps what it is given to itself."""
    with virtual_board("stm32f746") as board:
        board.openocd.close()
        start = board.core.platform.ram.start + 0x10000
        ram = Region("ram", "ram", start - 0x10000, 0x10000)
        kept = Region("kept", "flash", start, 0x40000)
        platform = msgspec.structs.replace(board.core.platform, memory=(kept, ram))
        bank = f"flash bank keeps faux 0x{start:x} 0x40000 0 0 stm32f7x.cpu"
        with gdb_server(board, bank) as address:
            device = GdbDevice.at(platform, address)
            device.verify = False  # the core's memory stays as it is
            device.write(start + 0x1FF0, bytes(range(256)) * 0x200)
            with pytest.raises(DeviceError, match=r"programming 256 bytes of flash .* E"):
                device._program(start + 0x1FF0, bytes(256))
            device.close()


@pytest.mark.costly
@pytest.mark.parametrize("model", ["kws", "toycar"])
def test_the_same_bits_and_cycles_as_on_the_virtual_device(through: GdbBoard, model: str) -> None:
    platform = through.board.core.platform
    graph = covp.load_model(model)
    program = covp.compile(graph, platform)
    inputs = random_inputs(graph.inputs, 1)
    results, cycles = [], []
    for device in ("virtual", f"gdb:{through.address}"):
        with Session(platform, device=device, timeout=60) as session:
            module = session.load(program)
            results.append(module.run(*inputs))
            cycles.append(module.profile().cycles)
    np.testing.assert_array_equal(*results)
    np.testing.assert_array_equal(results[0], program.reference(inputs)[0])
    assert cycles[0] is not None and cycles[1] is not None
    # DWT_CYCCNT also sees the runtime around the layers
    assert cycles[0] < cycles[1] < cycles[0] + 2000
