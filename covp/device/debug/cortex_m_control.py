"""`DebugControl`: the debug registers in a Cortex-M's system control space.

Registers as in Arm DDI0403E (ARMv7-M) C1.6 and B3.2, whose names are used.
"""

from __future__ import annotations

from collections.abc import Callable

from covp.chip.isa.arm import ARM
from covp.device.debug.cortex_m_comparators import WatchpointUnit
from covp.device.debug.cortex_m_ids import CoreIds
from covp.device.debug.target import DebugTarget, HaltReason
from covp.errors import DeviceFault

SCS = 0xE000E000
_CPUID, _AIRCR, _CFSR, _HFSR, _DFSR, _BFAR = 0xD00, 0xD0C, 0xD28, 0xD2C, 0xD30, 0xD38
_DHCSR, _DCRSR, _DCRDR, _DEMCR = 0xDF0, 0xDF4, 0xDF8, 0xDFC
_MVFR0, _MVFR2 = 0xF40, 0xF48

_DEBUG_KEY, _RESET_KEY = 0xA05F, 0x05FA
_C_DEBUGEN, _C_HALT, _C_STEP, _C_KEPT = 1 << 0, 1 << 1, 1 << 2, 0x29
_S_REGRDY, _S_HALT, _S_RETIRE_ST, _S_RESET_ST = 1 << 16, 1 << 17, 1 << 24, 1 << 25
_HALTED, _BKPT, _DWTTRAP, _VCATCH = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_VC_CORERESET, _CATCHES = 1 << 0, 0x7F1
_VECTRESET, _SYSRESETREQ = 1 << 0, 1 << 2
_REGWNR = 1 << 16

_EVENTS = {
    HaltReason.REQUEST: _HALTED,
    HaltReason.STEP: _HALTED,
    HaltReason.BREAKPOINT: _BKPT,
    HaltReason.EBREAK: _BKPT,
    HaltReason.EXIT: _BKPT,
    HaltReason.WATCHPOINT: _DWTTRAP,
    HaltReason.FAULT: _VCATCH,
    HaltReason.RESET: 0,
}
_PRECISE, _FORCED = 1 << 9 | 1 << 15, 1 << 30  # PRECISERR with BFARVALID
_FAULT_BITS = {
    "unmapped read": _PRECISE, "unmapped write": _PRECISE, "write to read-only memory": _PRECISE,
    "stack overflow": _PRECISE, "unmapped fetch": 1 << 8, "illegal instruction": 1 << 16,
    "misaligned access": 1 << 24,
}  # fmt: skip
_PC, _PACKED = 15, 20
_CORE_REGISTERS = {
    **dict(enumerate(ARM.shown)),
    17: "msp", 18: "psp", 33: "fpscr",
    **{64 + number: name for number, name in enumerate(ARM.floats)},
}  # fmt: skip
_PACKED_NAMES = ("primask", "basepri", "faultmask", "control")  # from the lowest byte


