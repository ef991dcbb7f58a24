"""An SPI controller with a sensor on it, whose measurements are a recording."""

from __future__ import annotations

from covp.hardware.registers import Field, Register, RegisterMap
from covp.peripherals._sensor_bus import NOTHING, SensorBus, common_registers

_BITS = 8
_READ = 0x80


class SpiSensor(SensorBus):
    """Full-duplex bytes, 8 bits of 2 * (DIVIDER + 1) cycles each.

    While SELECT is 1 the first byte is the address of the sensor's register, plus 0x80 to read;
    each further byte reads or writes one and goes on to the next address.
    """

    registers = RegisterMap(
        *common_registers(),
        Register(
            "TX",
            0x0C,
            access="wo",
            on_write="transfer",
            fields=[Field("BYTE", 0, 8)],
            doc="A write sends the byte and receives one.",
        ),
        Register("RX", 0x10, access="ro", fields=[Field("BYTE", 0, 8)], doc="The byte received."),
        Register(
            "SELECT",
            0x14,
            on_write="select",
            fields=[Field("SENSOR", 0, doc="The sensor listens; 0 ends its transfer.")],
            doc="Chip select.",
        ),
    )

    def reset(self) -> None:
        """See `SensorBus.reset`; nothing is selected."""
        super().reset()
        self._is_first, self._reads = True, False

    def select(self, value: int) -> None:
        """SELECT was written."""
        self._is_first = True

    def transfer(self, value: int) -> None:
        """TX was written."""
        cycles = _BITS * 2 * (self.values["DIVIDER"] + 1)
        self.begin(cycles, lambda: self._exchange(value & 0xFF))

    def _exchange(self, byte: int) -> None:
        received = NOTHING
        if self.get("SELECT", "SENSOR"):
            if self._is_first:
                self._is_first, self._reads = False, bool(byte & _READ)
                self.point_to(byte & ~_READ)
            elif self._reads:
                received = self.read_next()
            else:
                self.write_next(byte)
        self.values["RX"] = received
