"""An I2C controller with a sensor on its bus, whose measurements are a recording."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from covp.hardware.registers import Field, Register, RegisterMap
from covp.peripherals._sensor_bus import NOTHING, SensorBus, common_registers

_BITS = 9  # eight and the acknowledgement


class I2cSensor(SensorBus):
    """Commands of a byte each; a period of SCL is 4 * (DIVIDER + 1) cycles.

    A transfer begins with START and WRITE of address * 2, plus 1 to read. The first byte that is
    written is the address of the sensor's register; further ones, and those read after a repeated
    START, go through its registers. NACK in STATUS says that nothing answered.

    Args:
        address: of the sensor, 7 bits.
        source, rate, scale, depth: see `SensorBus`.
    """

    registers = RegisterMap(
        *common_registers(Field("NACK", 3, access="ro", doc="The last WRITE was not answered.")),
        Register("TX", 0x0C, fields=[Field("BYTE", 0, 8)], doc="The byte of the next WRITE."),
        Register("RX", 0x10, access="ro", fields=[Field("BYTE", 0, 8)], doc="The byte read."),
        Register(
            "COMMAND",
            0x14,
            access="wo",
            on_write="command",
            fields=[
                Field("START", 0, doc="First a START condition."),
                Field("WRITE", 1, doc="Then send TX,"),
                Field("READ", 2, doc="or receive RX."),
                Field("STOP", 3, doc="At the end a STOP condition."),
            ],
            doc="A write starts it.",
        ),
    )

    def __init__(
        self,
        address: int = 0x19,
        source: str | Path | Iterable[Any] | None = None,
        rate: float | None = None,
        scale: float = 1.0,
        depth: int = 32,
    ) -> None:
        if not 0 <= address < 128:
            raise ValueError(f"address {address:#x} does not have 7 bits")
        self._address = address
        super().__init__(source, rate, scale, depth)

    def reset(self) -> None:
        """See `SensorBus.reset`; the bus is idle."""
        super().reset()
        self._state = "idle"  # "address": expected; "pointer", "write", "read": selected

    def command(self, value: int) -> None:
        """COMMAND was written."""
        start, write, read, stop = (bool(value >> bit & 1) for bit in range(4))
        if write and read:
            raise self.fault("WRITE and READ in one command")
        periods = start + _BITS * (write or read) + stop
        cycles = 4 * (self.values["DIVIDER"] + 1) * periods
        self.begin(cycles, lambda: self._finish(start, write, read, stop))

    def _finish(self, start: bool, write: bool, read: bool, stop: bool) -> None:
        if start:
            self._state = "address"
        if write:
            self.set("STATUS", "NACK", int(not self._send(self.values["TX"])))
        if read:
            self.values["RX"] = self.read_next() if self._state == "read" else NOTHING
        if stop:
            self._state = "idle"

    def _send(self, byte: int) -> bool:
        """Whether the sensor acknowledges the byte."""
        if self._state == "address":
            if byte >> 1 != self._address:
                self._state = "idle"
            else:
                self._state = "read" if byte & 1 else "pointer"
        elif self._state == "pointer":
            self.point_to(byte & 0x7F)
            self._state = "write"
        elif self._state == "write":
            self.write_next(byte)
        else:
            return False
        return self._state != "idle"