class DebugControl:
    """DHCSR, DCRSR, DCRDR, DEMCR, DFSR, the resets of AIRCR, and the core's identification.

    A fault of the program halts the core as if vector catch were on for all of them; CFSR, HFSR
    and BFAR show its kind and address. VECTRESET resets the peripherals too.

    Args:
        target: the core.
        ids: its identification.
        watchpoints: notified of the access that halted it.
        log: called with a line for each fault of the program.
    """

    def __init__(
        self,
        target: DebugTarget,
        ids: CoreIds,
        watchpoints: WatchpointUnit,
        log: Callable[[str], None],
    ) -> None:
        self._target, self._ids = target, ids
        self._watchpoints, self._log = watchpoints, log
        self._control = 0  # C_DEBUGEN, C_MASKINTS and C_SNAPSTALL
        self._catches = self._events = self._transfer = 0
        self._reset_seen = self._held = self._halt_after_reset = False
        self._ran = not target.is_halted
        self._retired = 0

    # -- the registers ------------------------------------------------------------------------

    def read(self, offset: int) -> int | None:
        """Return a register of the system control space by its offset; None: it is the device's."""
        if offset == _DHCSR:
            return self._status()
        if offset == _DFSR:
            return self._events
        if offset == _DCRDR:
            return self._transfer
        if offset == _CPUID:
            return self._ids.cpuid
        if _MVFR0 <= offset <= _MVFR2:
            return self._ids.mvfr[(offset - _MVFR0) // 4]
        return self._ids.scs.register(offset)

    def write(self, offset: int, value: int) -> bool:
        """Write a register and return whether the device has nothing to do with it."""
        if offset == _DHCSR:
            self._steer(value)
        elif offset == _DCRSR:
            self._move(value)
        elif offset == _DCRDR:
            self._transfer = value
        elif offset == _DFSR:
            self._events &= ~value
        elif offset == _AIRCR:
            return self._requests_reset(value)
        elif offset == _DEMCR:
            self._catches = value & _CATCHES
            return False
        else:
            return False
        return True

    def _status(self) -> int:
        """Return DHCSR; reading it clears S_RESET_ST and S_RETIRE_ST."""
        value = self._control | _S_REGRDY
        if self._is_halted:
            value |= _S_HALT | (_C_HALT if self._control & _C_DEBUGEN else 0)
        if self._reset_seen:  # a read clears it
            self._reset_seen = self._held
            value |= _S_RESET_ST
        if not self._target.is_halted:
            return value | _S_RETIRE_ST
        retired = self._target.device.instructions
        if retired != self._retired:
            value |= _S_RETIRE_ST
        self._retired = retired
        return value

    def _steer(self, value: int) -> None:
        """Handle a write to DHCSR."""
        if value >> 16 != _DEBUG_KEY:
            return
        self._control = value & _C_KEPT
        debugging = bool(value & _C_DEBUGEN)
        if self._held:
            self._halt_after_reset = bool(value & _C_HALT)
        elif debugging and value & _C_HALT:
            self._target.halt()
            self.look()
        elif self._target.is_halted:
            if debugging and value & _C_STEP:
                self._target.step()
                self._note(self._target.reason)
            else:
                self._resume()

    def _move(self, value: int) -> None:
        """Handle a write to DCRSR: move a core register to DCRDR, or the other way."""
        if not self._is_halted:
            return
        if value & _REGWNR:
            self.write_core_register(value & 0x7F, self._transfer)
        else:
            self._transfer = self.read_core_register(value & 0x7F)

    def _requests_reset(self, value: int) -> bool:
        """Handle a write to AIRCR."""
        if value >> 16 == _RESET_KEY and value & (_SYSRESETREQ | _VECTRESET):
            self.reset()
            return True
        return False

    # -- core registers -----------------------------------------------------------------------

    def read_core_register(self, number: int) -> int:
        """Return a register by its DCRSR.REGSEL number; one that the core does not have is 0."""
        if number == _PACKED:
            return sum(self._read_or_zero(name) << 8 * n for n, name in enumerate(_PACKED_NAMES))
        value = self._read_or_zero(_CORE_REGISTERS.get(number, ""))
        return value & ~1 if number == _PC else value

    def write_core_register(self, number: int, value: int) -> None:
        """Change a register; no effect for one that the core does not have."""
        if number == _PACKED:
            names = {name: value >> 8 * n & 0xFF for n, name in enumerate(_PACKED_NAMES)}
        else:
            names = {_CORE_REGISTERS.get(number, ""): value}
        for name in names.keys() & set(self._target.register_names):
            self._target.write_register(name, names[name])

    def _read_or_zero(self, name: str) -> int:
        has = name in self._target.register_names
        return self._target.read_register(name) if has else 0

    # -- run control --------------------------------------------------------------------------

    def drive_reset(self, low: bool) -> None:
        """Set the reset line: low holds the core in reset, high releases it."""
        if low and not self._held:
            self._reset()
            self._held = True
        elif not low and self._held:
            self._held = False
            self._leave_reset()

    def reset(self) -> None:
        """Reset the system; with VC_CORERESET the core halts before the first instruction."""
        if not self._held:
            self._reset()
            self._leave_reset()

    def look(self) -> None:
        """Note a halt since the last call, and its reason; called at every access."""
        if not self._target.is_halted:
            self._ran = True
        elif self._ran:
            self._ran = False
            self._note(self._target.reason)

    @property
    def _is_halted(self) -> bool:
        return self._target.is_halted and not self._held

    def _resume(self) -> None:
        self._ran = True
        self._target.resume(over=False)

    def _reset(self) -> None:
        self._target.reset(halt=True)
        self._ran = self._halt_after_reset = False
        self._reset_seen = True
        # what DEMCR catches outlives all but a cold reset
        self._target.write_memory(SCS + _DEMCR, self._catches.to_bytes(4, "little"))

    def _leave_reset(self) -> None:
        debugging = bool(self._control & _C_DEBUGEN)
        if debugging and self._catches & _VC_CORERESET:
            self._events |= _VCATCH
        elif debugging and self._halt_after_reset:
            self._events |= _HALTED
        else:
            self._resume()

    def _note(self, reason: HaltReason) -> None:
        """Note that the core halted."""
        self._events |= _EVENTS[reason]
        if reason is HaltReason.WATCHPOINT and self._target.watch_hit is not None:
            self._watchpoints.note(self._target.watch_hit)
            self._target.step()  # hardware halts after the access
            reason = self._target.reason
        if reason is HaltReason.FAULT and self._target.fault is not None:
            self._show(self._target.fault)

    def _show(self, fault: DeviceFault) -> None:
        self._log(str(fault))
        bits = _FAULT_BITS.get(fault.kind, 0)
        shown = {_CFSR: bits, _HFSR: _FORCED if bits else 0}
        if bits == _PRECISE:
            shown[_BFAR] = fault.address or 0
        for offset, value in shown.items():
            self._target.write_memory(SCS + offset, value.to_bytes(4, "little"))
