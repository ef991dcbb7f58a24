"""The UART of Arm's Cortex-M System Design Kit, which MPS2 and MPS3 images have.

Registers: Arm DDI0479 (CMSDK TRM) 4.3.
"""

from __future__ import annotations

from covp.hardware.registers import Field, Register, RegisterMap
from covp.hardware.serial_port import SerialPort

_IDENTIFICATION = (4, 0, 0, 0, 0x21, 0xB8, 0x1B, 0, 0x0D, 0xF0, 0x05, 0xB1)  # DDI0479 table 4-5
_NAMES = [f"PID{number}" for number in (4, 5, 6, 7, 0, 1, 2, 3)] + [f"CID{n}" for n in range(4)]
_LEAST = 16  # BAUDDIV
_TX, _RX = 1, 2  # of INTSTATUS; the overruns follow


class CmsdkUart(SerialPort):
    """The APB UART: one byte in the transmitter, one in the receiver.

    The combined interrupt line. Arguments and attributes are those of `SerialPort`.
    """

    widths = frozenset({1, 2, 4})
    ignores_reserved = True
    registers = RegisterMap(
        Register("DATA", 0x00, fields=[Field("BYTE", 0, 8)], on_write="send", on_read="receive"),
        Register(
            "STATE",
            0x04,
            fields=[
                Field("TXFULL", 0, access="ro", doc="A byte waits for the transmitter."),
                Field("RXFULL", 1, access="ro", doc="A byte waits in DATA."),
                Field("TXOVERRUN", 2, access="w1c"),
                Field("RXOVERRUN", 3, access="w1c"),
            ],
            on_write="update",
        ),
        Register(
            "CTRL",
            0x08,
            fields=[
                Field("TXEN", 0),
                Field("RXEN", 1),
                Field("TXIE", 2),
                Field("RXIE", 3),
                Field("TXOVERRUNIE", 4),
                Field("RXOVERRUNIE", 5),
                Field("HSTM", 6, doc="Kept, without effect."),
            ],
            on_write="control",
        ),
        Register(
            "INTSTATUS",
            0x0C,
            fields=[Field("CAUSES", 0, 4, access="w1c", doc="TX, RX, TX overrun, RX overrun.")],
            on_write="clear",
        ),
        Register("BAUDDIV", 0x10, fields=[Field("DIVIDER", 0, 20)], on_write="control"),
        *(
            Register(name, 0xFD0 + 4 * position, access="ro", reset=_IDENTIFICATION[position])
            for position, name in enumerate(_NAMES)
        ),
    )

    # -- registers ----------------------------------------------------------------------------

    def send(self, value: int) -> None:
        """DATA was written."""
        if self.get("STATE", "TXFULL"):
            self.set("STATE", "TXOVERRUN", 1)
        else:
            self._waiting = value & 0xFF
            self.set("STATE", "TXFULL", 1)
        self._send_waiting()
        self.update()

    def receive(self) -> None:
        """DATA is read."""
        if self.received:
            self._last = self.take()
        self.values["DATA"] = self._last
        self.update()

    def control(self, value: int) -> None:
        """CTRL or BAUDDIV was written."""
        self._send_waiting()
        self.listen()
        self.update()

    def clear(self, value: int) -> None:
        """INTSTATUS was written: 1 clears the cause, for overruns their flag in STATE too."""
        self.values["STATE"] &= ~(value & 0xC)
        self.update()

    # -- the port -----------------------------------------------------------------------------

    def reset(self) -> None:
        """As after power-on."""
        super().reset()
        self._waiting, self._last = 0, 0

    @property
    def baud(self) -> float | None:
        """See `SerialPort`."""
        divider = self.values["BAUDDIV"]
        return self.hertz / divider if divider >= _LEAST else None

    @property
    def depth(self) -> int:
        """See `SerialPort`."""
        return 1

    @property
    def is_listening(self) -> bool:
        """See `SerialPort`."""
        return bool(self.get("CTRL", "RXEN"))

    def arrived(self) -> None:
        """See `SerialPort`."""
        if self.get("CTRL", "RXIE"):
            self._cause(_RX)
        self.update()

    def overrun(self, byte: int) -> None:
        """See `SerialPort`."""
        self.set("STATE", "RXOVERRUN", 1)
        self.update()

    def update(self, value: int = 0) -> None:
        """What follows from the rest: STATE, the overruns' causes, the interrupt line."""
        self.set("STATE", "RXFULL", int(bool(self.received)))
        overruns = self.values["STATE"] & self.values["CTRL"] >> 2 & 0xC
        self.set("INTSTATUS", "CAUSES", self.values["INTSTATUS"] & 3 | overruns)
        self.interrupt.set(self.values["INTSTATUS"] != 0)

    def _send_waiting(self) -> None:
        if self.get("STATE", "TXFULL") and self.get("CTRL", "TXEN") and self.baud is not None:
            self.set("STATE", "TXFULL", 0)
            self.transmit(self._waiting)
            if self.get("CTRL", "TXIE"):
                self._cause(_TX)

    def _cause(self, bit: int) -> None:
        self.set("INTSTATUS", "CAUSES", self.values["INTSTATUS"] | bit)
