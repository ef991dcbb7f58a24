"""RISC-V debug: a JTAG debug transport module and a debug module for one hart.

Source: RISC-V External Debug Support 0.13.2: chapter 3 (debug module), 4.8 (dcsr), 5 (triggers),
6.1 (JTAG DTM). Abstract register access and system bus access; no program buffer.
"""

from __future__ import annotations

from collections.abc import Callable

from covp.chip.isa.riscv import RISCV
from covp.device.debug.target import DebugTarget, HaltReason, WatchedAccess
from covp.errors import DeviceError

IDCODE = 0x10001FFF
_IDCODE, _DTMCS, _DMI = 0x01, 0x10, 0x11
_ABITS = 7
_DTM_VERSION = 1
_WORD = 0xFFFFFFFF

_DATA0, _DATA1, _DMCONTROL, _DMSTATUS, _HARTINFO = 0x04, 0x05, 0x10, 0x11, 0x12
_ABSTRACTCS, _COMMAND, _SBCS, _SBADDRESS0, _SBDATA0, _HALTSUM0 = 0x16, 0x17, 0x38, 0x39, 0x3C, 0x40

_HALTREQ, _RESUMEREQ, _ACKHAVERESET = 1 << 31, 1 << 30, 1 << 28
_SETRESETHALT, _CLRRESETHALT, _NDMRESET, _DMACTIVE = 1 << 3, 1 << 2, 1 << 1, 1
_HARTSEL = 0x03FFFFC0

_UNSUPPORTED, _EXCEPTION, _HALT_RESUME = 2, 3, 4
_DCSR, _DPC, _DSCRATCH = 0x7B0, 0x7B1, (0x7B2, 0x7B3)
_TSELECT, _TDATA1, _TDATA2, _TDATA3, _TINFO = 0x7A0, 0x7A1, 0x7A2, 0x7A3, 0x7A4
_CAUSES = {
    HaltReason.EBREAK: 1,
    HaltReason.EXIT: 1,
    HaltReason.BREAKPOINT: 2,
    HaltReason.WATCHPOINT: 2,
    HaltReason.REQUEST: 3,
    HaltReason.STEP: 4,
    HaltReason.RESET: 5,
    HaltReason.FAULT: 3,
}
_STEP, _DCSR_KEPT = 1 << 2, 0xBE07
_DEBUG_VERSION, _MACHINE_MODE = 4 << 28, 3
TRIGGERS = 4
# mcontrol: type 2, dmode, action, M, S, U, execute, store, load
_MCONTROL, _MCONTROL_KEPT = 2 << 28, 1 << 27 | 0xF << 12 | 0x5F
_SB_VERSION, _SB_WIDTHS = 1 << 29 | 32 << 5, 0b111
_SB_KEPT, _SB_ERROR = 1 << 20 | 7 << 17 | 1 << 16 | 1 << 15, 7 << 12


