"""`CortexMDebug`: the debug registers of a Cortex-M, as memory in front of the core's own.

Sources: Arm DDI0403E (ARMv7-M) chapter C1 for DHCSR, DCRSR, DCRDR, DEMCR, DFSR (C1.6), FPB (C1.11)
and DWT (C1.8); B3.2 for CPUID and AIRCR; ADIv5 (IHI0031E) chapter D for the ROM table. Registers of
the chips themselves: ST's RM0385 (STM32F74x) and RM0432 (STM32L4+).
"""

from __future__ import annotations

from covp.debug.target import Access, DebugTarget, HaltReason
from covp.errors import DeviceError
from covp.machine.instructions import is_armv6m

_DFSR, _AIRCR, _CPUID = 0xE000ED30, 0xE000ED0C, 0xE000ED00
_DHCSR, _DCRSR, _DCRDR, _DEMCR = 0xE000EDF0, 0xE000EDF4, 0xE000EDF8, 0xE000EDFC
_DBGKEY = 0xA05F0000
_C_DEBUGEN, _C_HALT, _C_STEP = 1, 2, 4
_S_REGRDY, _S_HALT, _S_RETIRE, _S_RESET = 1 << 16, 1 << 17, 1 << 24, 1 << 25
_VC_CORERESET = 1
_REGWNR = 1 << 16
_VECTKEY, _SYSRESETREQ, _VECTRESET = 0x05FA0000, 1 << 2, 1
_DFSR_BITS = {
    HaltReason.REQUEST: 1,
    HaltReason.STEP: 1,
    HaltReason.BREAKPOINT: 2,
    HaltReason.EBREAK: 2,
    HaltReason.WATCHPOINT: 4,
    HaltReason.RESET: 8,
    HaltReason.FAULT: 8,
}

_FP_CTRL, _FP_COMP = 0xE0002000, 0xE0002008
_DWT_CTRL, _DWT_COMP, _DWT_COMPS = 0xE0001000, 0xE0001020, 4
_MATCHED = 1 << 24
_DWT_ACCESS = {5: Access.READ, 6: Access.WRITE, 7: Access.ANY}
_FP_COMPS = 8
_MVFR0, _MVFR1 = 0xE000EF40, 0xE000EF44
_SINGLE_PRECISION = {_MVFR0: 0x10110021, _MVFR1: 0x11000011}

_CPUIDS = {
    "cortex-m0plus": 0x410CC601,
    "cortex-m3": 0x412FC231,
    "cortex-m4f": 0x410FC241,
    "cortex-m7f": 0x410FC271,
    "cortex-m33": 0x410FD214,
}
_ROM_TABLE = 0xE00FF000
# SCS, DWT and FPB, as offsets from the table; then the identification of a ROM table.
_ROM_ENTRIES = {0x0: 0xFFF0F003, 0x4: 0xFFF02003, 0x8: 0xFFF03003, 0xC: 0}
_COMPONENT_ID = {0xFF0: 0x0D, 0xFF4: 0x10, 0xFF8: 0x05, 0xFFC: 0xB1}
# By platform: DBGMCU_IDCODE, and where the flash size in KB stands.
_CHIPS = {
    "stm32f746": (0x10016449, 0x1FF0F442),
    "stm32l4r5": (0x10016470, 0x1FFF75E0),
}
_DBGMCU, _DBGMCU_END = 0xE0042000, 0xE0042400
_SYSTEM_MEMORY = range(0x1FF00000, 0x20000000)
_REGISTERS = {
    **{n: f"r{n}" for n in range(13)},
    13: "sp", 14: "lr", 15: "pc", 16: "xpsr", 17: "msp", 18: "psp", 33: "fpscr",
    **{64 + n: f"s{n}" for n in range(32)},
}  # fmt: skip
_PACKED = ("primask", "basepri", "faultmask", "control")  # DCRSR 20, from the lowest byte


