"""Nordic's UARTE: a serial port whose bytes EasyDMA moves from and to RAM.

Registers: nRF52840 Product Specification v1.7, "UARTE - Universal asynchronous receiver/transmitter
with EasyDMA"; EasyDMA reaches the Data RAM alone ("EasyDMA").
"""

from __future__ import annotations

from covp.errors import DeviceFault
from covp.hardware.registers import Field, Register, RegisterMap
from covp.hardware.serial_port import SerialPort

_RAM, _RAM_END = 0x20000000, 0x30000000
_ENABLED = 8
_FIFO = 4
_BAUDRATE_STEP = 16e6 / 2**32
_EVENTS = {
    "RXDRDY": 2, "ENDRX": 4, "TXDRDY": 7, "ENDTX": 8, "ERROR": 9, "RXTO": 17, "RXSTARTED": 19,
    "TXSTARTED": 20, "TXSTOPPED": 22,
}  # fmt: skip
"""Events by the number of their bit in INTEN; their registers are words from 0x100 on."""


def _task(name: str, offset: int, hook: str) -> Register:
    return Register(f"TASKS_{name}", offset, access="wo", on_write=hook)


class NrfUarte(SerialPort):
    """UARTE0 of the nRF52840: one transfer each way at a time.

    What is sent goes at once. A buffer outside RAM, such as a constant in flash, is a fault, as
    EasyDMA does not reach it. Arguments and attributes are those of `SerialPort`.
    """

    ignores_reserved = True
    size = 0x1000
    registers = RegisterMap(
        _task("STARTRX", 0x000, "start_receiver"),
        _task("STOPRX", 0x004, "stop_receiver"),
        _task("STARTTX", 0x008, "start_transmitter"),
        _task("STOPTX", 0x00C, "stop_transmitter"),
        _task("FLUSHRX", 0x02C, "flush"),
        *(Register(f"EVENTS_{name}", 0x100 + 4 * bit, on_write="update")
          for name, bit in _EVENTS.items()),
        Register("SHORTS", 0x200),
        Register("INTEN", 0x300, on_write="update"),
        Register("INTENSET", 0x304, on_write="enable"),
        Register("INTENCLR", 0x308, on_write="disable"),
        Register("ERRORSRC", 0x480),
        Register("ENABLE", 0x500, fields=[Field("ENABLE", 0, 4, doc="8: on.")], on_write="switch"),
        *(Register(f"PSEL_{name}", 0x508 + 4 * position, reset=0xFFFFFFFF)
          for position, name in enumerate(("RTS", "TXD", "CTS", "RXD"))),
        Register("BAUDRATE", 0x524, reset=0x04000000),
        Register("RXD_PTR", 0x534),
        Register("RXD_MAXCNT", 0x538, fields=[Field("MAXCNT", 0, 16)]),
        Register("RXD_AMOUNT", 0x53C, access="ro"),
        Register("TXD_PTR", 0x544),
        Register("TXD_MAXCNT", 0x548, fields=[Field("MAXCNT", 0, 16)]),
        Register("TXD_AMOUNT", 0x54C, access="ro"),
        Register("CONFIG", 0x56C),
    )  # fmt: skip

    def reset(self) -> None:
        """As after power-on."""
        super().reset()
        self._buffer: tuple[int, int] | None = None  # where the receiver writes, and how much more
        self.interrupt.set(False)

    # -- registers ----------------------------------------------------------------------------

    def start_transmitter(self, value: int) -> None:
        """TASKS_STARTTX: the whole buffer goes."""
        if not (value & 1 and self._is_on):
            return
        start, count = self.values["TXD_PTR"], self.get("TXD_MAXCNT", "MAXCNT")
        self._demand_ram("TXD", start, count)
        self.values["EVENTS_TXSTARTED"] = 1
        for byte in self.bus.read(start, count) if count else b"":
            self.transmit(byte)
            self.values["EVENTS_TXDRDY"] = 1
        self.values["TXD_AMOUNT"] = count
        self.values["EVENTS_ENDTX"] = 1
        self.update()

    def stop_transmitter(self, value: int) -> None:
        """TASKS_STOPTX."""
        self.values["EVENTS_TXSTOPPED"] = value & 1
        self.update()

    def start_receiver(self, value: int) -> None:
        """TASKS_STARTRX: received bytes go to the buffer."""
        if not (value & 1 and self._is_on):
            return
        start, count = self.values["RXD_PTR"], self.get("RXD_MAXCNT", "MAXCNT")
        self._demand_ram("RXD", start, count)
        self._buffer = (start, count)
        self.values["RXD_AMOUNT"] = 0
        self.values["EVENTS_RXSTARTED"] = 1
        self.listen()
        self.arrived()

    def stop_receiver(self, value: int) -> None:
        """TASKS_STOPRX: the transfer ends with what has come."""
        if value & 1 and self._buffer is not None:
            self._buffer = None
            self.values["EVENTS_ENDRX"] = self.values["EVENTS_RXTO"] = 1
        self.update()

    def flush(self, value: int) -> None:
        """TASKS_FLUSHRX: bytes in the FIFO go to the buffer as they do anyway."""
        self.arrived()

    def enable(self, value: int) -> None:
        """INTENSET: ones are set in INTEN."""
        self._change_interrupts(self.values["INTEN"] | value)

    def disable(self, value: int) -> None:
        """INTENCLR: ones are cleared in INTEN."""
        self._change_interrupts(self.values["INTEN"] & ~value)

    def switch(self, value: int) -> None:
        """ENABLE was written."""
        if not self._is_on:
            self._buffer = None
        self.listen()

    def update(self, value: int = 0) -> None:
        """The interrupt line follows the events that are enabled."""
        events = sum((self.values[f"EVENTS_{n}"] & 1) << bit for n, bit in _EVENTS.items())
        self.interrupt.set(bool(events & self.values["INTEN"]))

    # -- the port -----------------------------------------------------------------------------

    @property
    def baud(self) -> float:
        """See `SerialPort`."""
        return self.values["BAUDRATE"] * _BAUDRATE_STEP

    @property
    def depth(self) -> int:
        """See `SerialPort`: bytes that wait until the receiver has a buffer."""
        return _FIFO

    @property
    def is_listening(self) -> bool:
        """See `SerialPort`."""
        return self._is_on and self._buffer is not None

    def arrived(self) -> None:
        """See `SerialPort`: bytes go to the buffer, and the transfer ends when it is full."""
        while self._buffer is not None and self.received:
            start, count = self._buffer
            self.values["EVENTS_RXDRDY"] = 1
            if count:
                self._buffer = (start + 1, count - 1)
                self.values["RXD_AMOUNT"] += 1
                self.bus.write(start, bytes([self.take()]))
            if count <= 1:
                self._buffer = None
                self.values["EVENTS_ENDRX"] = 1
        self.update()

    @property
    def _is_on(self) -> bool:
        return self.get("ENABLE", "ENABLE") == _ENABLED

    def _change_interrupts(self, value: int) -> None:
        for name in ("INTEN", "INTENSET", "INTENCLR"):
            self.values[name] = value
        self.update()

    def _demand_ram(self, channel: str, start: int, count: int) -> None:
        if count and not (start >= _RAM and start + count <= _RAM_END):
            raise DeviceFault(
                "peripheral error",
                address=start,
                detail=f"{self.name}: {channel}.PTR 0x{start:08x} is not in RAM, which is all that "
                "EasyDMA reaches: copy constants to RAM first",
            )
