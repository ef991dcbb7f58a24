"""An observer of the bus is told what masters and cores do, until its registration is closed."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from covp.device.virtual import VirtualDevice
from covp.hardware.observer import Observer, RegisterAccess
from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Register, RegisterMap
from covp.hardware.traffic import UNKNOWN
from covp.runtime.session import Session

BASE = 0x5000_0000
KERNEL = f"""
#include <stdint.h>
uint32_t poke(uint32_t value)
{{
    *(volatile uint32_t *)0x{BASE:x} = value;
    return *(volatile uint32_t *)0x{BASE:x};
}}
"""


class Doubler(Peripheral):
    """Doubles the word at an address."""

    registers = RegisterMap(Register("ADDRESS", 0, on_write="double"))

    def double(self, address: int) -> None:
        word = int.from_bytes(self.bus.read(address, 4), "little")
        with self.bus.uncounted():
            self.bus.write(address, (2 * word).to_bytes(4, "little"))
        self.bus.count(None, 64)


class Log(Observer):
    def __init__(self) -> None:
        self.seen: list[tuple[object, ...]] = []

    def load(self, master: str, address: int, size: int) -> None:
        self.seen.append(("load", master, address, size))

    def store(self, master: str, address: int, data: NDArray[np.uint8]) -> None:
        self.seen.append(("store", master, address, data.tobytes()))

    def moved(self, master: str, place: str, is_write: bool, size: int) -> None:
        self.seen.append(("moved", master, place, is_write, size))

    def accessed(self, access: RegisterAccess) -> None:
        if access.peripheral.name == "doubler":
            self.seen.append(
                ("access", access.master, access.offset, access.value, access.is_store)
            )


@pytest.mark.process
@pytest.mark.parametrize("platform", ["cortex-m4", "riscv32"])
def test_an_observer_is_told_until_it_is_closed(platform: str) -> None:
    with Session(platform) as session:
        device = session.device
        assert isinstance(device, VirtualDevice)
        device.attach(Doubler(), BASE, "doubler")
        poke = session.load_c(KERNEL)["poke"]
        placed = session.place((21).to_bytes(4, "little"))
        log = Log()
        with device.board.bus.observe(log):
            assert poke(placed.address).result() == placed.address
        assert log.seen == [
            ("load", "doubler", placed.address, 4),
            ("moved", "doubler", device.platform.ram.name, False, 4),
            ("store", "doubler", placed.address, (42).to_bytes(4, "little")),
            ("moved", "doubler", UNKNOWN, False, 64),
            ("access", "core", 0, placed.address, True),
            ("access", "core", 0, placed.address, False),
        ]
        assert poke(placed.address).result() == placed.address
        assert len(log.seen) == 6 and device.board.bus.observers == []
        assert session.read(placed.address, 4) == (84).to_bytes(4, "little")
