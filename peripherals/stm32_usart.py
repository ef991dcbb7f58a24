"""The USART and LPUART of STM32F7, L4+ and H7 in asynchronous mode.

Registers: ST RM0432 (STM32L4+) 50.8 and 51.7, RM0385 (STM32F74x) 31.8. Not modelled: parity, noise
and framing errors, IDLE, hardware flow control, DMA requests, LIN, smartcard, IrDA, baud detection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from covp.hardware.registers import Field, Register, RegisterMap
from covp.hardware.serial_port import SerialPort
from covp.peripherals._stm32 import is_clocked

_FIFO_BITS = 7 << 29  # CR1: RXFFIE, TXFEIE, FIFOEN
_CLEARABLE = 0x5F  # of ISR by ICR: PE, FE, NE, ORE, IDLE, TC
_TCBGT = 1 << 25  # set after reset on F7 (RM0385 31.8.8)
_PRESCALERS = (1, 2, 4, 6, 8, 10, 12, 16, 32, 64, 128, 256)  # RM0432 50.8.14


def _bits(*names: tuple[str, int]) -> list[Field]:
    return [Field(name, bit) for name, bit in names]


class Stm32Usart(SerialPort):
    """A USART or LPUART, without a baud rate unless it is paced.

    It sends with UE, TE and a valid BRR. Narrow accesses and reserved bits are taken as in silicon.

    Args:
        low_power: an LPUART: baud rate = 256 * clock / BRR.
        fifo: it has FIFOs of 8 bytes and a prescaler (L4+, H7); on F7 their bits are reserved.
        clock, clock_bit: address of RCC's register, and its bit, without which nothing works.
        on_byte, paced, hertz: see `SerialPort`.
    """

    size = 0x400
    widths = frozenset({1, 2, 4})
    ignores_reserved = True
    registers: ClassVar[RegisterMap] = RegisterMap(
        Register(
            "CR1",
            0x00,
            fields=[
                *_bits(("UE", 0), ("UESM", 1), ("RE", 2), ("TE", 3), ("IDLEIE", 4), ("RXNEIE", 5)),
                *_bits(("TCIE", 6), ("TXEIE", 7), ("PEIE", 8), ("PS", 9), ("PCE", 10)),
                *_bits(("WAKE", 11), ("M0", 12), ("MME", 13), ("CMIE", 14), ("OVER8", 15)),
                *(Field("DEDT", 16, 5), Field("DEAT", 21, 5)),
                *_bits(("RTOIE", 26), ("EOBIE", 27), ("M1", 28), ("FIFOEN", 29)),
                *_bits(("TXFEIE", 30), ("RXFFIE", 31)),
            ],
            on_write="control",
        ),
        Register("CR2", 0x04),
        Register(
            "CR3",
            0x08,
            fields=[
                *(Field("EIE", 0), Field("MODES", 1, 11, doc="Kept, without effect.")),
                *(Field("OVRDIS", 12), Field("MORE", 13, 19, doc="Kept, without effect.")),
            ],
            on_write="control",
        ),
        Register("BRR", 0x0C, fields=[Field("DIVIDER", 0, 20)], on_write="divide"),
        Register("GTPR", 0x10, fields=[Field("PSC_GT", 0, 16)]),
        Register("RTOR", 0x14),
        Register(
            "RQR",
            0x18,
            access="wo",
            fields=[
                Field("OTHER", 0, 3, access="wo"),
                Field("RXFRQ", 3, access="wo", on_write="flush", doc="Drops what was received."),
                Field("TXFRQ", 4, access="wo"),
            ],
        ),
        Register(
            "ISR",
            0x1C,
            access="ro",
            fields=[
                *_bits(("PE", 0), ("FE", 1), ("NE", 2), ("ORE", 3), ("IDLE", 4), ("RXNE", 5)),
                *(Field("TC", 6, reset=1), Field("TXE", 7, reset=1)),
                *_bits(("BUSY", 16), ("TEACK", 21), ("REACK", 22), ("TXFE", 23), ("RXFF", 24)),
                Field("TCBGT", 25),
            ],
        ),
        Register("ICR", 0x20, access="wo", on_write="clear"),
        Register("RDR", 0x24, access="ro", fields=[Field("DATA", 0, 9)], on_read="receive"),
        Register("TDR", 0x28, fields=[Field("DATA", 0, 9)], on_write="send"),
        Register("PRESC", 0x2C, fields=[Field("PRESCALER", 0, 4)], on_write="prescale"),
    )

    def __init__(
        self,
        low_power: bool = False,
        fifo: bool = True,
        clock: int | None = None,
        clock_bit: int = 0,
        on_byte: Callable[[int], None] | None = None,
        paced: bool = False,
        hertz: int | None = None,
    ) -> None:
        self.low_power, self.fifo = low_power, fifo
        self._enable = (clock, clock_bit)
        super().__init__(on_byte, paced, hertz)

    def reset(self) -> None:
        """As after power-on."""
        super().reset()
        self._locked = {"BRR": 0, "PRESC": 0}
        if not self.fifo:
            self.values["ISR"] |= _TCBGT

    # -- registers ----------------------------------------------------------------------------

    def read_register(self, offset: int, size: int) -> int:
        """A load of the core; 0 without a clock."""
        return super().read_register(offset, size) if is_clocked(self, *self._enable) else 0

    def write_register(self, offset: int, size: int, value: int) -> None:
        """A store of the core, which is ignored without a clock."""
        if is_clocked(self, *self._enable):
            super().write_register(offset, size, value)

    def control(self, value: int) -> None:
        """CR1 or CR3 was written. Without UE the flags of ISR are those after reset."""
        if not self.fifo:
            self.values["CR1"] &= ~_FIFO_BITS
        if not self.get("CR1", "UE"):
            self.values["ISR"] = self.registers["ISR"].reset_value | (0 if self.fifo else _TCBGT)
            self.received.clear()
        self.listen()
        self._update()

    def divide(self, value: int) -> None:
        """BRR was written; with UE it keeps its value."""
        self._set_locked("BRR", value)

    def prescale(self, value: int) -> None:
        """PRESC was written; with UE it keeps its value."""
        self._set_locked("PRESC", value if self.fifo else 0)

    def send(self, value: int) -> None:
        """TDR was written."""
        if self.get("CR1", "UE") and self.get("CR1", "TE") and self.baud is not None:
            self.transmit(value & 0xFF)
            self.set("ISR", "TC", 1)
            self._update()

    def receive(self) -> None:
        """RDR is read."""
        self.values["RDR"] = self.take()
        self._update()

    def flush(self, value: int) -> None:
        """RQR.RXFRQ was written."""
        self.received.clear()
        self.listen()
        self._update()

    def clear(self, value: int) -> None:
        """ICR was written."""
        self.values["ISR"] &= ~(value & _CLEARABLE)
        self._update()

    def _set_locked(self, register: str, value: int) -> None:
        if not self.get("CR1", "UE"):
            self._locked[register] = value
        self.values[register] = self._locked[register]

    # -- the port -----------------------------------------------------------------------------

    @property
    def baud(self) -> float | None:
        """See `SerialPort`; RM0432 50.5.7 and 51.4.6."""
        divider, prescaler = self.values["BRR"], self.values["PRESC"]
        clock = self.hertz / _PRESCALERS[min(prescaler, len(_PRESCALERS) - 1)]
        if self.low_power:
            return 256 * clock / divider if divider >= 0x300 else None
        divider &= 0xFFFF
        if self.get("CR1", "OVER8"):
            divider = divider & 0xFFF0 | (divider & 7) << 1
            clock *= 2
        return clock / divider if divider >= 16 else None

    @property
    def depth(self) -> int:
        """See `SerialPort`."""
        return 8 if self.get("CR1", "FIFOEN") else 1

    @property
    def is_listening(self) -> bool:
        """See `SerialPort`."""
        return bool(self.get("CR1", "UE") and self.get("CR1", "RE"))

    def arrived(self) -> None:
        """See `SerialPort`."""
        self._update()

    def overrun(self, byte: int) -> None:
        """The byte is lost, and ORE says so; with OVRDIS it takes the place of the last one."""
        if self.get("CR3", "OVRDIS"):
            self.received[-1] = byte
        else:
            self.set("ISR", "ORE", 1)
        self._update()

    def _update(self) -> None:
        """The flags that follow from the rest, and the interrupt line."""
        enabled = self.get("CR1", "UE")
        fifo = self.get("CR1", "FIFOEN")
        self.set("ISR", "RXNE", int(bool(self.received)))
        self.set("ISR", "TEACK", enabled & self.get("CR1", "TE"))
        self.set("ISR", "REACK", enabled & self.get("CR1", "RE"))
        self.set("ISR", "TXFE", fifo)
        self.set("ISR", "RXFF", int(fifo and len(self.received) >= self.depth))
        causes = (
            ("RXNEIE", "RXNE"), ("RXNEIE", "ORE"), ("TXEIE", "TXE"), ("TCIE", "TC"),
            ("TXFEIE", "TXFE"), ("RXFFIE", "RXFF"),
        )  # fmt: skip
        level = any(self.get("CR1", enable) and self.get("ISR", flag) for enable, flag in causes)
        level |= bool(self.get("CR3", "EIE") and self.get("ISR", "ORE"))
        self.interrupt.set(bool(enabled) and level)
