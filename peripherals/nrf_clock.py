"""Clock and flash controllers of the nRF52840, as far as firmware sets them up.

Registers: nRF52840 Product Specification v1.7, "CLOCK - Clock control" and "NVMC - Non-volatile
memory controller". What takes silicon a while, such as the crystal's start, is done at once.
"""

from __future__ import annotations

from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Field, Register, RegisterMap

_CRYSTAL_RUNS = 1 << 16 | 1  # HFCLKSTAT: STATE, SRC


class NrfClock(Peripheral):
    """CLOCK: the core runs at 64 MHz from the start, from a crystal when that is requested."""

    size = 0x1000
    ignores_reserved = True
    registers = RegisterMap(
        Register("TASKS_HFCLKSTART", 0x000, access="wo", on_write="start"),
        Register("TASKS_HFCLKSTOP", 0x004, access="wo", on_write="stop"),
        Register("EVENTS_HFCLKSTARTED", 0x100),
        Register("HFCLKSTAT", 0x40C, access="ro"),
    )

    def start(self, value: int) -> None:
        """TASKS_HFCLKSTART."""
        if value & 1:
            self.values["HFCLKSTAT"] = _CRYSTAL_RUNS
            self.values["EVENTS_HFCLKSTARTED"] = 1

    def stop(self, value: int) -> None:
        """TASKS_HFCLKSTOP."""
        if value & 1:
            self.values["HFCLKSTAT"] = 0


class NrfNvmc(Peripheral):
    """NVMC: ready at all times. Flash is written as memory; its cache is the platform file's."""

    size = 0x1000
    ignores_reserved = True
    registers = RegisterMap(
        Register("READY", 0x400, access="ro", reset=1),
        Register("READYNEXT", 0x408, access="ro", reset=1),
        Register("CONFIG", 0x504),
        Register("ICACHECNF", 0x540, fields=[Field("CACHEEN", 0), Field("CACHEPROFEN", 8)]),
        Register("IHIT", 0x548),
        Register("IMISS", 0x54C),
    )
