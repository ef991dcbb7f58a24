"""The SPI controller of the flash of SiFive's FE310 (HiFive1).

Registers: SiFive FE310-G002 Manual v19p05, chapter 19.
"""

from __future__ import annotations

from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Field, Register, RegisterMap


class SifiveSpi(Peripheral):
    """Registers of the controller; the flash itself is memory, of which it reads as ever."""

    ignores_reserved = True
    registers = RegisterMap(
        Register("SCKDIV", 0x00, fields=[Field("DIV", 0, 12, reset=3)]),
        Register("SCKMODE", 0x04, fields=[Field("PHA", 0), Field("POL", 1)]),
        Register("CSID", 0x10),
        Register("CSDEF", 0x14, reset=1),
        Register("CSMODE", 0x18, fields=[Field("MODE", 0, 2)]),
        Register(
            "DELAY0",
            0x28,
            fields=[Field("CSSCK", 0, 8, reset=1), Field("SCKCS", 16, 8, reset=1)],
        ),
        Register(
            "DELAY1", 0x2C, fields=[Field("INTERCS", 0, 8, reset=1), Field("INTERXFR", 16, 8)]
        ),
        Register("FMT", 0x40, reset=0x00080008),
        Register("FCTRL", 0x60, fields=[Field("EN", 0, reset=1)]),
        Register("FFMT", 0x64, reset=0x00030007),
    )

    def serial_hertz(self, bus_hertz: float) -> float:
        """Of the flash's clock: section 19.4.

        Args:
            bus_hertz: of the core and the bus.
        """
        return bus_hertz / (2 * (self.get("SCKDIV", "DIV") + 1))