class CortexMDebug:
    """Memory as a debug access port sees it.

    Reading and writing DHCSR and its kin halts, steps and resets the target; all other addresses
    are the target's memory and peripherals.
    """

    def __init__(self, target: DebugTarget) -> None:
        self.target = target
        platform = target.device.platform
        self.cpuid = _CPUIDS.get(platform.core.name, 0)
        self._has_fpu = platform.core.has("fpu")
        # revision 2 of the unit takes whole addresses, revision 1 only those of code
        self._fpb_revision = 2 if platform.core.name in ("cortex-m7f", "cortex-m33") else 1
        self._small = is_armv6m(platform.core)
        self._idcode, self._size_address = _CHIPS.get(platform.name, (0, 0))
        self._flash_kb = platform.flash.bytes // 1024
        self._enabled = 0
        self._dcrdr = self._demcr = self._dfsr = 0
        self._was_reset = True
        self._noted = False
        self._fp_enable = 0
        self._fp_comps = [0] * _FP_COMPS
        self._placed: list[int] = []
        self._dwt = [[0, 0, 0] for _ in range(_DWT_COMPS)]  # COMP, MASK, FUNCTION
        self._dbgmcu: dict[int, int] = {}

    # -- memory -------------------------------------------------------------------------------

    def read(self, address: int, size: int) -> bytes:
        """``size`` bytes from ``address``. Raises DeviceError where nothing is."""
        self._notice_halt()
        if address % 4 == 0 and size % 4 == 0 and self._is_special(address):
            words = (self._read_word(at) for at in range(address, address + size, 4))
            return b"".join(word.to_bytes(4, "little") for word in words)
        if self._is_special(address) and size < 4:
            word = self._read_word(address & ~3).to_bytes(4, "little")
            return word[address % 4 : address % 4 + size]
        return self.target.read_memory(address, size)

    def write(self, address: int, data: bytes) -> None:
        """Store bytes. Raises DeviceError where nothing is."""
        if address % 4 == 0 and len(data) % 4 == 0 and self._is_special(address):
            for at in range(0, len(data), 4):
                word = int.from_bytes(data[at : at + 4], "little")
                self._write_word(address + at, word)
            return
        self.target.write_memory(address, data)

    def _is_special(self, address: int) -> bool:
        return 0xE0000000 <= address < 0xE0100000 or (
            bool(self._idcode) and address in _SYSTEM_MEMORY
        )

    def _read_word(self, address: int) -> int:
        fixed = {
            _CPUID: self.cpuid, _DHCSR: None, _DCRSR: 0, _DCRDR: self._dcrdr,
            _DEMCR: self._demcr, _DFSR: self._dfsr, _FP_CTRL: self._fp_ctrl(),
        }.get(address)  # fmt: skip
        if fixed is not None:
            return fixed
        if address == _DHCSR:
            return self._read_dhcsr()
        if address in _SINGLE_PRECISION:
            return _SINGLE_PRECISION[address] if self._has_fpu else 0
        if _FP_COMP <= address < _FP_COMP + 4 * _FP_COMPS:
            return self._fp_comps[(address - _FP_COMP) // 4]
        if address == _DWT_CTRL:
            return _DWT_COMPS << 28 | self._fall_through(address) & 0x0FFFFFFF
        if _DWT_COMP <= address < _DWT_COMP + 16 * _DWT_COMPS:
            return self._read_dwt(*divmod(address - _DWT_COMP, 16))
        if _ROM_TABLE <= address < _ROM_TABLE + 0x1000:
            offset = address - _ROM_TABLE
            return _ROM_ENTRIES.get(offset, _COMPONENT_ID.get(offset, 0))
        if address == _DBGMCU:
            return self._idcode
        if _DBGMCU < address < _DBGMCU_END:
            return self._dbgmcu.get(address, 0)
        if address in _SYSTEM_MEMORY:
            at_size = address == self._size_address & ~3
            return self._flash_kb << 8 * (self._size_address & 3) if at_size else 0
        return self._fall_through(address)

    def _fall_through(self, address: int) -> int:
        """What the core's own peripherals say; the rest of the private bus reads as zero."""
        try:
            return int.from_bytes(self.target.read_memory(address, 4), "little")
        except DeviceError:
            return 0

    def _write_word(self, address: int, value: int) -> None:
        if address == _DHCSR:
            self._write_dhcsr(value)
        elif address == _DCRSR:
            self._transfer(value)
        elif address == _DCRDR:
            self._dcrdr = value
        elif address == _DEMCR:
            self._demcr = value
            self._pass_on(address, value)
        elif address == _DFSR:
            self._dfsr &= ~value
        elif address == _AIRCR and value & 0xFFFF0000 == _VECTKEY and value & 5:
            self.reset()
        elif address == _FP_CTRL:
            if value & 2:
                self._fp_enable = value & 1
                self._set_code_breakpoints()
        elif _FP_COMP <= address < _FP_COMP + 4 * _FP_COMPS:
            self._clear_code_breakpoints()
            self._fp_comps[(address - _FP_COMP) // 4] = value
            self._set_code_breakpoints()
        elif _DWT_COMP <= address < _DWT_COMP + 16 * _DWT_COMPS:
            self._write_dwt(*divmod(address - _DWT_COMP, 16), value)
        elif _DBGMCU <= address < _DBGMCU_END:
            self._dbgmcu[address] = value
        elif address not in _SYSTEM_MEMORY:
            self._pass_on(address, value)

    def _pass_on(self, address: int, value: int) -> None:
        """To the core's own peripherals; writes elsewhere on the private bus are ignored."""
        try:
            self.target.write_memory(address, value.to_bytes(4, "little"))
        except DeviceError:
            return

    # -- run control --------------------------------------------------------------------------

    def reset(self) -> None:
        """A system reset: by AIRCR or by the reset line. Debug registers keep their values."""
        catch = bool(self._enabled and self._demcr & _VC_CORERESET)
        self.target.reset(halt=catch)
        self._was_reset = True
        self._noted = not catch

    def core_register(self, number: int) -> int:
        """A register by its DCRSR number. Raises DeviceError: no such register."""
        if number == 20:
            values = [self._optional(name) & 0xFF for name in _PACKED]
            return int.from_bytes(bytes(values), "little")
        return self.target.read_register(self._name(number))

    def set_core_register(self, number: int, value: int) -> None:
        """Change a register by its DCRSR number. Raises DeviceError."""
        if number != 20:
            self.target.write_register(self._name(number), value)
            return
        for name, byte in zip(_PACKED, value.to_bytes(4, "little"), strict=True):
            if name in self.target.register_names:
                self.target.write_register(name, byte)

    def _name(self, number: int) -> str:
        if number not in _REGISTERS:
            raise DeviceError(f"there is no core register {number}")
        return _REGISTERS[number]

    def _optional(self, name: str) -> int:
        known = name in self.target.register_names
        return self.target.read_register(name) if known else 0

    def _notice_halt(self) -> None:
        """Once for each halt: why it came goes to DFSR."""
        if not self.target.halted:
            self._noted = False
        elif not self._noted and self._enabled:
            self._noted = True
            self._dfsr |= _DFSR_BITS[self.target.reason]
            if self.target.reason is HaltReason.WATCHPOINT:
                self._finish_watched_access()

    def _finish_watched_access(self) -> None:
        """The comparators halt a core behind the access, the target stands in front of it."""
        hit = self.target.watch_hit
        for comparator in self._dwt:
            size = 1 << comparator[1]
            if (
                hit is not None
                and comparator[0] < hit.address + hit.size
                and (hit.address < comparator[0] + size)
            ):
                comparator[2] |= _MATCHED
        self.target.step()

    def _read_dhcsr(self) -> int:
        value = self._enabled | _S_REGRDY | _S_RETIRE
        if self.target.halted:
            value |= _S_HALT | _C_HALT
        if self._was_reset:
            value |= _S_RESET
            self._was_reset = False
        return value

    def _write_dhcsr(self, value: int) -> None:
        if value & 0xFFFF0000 != _DBGKEY:
            return
        self._enabled = value & _C_DEBUGEN
        if not self._enabled:
            if self.target.halted:
                self.target.resume()
        elif value & _C_HALT:
            self.target.halt()
        elif self.target.halted and value & _C_STEP:
            self.target.step()
            self._noted = False
        elif self.target.halted:
            self._noted = False
            self.target.resume()
        self._notice_halt()

    def _transfer(self, value: int) -> None:
        """DCRSR was written: a core register to or from DCRDR."""
        if not self.target.halted:
            return
        if value & _REGWNR:
            self.set_core_register(value & 0x7F, self._dcrdr)
        else:
            self._dcrdr = self.core_register(value & 0x7F)

    # -- comparators --------------------------------------------------------------------------

    def _fp_ctrl(self) -> int:
        count = 4 if self._small else _FP_COMPS
        return (self._fpb_revision - 1) << 28 | count << 4 | self._fp_enable

    def _code_addresses(self) -> list[int]:
        if not self._fp_enable:
            return []
        enabled = [comp for comp in self._fp_comps if comp & 1]
        if self._fpb_revision == 2:
            return [comp & ~1 for comp in enabled]
        found = []
        for comp in enabled:
            word = comp & 0x1FFFFFFC
            found += [word + 2 * half for half in (0, 1) if comp >> 30 & (1 << half)]
        return found

    def _set_code_breakpoints(self) -> None:
        self._clear_code_breakpoints()
        self._placed = self._code_addresses()
        for address in self._placed:
            self.target.set_breakpoint(address)

    def _clear_code_breakpoints(self) -> None:
        for address in self._placed:
            self.target.clear_breakpoint(address)
        self._placed = []

    def _read_dwt(self, number: int, offset: int) -> int:
        value = self._dwt[number][offset // 4] if offset < 12 else 0
        if offset == 8:
            self._dwt[number][2] &= ~_MATCHED
        return value

    def _write_dwt(self, number: int, offset: int, value: int) -> None:
        if offset >= 12:
            return
        self._watch(number, False)
        self._dwt[number][offset // 4] = value
        self._watch(number, True)

    def _watch(self, number: int, on: bool) -> None:
        address, mask, function = self._dwt[number]
        access = _DWT_ACCESS.get(function & 0xF)
        if access is None:
            return
        size = 1 << min(mask, 15)
        change = self.target.set_watchpoint if on else self.target.clear_watchpoint
        change(address & -size, size, access)
