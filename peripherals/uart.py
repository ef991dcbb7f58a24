"""A serial port: bytes of the core are collected, bytes that the host feeds can be read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Field, Register, RegisterMap


class Uart(Peripheral):
    """A UART without a baud rate: every byte goes at once.

    Args:
        on_byte: called with every byte the core sends.

    Attributes:
        sent: everything the core sent since the last reset.
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

    def __init__(self, on_byte: Callable[[int], None] | None = None) -> None:
        self.on_byte = on_byte
        self.sent = bytearray()
        self._received: deque[int] = deque()
        super().__init__()

    def reset(self) -> None:
        """Drop what was sent and received."""
        super().reset()
        self.sent.clear()
        self._received.clear()

    @property
    def text(self) -> str:
        """The bytes that the core sent, as UTF-8."""
        return self.sent.decode("utf-8", errors="replace")

    def feed(self, data: bytes) -> None:
        """Bytes for the core to read from RX."""
        self._received.extend(data)

    def send(self, value: int) -> None:
        """The core wrote TX."""
        self.sent.append(value & 0xFF)
        if self.on_byte is not None:
            self.on_byte(value & 0xFF)

    def receive(self) -> None:
        """The core reads RX."""
        self.values["RX"] = self._received.popleft() if self._received else 0

    def update(self) -> None:
        """The core reads STATUS."""
        self.set("STATUS", "RX_READY", int(bool(self._received)))
