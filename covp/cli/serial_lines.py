"""`SerialLines`: what programs send over serial ports, printed."""

from __future__ import annotations

import click

from covp.device.virtual import VirtualDevice
from covp.hardware.serial_port import SerialPort

_NEWLINE = ord("\n")


class SerialLines:
    """Prints bytes on standard output, line by line."""

    def __init__(self) -> None:
        self._line = bytearray()

    def listen(self, device: VirtualDevice) -> list[SerialPort]:
        """Print what comes from the serial ports of a device, which are returned."""
        ports = [m for _, m in device.peripherals.values() if isinstance(m, SerialPort)]
        for port in ports:
            port.on_byte = self.put
        return ports

    def put(self, byte: int) -> None:
        """Take one more ``byte``."""
        self._line.append(byte)
        if byte == _NEWLINE:
            self.flush()

    def write(self, data: bytes) -> None:
        """Take several bytes, ``data``."""
        for byte in data:
            self.put(byte)

    def flush(self) -> None:
        """Print a line that has not ended."""
        if self._line:
            click.echo(bytes(self._line), nl=False)  # as the program sent it
            self._line.clear()
