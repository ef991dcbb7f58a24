"""A 16550 UART, as on QEMU's machine virt.

Registers: Texas Instruments PC16550D (SNLS378C) section 8; one byte each.
"""

from __future__ import annotations

from covp.hardware.serial_port import SerialPort

_DATA, _IER, _IIR, _LCR, _MCR, _LSR, _MSR, _SCR = range(8)
_DLAB = 1 << 7  # LCR
_LOOP = 1 << 4  # MCR
_READY, _OVERRUN, _SENT = 1, 2, 0x60  # LSR
_LINES = 0xB0  # MSR: CTS, DSR and DCD of a cable that is plugged in
_NONE, _EMPTIED, _RECEIVED, _STATUS = 1, 2, 4, 6  # IIR
_TIMEOUT = 0xC
_TRIGGERS = (1, 4, 8, 14)
_DEPTH = 16


class Ns16550(SerialPort):
    """The UART with its FIFOs; parity, breaks and the modem's lines are not modelled.

    Arguments and attributes are those of `SerialPort`; ``hertz`` is 3,686,400 on QEMU's board.
    """

    size = 0x100

    def reset(self) -> None:
        """As after a master reset (table 2)."""
        super().reset()
        self._bytes = bytearray(8)
        self._divisor = bytearray(2)
        self._fifo = 0
        self._lsr = _SENT
        self._emptied = False

    def read_register(self, offset: int, size: int) -> int:
        """A byte of the register file. Raises DeviceFault outside it or for another size."""
        self.look()
        self._check(offset, size, "read")
        if offset < 2 and self._bytes[_LCR] & _DLAB:
            return self._divisor[offset]
        value = self._read(offset)
        self._update()
        return value

    def write_register(self, offset: int, size: int, value: int) -> None:
        """A byte of the register file. Raises DeviceFault outside it or for another size."""
        self._check(offset, size, "write")
        if offset < 2 and self._bytes[_LCR] & _DLAB:
            self._divisor[offset] = value
        else:
            self._write(offset, value)
        self.listen()
        self._update()

    def _check(self, offset: int, size: int, what: str) -> None:
        if offset >= len(self._bytes) or size != 1:
            raise self.fault(f"{what} of {size} bytes at offset 0x{offset:x}: registers are bytes "
                             "from 0 to 7", offset, size)  # fmt: skip

    def _read(self, offset: int) -> int:
        if offset == _DATA:
            return self.take()
        if offset == _IIR:
            cause = self._cause()
            self._emptied &= cause != _EMPTIED
            return cause | (0xC0 if self._fifo & 1 else 0)
        if offset == _LSR:
            value = self._lsr | (_READY if self.received else 0)
            self._lsr &= ~_OVERRUN
            return value
        if offset == _MSR:
            return self._modem()
        return self._bytes[offset]

    def _write(self, offset: int, value: int) -> None:
        if offset == _DATA:
            self._emptied = True
            self._send(value)
        elif offset == _IIR:
            self._control_fifo(value)
        elif offset == _IER:
            # THRE is reported when its interrupt is enabled, if there is room then
            self._emptied |= bool(value & ~self._bytes[_IER] & 2)
            self._bytes[_IER] = value & 0xF
        elif offset == _MCR:
            self._bytes[_MCR] = value & 0x1F
        elif offset not in (_LSR, _MSR):
            self._bytes[offset] = value

    def _send(self, value: int) -> None:
        if not self._bytes[_MCR] & _LOOP:
            self.transmit(value)
        elif len(self.received) < self.depth:
            self.received.append(value)
        else:
            self.overrun(value)

    def _control_fifo(self, value: int) -> None:
        switched = (value ^ self._fifo) & 1
        if value & 2 or switched:
            self.received.clear()
        self._emptied |= bool(value & 4 or switched)
        self._fifo = value & 0xC9 if value & 1 else 0

    def _modem(self) -> int:
        if not self._bytes[_MCR] & _LOOP:
            return _LINES
        mcr = self._bytes[_MCR]  # section 8.6.7: OUT2, OUT1, DTR, RTS as DCD, RI, DSR, CTS
        return (mcr & 0xC) << 4 | (mcr & 2) << 3 | (mcr & 1) << 5

    # -- the port -----------------------------------------------------------------------------

    @property
    def baud(self) -> float | None:
        """See `SerialPort`; section 8.3."""
        divisor = int.from_bytes(self._divisor, "little")
        return self.hertz / (16 * divisor) if divisor else None

    @property
    def depth(self) -> int:
        """See `SerialPort`."""
        return _DEPTH if self._fifo & 1 else 1

    @property
    def is_listening(self) -> bool:
        """See `SerialPort`."""
        return not self._bytes[_MCR] & _LOOP

    def arrived(self) -> None:
        """See `SerialPort`."""
        self._update()

    def overrun(self, byte: int) -> None:
        """Without FIFOs the byte takes the place of the last one (section 8.6.3)."""
        self._lsr |= _OVERRUN
        if not self._fifo & 1:
            self.received[-1] = byte
        self._update()

    def _cause(self) -> int:
        """The most urgent interrupt (table 4)."""
        enabled = self._bytes[_IER]
        if enabled & 4 and self._lsr & _OVERRUN:
            return _STATUS
        if enabled & 1 and self.received:
            reached = len(self.received) >= _TRIGGERS[self._fifo >> 6]
            return _RECEIVED if reached or not self._fifo & 1 else _TIMEOUT
        return _EMPTIED if enabled & 2 and self._emptied else _NONE

    def _update(self) -> None:
        self.interrupt.set(self._cause() != _NONE)