class DebugModule:
    """The debug module: registers by their DMI address."""

    def __init__(self, target: DebugTarget) -> None:
        self.target = target
        self._control = 0
        self._data = [0, 0]
        self._cmderr = 0
        self._resumeack = self._havereset = False
        self._reset_halt = False
        self._dcsr = 0
        self._scratch = [0, 0]
        self._selected = 0
        self._selected_missing = False
        self._triggers = [[0, 0] for _ in range(TRIGGERS)]
        self._sbcs = 2 << 17
        self._sberror = 0
        self._sbaddress = self._sbdata = 0

    def read(self, address: int) -> int:
        """Return a register of the module; those that do not exist are zero."""
        if address == _SBDATA0:
            return self._read_bus_data()
        readers: dict[int, Callable[[], int]] = {
            _DATA0: lambda: self._data[0], _DATA1: lambda: self._data[1],
            _DMCONTROL: lambda: self._control, _DMSTATUS: self._status,
            _HARTINFO: lambda: 0, _ABSTRACTCS: lambda: self._cmderr << 8 | len(self._data),
            _SBCS: lambda: _SB_VERSION | _SB_WIDTHS | self._sbcs | self._sberror << 12,
            _SBADDRESS0: lambda: self._sbaddress, _HALTSUM0: lambda: int(self.target.is_halted),
        }  # fmt: skip
        return readers[address]() if address in readers else 0

    def write(self, address: int, value: int) -> None:
        """Change a register; those that do not exist ignore it."""
        if address in (_DATA0, _DATA1):
            self._data[address - _DATA0] = value
        elif address == _DMCONTROL:
            self._write_control(value)
        elif address == _ABSTRACTCS:
            self._cmderr &= ~(value >> 8 & 7)
        elif address == _COMMAND:
            self._run_command(value)
        elif address == _SBCS:
            self._sberror &= ~(value >> 12 & 7)
            self._sbcs = value & _SB_KEPT
        elif address == _SBADDRESS0:
            self._sbaddress = value
            if self._sbcs >> 20 & 1:
                self._read_bus()
        elif address == _SBDATA0:
            self._write_bus(value)

    # -- run control --------------------------------------------------------------------------

    def reset(self) -> None:
        """Reset the hart and its surroundings, by ndmreset or by the reset line."""
        self.target.reset(halt=self._reset_halt or bool(self._control & _HALTREQ))
        self._havereset = True

    def _write_control(self, value: int) -> None:
        was = self._control
        self._control = value & (_DMACTIVE | _NDMRESET | _HALTREQ)
        if value & _SETRESETHALT:
            self._reset_halt = True
        if value & _CLRRESETHALT:
            self._reset_halt = False
        if value & _ACKHAVERESET:
            self._havereset = False
        if was & _NDMRESET and not value & _NDMRESET:
            self.reset()
        # hart 0 is the only one: the selection reads back as zero
        if value & _HARTSEL:
            self._selected_missing = True
            return
        self._selected_missing = False
        if value & _HALTREQ:
            self.target.halt()
        elif value & _RESUMEREQ and self.target.is_halted:
            self._resume()

    def _resume(self) -> None:
        self._resumeack = True
        if self._dcsr & _STEP:
            self.target.step()
        else:
            self.target.resume(over=False)

    def _status(self) -> int:
        status = 2 | 1 << 5 | 1 << 7  # version 0.13, halt on reset, authenticated
        if self._selected_missing:
            return status | 3 << 14
        status |= 3 << 8 if self.target.is_halted else 3 << 10
        status |= 3 << 16 if self._resumeack else 0
        return status | (3 << 18 if self._havereset else 0)

    # -- abstract commands --------------------------------------------------------------------

    def _run_command(self, value: int) -> None:
        if self._cmderr:
            return
        kind, size = value >> 24, value >> 20 & 7
        if kind or value & 1 << 18 or value & 1 << 19:
            self._cmderr = _UNSUPPORTED
        elif not value & 1 << 17:
            return
        elif size != 2:
            self._cmderr = _UNSUPPORTED
        elif not self.target.is_halted:
            self._cmderr = _HALT_RESUME
        else:
            try:
                self._transfer(value & 0xFFFF, bool(value & 1 << 16))
            except DeviceError:
                self._cmderr = _EXCEPTION

    def _transfer(self, number: int, is_write: bool) -> None:
        if is_write:
            self._write_register(number, self._data[0])
        else:
            self._data[0] = self._read_register(number) & _WORD

    def _read_register(self, number: int) -> int:
        special: dict[int, Callable[[], int]] = {
            _DCSR: self._read_dcsr, _TSELECT: lambda: self._selected,
            _TDATA1: lambda: self._triggers[self._selected][0] | _MCONTROL,
            _TDATA2: lambda: self._triggers[self._selected][1],
            _TDATA3: lambda: 0, _TINFO: lambda: 1 << 2,
            _DSCRATCH[0]: lambda: self._scratch[0], _DSCRATCH[1]: lambda: self._scratch[1],
        }  # fmt: skip
        if number in special:
            return special[number]()
        return self.target.read_register(self._name(number))

    def _write_register(self, number: int, value: int) -> None:
        if number == _DCSR:
            self._dcsr = value & _DCSR_KEPT
        elif number in _DSCRATCH:
            self._scratch[number - _DSCRATCH[0]] = value
        elif number == _TSELECT:
            self._selected = value if value < TRIGGERS else self._selected
        elif number in (_TDATA1, _TDATA2):
            self._write_trigger(number - _TDATA1, value)
        elif number not in (_TDATA3, _TINFO):
            self.target.write_register(self._name(number), value)

    def _name(self, number: int) -> str:
        if number == _DPC:
            return "pc"
        if 0x1000 <= number < 0x1020:
            return RISCV.registers[number - 0x1000]
        if 0x1020 <= number < 0x1040:
            return f"f{number - 0x1020}"
        return f"csr0x{number:x}"

    def _read_dcsr(self) -> int:
        cause = _CAUSES[self.target.reason]
        return _DEBUG_VERSION | self._dcsr | cause << 6 | _MACHINE_MODE

    # -- triggers -----------------------------------------------------------------------------

    def _write_trigger(self, part: int, value: int) -> None:
        trigger = self._triggers[self._selected]
        self._arm(trigger, False)
        trigger[part] = value & _MCONTROL_KEPT if part == 0 else value
        self._arm(trigger, True)

    def _arm(self, trigger: list[int], on: bool) -> None:
        control, address = trigger
        target = self.target
        if control & 4:
            (target.set_breakpoint if on else target.clear_breakpoint)(address)
        if control & 3:
            access = {1: WatchedAccess.READ, 2: WatchedAccess.WRITE, 3: WatchedAccess.ANY}[
                control & 3
            ]
            (target.set_watchpoint if on else target.clear_watchpoint)(address, 4, access)

    # -- system bus ---------------------------------------------------------------------------

    def _width(self) -> int:
        """Return the bytes of an access; 0 sets the error for sizes that there are not."""
        code = self._sbcs >> 17 & 7
        if code > 2:
            self._sberror = 4
            return 0
        if self._sbaddress % (1 << code):
            self._sberror = 3
            return 0
        return 1 << code

    def _read_bus(self) -> None:
        width = self._width() if not self._sberror else 0
        if not width:
            return
        try:
            data = self.target.read_memory(self._sbaddress, width)
        except DeviceError:
            self._sberror = 2
            return
        self._sbdata = int.from_bytes(data, "little")
        self._advance(width)

    def _read_bus_data(self) -> int:
        value = self._sbdata
        if self._sbcs >> 15 & 1:
            self._read_bus()
        return value

    def _write_bus(self, value: int) -> None:
        self._sbdata = value
        width = self._width() if not self._sberror else 0
        if not width:
            return
        raw = (value & (1 << 8 * width) - 1).to_bytes(width, "little")
        try:
            self.target.write_memory(self._sbaddress, raw)
        except DeviceError:
            self._sberror = 2
            return
        self._advance(width)

    def _advance(self, width: int) -> None:
        if self._sbcs >> 16 & 1:
            self._sbaddress = (self._sbaddress + width) & _WORD


class Dtm:
    """The debug transport module as a `Tap`."""

    ir_length = 5

    def __init__(self, module: DebugModule) -> None:
        self._module = module
        self._result = 0
        self.reset()

    def reset(self) -> None:
        """Set the instruction to IDCODE."""
        self._instruction = _IDCODE

    def set_instruction(self, value: int) -> None:
        """Set the instruction (Update-IR)."""
        self._instruction = value

    def capture(self) -> tuple[int, int]:
        """Return IDCODE, dtmcs or the result of the previous DMI access, and its bits."""
        if self._instruction == _IDCODE:
            return IDCODE, 32
        if self._instruction == _DTMCS:
            return _ABITS << 4 | _DTM_VERSION, 32
        if self._instruction == _DMI:
            return self._result, _ABITS + 34
        return 0, 1

    def update(self, value: int) -> None:
        """Make a DMI access: two bits of operation, 32 of data, the address."""
        if self._instruction != _DMI:
            return
        operation, data, address = value & 3, value >> 2 & _WORD, value >> 34
        if operation == 1:
            data = self._module.read(address)
        elif operation == 2:
            self._module.write(address, data)
        self._result = address << 34 | data << 2
