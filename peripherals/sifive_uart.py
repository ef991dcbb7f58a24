"""SiFive's UART, as in the FE310 (HiFive1).

Registers: SiFive FE310-G002 Manual v19p05, chapter 18.
"""

from __future__ import annotations

from covp.hardware.registers import Field, Register, RegisterMap
from covp.hardware.serial_port import SerialPort

_DEPTH = 8
_FLAG = 1 << 31


class SifiveUart(SerialPort):
    """The UART: FIFOs of eight bytes each way.

    Arguments and attributes are those of `SerialPort`.
    """

    ignores_reserved = True
    registers = RegisterMap(
        Register("TXDATA", 0x00, on_write="send", on_read="read_full", doc="Bit 31: no room."),
        Register("RXDATA", 0x04, on_write="keep", on_read="receive", doc="Bit 31: no byte."),
        Register(
            "TXCTRL",
            0x08,
            fields=[Field("TXEN", 0), Field("NSTOP", 1), Field("TXCNT", 16, 3)],
            on_write="control",
        ),
        Register("RXCTRL", 0x0C, fields=[Field("RXEN", 0), Field("RXCNT", 16, 3)],
                 on_write="control"),
        Register("IE", 0x10, fields=[Field("TXWM", 0), Field("RXWM", 1)], on_write="control"),
        Register(
            "IP",
            0x14,
            fields=[
                Field("TXWM", 0, access="ro", doc="Fewer than TXCNT bytes wait."),
                Field("RXWM", 1, access="ro", doc="More than RXCNT bytes were received."),
            ],
        ),
        Register("DIV", 0x18, fields=[Field("DIV", 0, 16)]),
    )  # fmt: skip

    def reset(self) -> None:
        """As after power-on."""
        super().reset()
        self._waiting = bytearray()

    # -- registers ----------------------------------------------------------------------------

    def send(self, value: int) -> None:
        """TXDATA was written; a byte that finds the FIFO full is lost."""
        if len(self._waiting) < _DEPTH:
            self._waiting.append(value & 0xFF)
        self.control(value)

    def read_full(self) -> None:
        """TXDATA is read."""
        self.values["TXDATA"] = _FLAG if len(self._waiting) == _DEPTH else 0

    def receive(self) -> None:
        """RXDATA is read."""
        self.values["RXDATA"] = self.take() if self.received else _FLAG
        self._update()

    def keep(self, value: int) -> None:
        """RXDATA was written: no effect."""

    def control(self, value: int) -> None:
        """A register was written that something may follow from."""
        if self.get("TXCTRL", "TXEN"):
            for byte in self._waiting:
                self.transmit(byte)
            self._waiting.clear()
        self.listen()
        self._update()

    # -- the port -----------------------------------------------------------------------------

    @property
    def baud(self) -> float | None:
        """See `SerialPort`; section 18.9."""
        return self.hertz / (self.values["DIV"] + 1)

    @property
    def depth(self) -> int:
        """See `SerialPort`."""
        return _DEPTH

    @property
    def is_listening(self) -> bool:
        """See `SerialPort`."""
        return bool(self.get("RXCTRL", "RXEN"))

    def arrived(self) -> None:
        """See `SerialPort`."""
        self._update()

    def _update(self) -> None:
        """IP and the interrupt line."""
        self.set("IP", "TXWM", int(len(self._waiting) < self.get("TXCTRL", "TXCNT")))
        self.set("IP", "RXWM", int(len(self.received) > self.get("RXCTRL", "RXCNT")))
        self.interrupt.set(bool(self.values["IP"] & self.values["IE"]))
