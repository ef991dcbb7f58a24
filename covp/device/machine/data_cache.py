"""`DataCache`: the data caches of an emulated core, as bus masters and programs meet them."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Maintenance(enum.IntFlag):
    """The operations on a cache line; cache_maintenance.h."""

    CLEAN = 1
    INVALIDATE = 2


_BY_ADDRESS, _BY_WAY, _ALL = range(3)
FLUSH = 0x500F
"""VexRiscv's instruction that empties the data cache."""
RISCV_OPERATIONS = {
    0x0000200F: Maintenance.INVALIDATE,
    0x0010200F: Maintenance.CLEAN,
    0x0020200F: Maintenance.CLEAN | Maintenance.INVALIDATE,
}
"""CBO.INVAL, CBO.CLEAN and CBO.FLUSH without their register: RISC-V CMO extensions 1.0, 4.3."""


class DataCache:
    """The data caches of the native library: see cache_content.h and cache_maintenance.h.

    Args:
        library: the native side.
        machine: its Machine.
    """

    def __init__(self, library: Any, machine: int) -> None:
        self._library, self._machine = library, machine

    # -- as `covp.hardware.bus.LineCache` -----------------------------------------------------

    def memory_bytes(self, address: int, data: NDArray[np.uint8]) -> None:
        """Replace memory's bytes in ``data`` by what the core sees from ``address``."""
        self._library.machine_memory_bytes(self._machine, address, data.size, data.ctypes.data)

    def store_memory(self, address: int, data: NDArray[np.uint8]) -> None:
        """Store ``data`` to memory alone; in its place comes what the core sees from then on."""
        self._library.machine_store_memory(self._machine, address, data.size, data.ctypes.data)

    def store_both(self, address: int, data: NDArray[np.uint8]) -> None:
        """Store ``data``, which the core sees already, to memory, too."""
        self._library.machine_store_both(self._machine, address, data.size, data.ctypes.data)

    def soil(self, address: int, size: int) -> None:
        """Mark ``size`` bytes as if the core had stored them: memory does not have them yet."""
        self._library.machine_soil(self._machine, address, size)

    # -- maintenance --------------------------------------------------------------------------

    def maintain_line(self, address: int, what: Maintenance) -> None:
        """Clean or invalidate the line of ``address`` if it is cached."""
        self._library.machine_maintain(self._machine, _BY_ADDRESS, address, what)

    def maintain_way(self, way_and_set: int, what: Maintenance) -> None:
        """Do the same for a line by its place (Arm DDI0403E B3.2.2, DCISW)."""
        self._library.machine_maintain(self._machine, _BY_WAY, way_and_set, what)

    def maintain_all(self, what: Maintenance) -> None:
        """Do the same for all lines."""
        self._library.machine_maintain(self._machine, _ALL, 0, what)

    def execute(self, bits: int, address: int) -> bool:
        """Execute a RISC-V instruction for data caches; return whether it is one.

        Args:
            bits: of the instruction.
            address: the value of its register rs1.
        """
        what = RISCV_OPERATIONS.get(bits & 0xFFF07FFF)
        if bits == FLUSH:
            self.maintain_all(Maintenance.CLEAN | Maintenance.INVALIDATE)
        elif what is not None:
            self.maintain_line(address, what)
        return bits == FLUSH or what is not None
