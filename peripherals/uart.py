"""A serial port: bytes of the core are collected, bytes that the host feeds can be read."""

from __future__ import annotations

from covp.hardware.registers import Field, Register, RegisterMap
from covp.hardware.serial_port import SerialPort


class Uart(SerialPort):
    """A UART without a baud rate: every byte goes at once.

    Arguments and attributes are those of `SerialPort`.
    """

    registers = RegisterMap(
        Register(
            "TX",
            0x00,
            access="wo",
            fields=[Field("BYTE", 0, 8, on_write=None)],
            on_write="send",
            doc="A write sends the byte.",
        ),
        Register(
            "RX",
            0x04,
            access="ro",
            fields=[Field("BYTE", 0, 8)],
            on_read="receive",
            doc="The oldest byte received; 0 when there is none.",
        ),
        Register(
            "STATUS",
            0x08,
            access="ro",
            on_read="update",
            fields=[
                Field("TX_READY", 0, access="ro", reset=1, doc="Always 1."),
                Field("RX_READY", 1, access="ro", doc="A byte waits in RX."),
            ],
            doc="What can be done now.",
        ),
    )

    def send(self, value: int) -> None:
        """The core wrote TX."""
        self.transmit(value & 0xFF)

    def receive(self) -> None:
        """The core reads RX."""
        self.values["RX"] = self.take()

    def update(self) -> None:
        """The core reads STATUS."""
        self.set("STATUS", "RX_READY", int(bool(self.received)))
