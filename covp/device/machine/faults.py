"""The `DeviceFault` of a run that the emulator ended with an error."""

from __future__ import annotations

from unicorn import unicorn_const as uc
from unicorn.unicorn_py3.unicorn import Uc

from covp.chip.cores import Core
from covp.chip.memory_errors import is_stack_overflow, nearest_region, stack_overflow_detail
from covp.chip.platform_file import Platform
from covp.device.machine.counter import Counter
from covp.device.machine.engine import register_id
from covp.device.machine.instructions import aligned_access
from covp.errors import DeviceFault, FaultKind
from covp.hardware.peripheral_map import PAGE

_PERMISSIONS = {
    uc.UC_ERR_READ_UNMAPPED: uc.UC_PROT_READ,
    uc.UC_ERR_WRITE_UNMAPPED: uc.UC_PROT_WRITE,
    uc.UC_ERR_FETCH_UNMAPPED: uc.UC_PROT_EXEC,
    uc.UC_ERR_READ_PROT: uc.UC_PROT_READ,
    uc.UC_ERR_WRITE_PROT: uc.UC_PROT_WRITE,
    uc.UC_ERR_FETCH_PROT: uc.UC_PROT_EXEC,
}
"""What a page lacks, by Unicorn's status."""
_LONGEST = 4
"""Bytes of an instruction."""
# Exception numbers as the emulator reports them.
_ARM_EXCEPTIONS: dict[int, tuple[FaultKind, str]] = {
    1: ("illegal instruction", "undefined instruction"),
    2: ("unhandled exception", "SVC, and there is no handler"),
    3: ("unmapped fetch", "the instruction cannot be fetched"),
    7: ("breakpoint", "BKPT"),
    8: ("unhandled exception", "exception return outside a handler"),
    17: ("illegal instruction", "no such coprocessor, or it is off"),
    18: ("illegal instruction", "a jump to an even address: the core has no Arm state"),
}
_RISCV_EXCEPTIONS: dict[int, tuple[FaultKind, str]] = {
    0: ("misaligned access", "the jump's target is not on an instruction boundary"),
    1: ("unmapped fetch", "the instruction cannot be fetched"),
    2: ("illegal instruction", "this core does not have it"),
    4: ("misaligned access", "load"),
    5: ("unmapped read", ""),
    6: ("misaligned access", "store"),
    7: ("unmapped write", ""),
    8: ("unhandled exception", "ecall, and there is no handler"),
    11: ("unhandled exception", "ecall, and there is no handler"),
}
_SVC, _UNALIGNED = 2, 4
_RISCV_PAST = (2, 3, 8, 11)
"""Exceptions at which the emulator's pc is past the instruction."""
_EBREAK = (0x00100073, 0x9002)


class FaultReader:
    """A maker of faults from the counter's hooks and the emulator's status.

    Args:
        platform: its memory map.
        core: whose exceptions these are.
        engine, counter: of the core.
    """

    def __init__(self, platform: Platform, core: Core, engine: Uc, counter: Counter) -> None:
        self._platform, self._core = platform, core
        self._engine, self._counter = engine, counter
        self._is_arm = core.architecture == "arm"

    def fault(self, pc: int, sp: int, status: int) -> DeviceFault:
        """Return the fault that ended a run with the core's pc and sp."""
        if status in _PERMISSIONS:
            return self._access(pc, sp, _PERMISSIONS[status])
        if self._counter.state.interrupt:
            return self._exception(pc)
        if status == uc.UC_ERR_INSN_INVALID:
            opcode = self._counter.opcode(pc)
            if not self._is_arm and opcode in _EBREAK:
                return DeviceFault("breakpoint", pc=pc, detail="ebreak")
            return DeviceFault("illegal instruction", pc=pc, detail=f"opcode 0x{opcode:x}")
        return DeviceFault("emulator stop", pc=pc, detail=f"Unicorn's status {status}")

    def misaligned_fault(self, pc: int) -> DeviceFault:
        """Return the fault of the misaligned access that the counter found at ``pc``."""
        state = self._counter.state
        return DeviceFault(
            "misaligned access",
            pc=pc,
            address=state.access_address,
            size=state.access_size,
            detail=f"a {self._core.name} needs a multiple of {state.access_size} here",
        )

    def illegal(self, pc: int) -> DeviceFault:
        """Return the fault of an instruction that the emulator executes but the core lacks."""
        detail = f"opcode 0x{self._counter.opcode(pc):x}: {self._core.name} does not have it"
        return DeviceFault("illegal instruction", pc=pc, detail=detail)

    def _unaligned_fault(self, pc: int) -> DeviceFault:
        """Return the fault of a misaligned access at ``pc`` that the emulator itself found."""
        state = self._counter.state
        found = aligned_access(self._counter.opcode(pc), self._register)
        if found is None:
            return DeviceFault("misaligned access", pc=pc)
        state.access_address, state.access_size = found
        return self.misaligned_fault(pc)

    def _register(self, name: str) -> int:
        return int(self._engine.reg_read(register_id("arm", name)))

    def _access(self, pc: int, sp: int, lacks: int) -> DeviceFault:
        state, platform = self._counter.state, self._platform
        if lacks == uc.UC_PROT_EXEC:
            address = self._find_refusal(pc, _LONGEST, lacks)
            detail = "a jump out of the memory"
            return DeviceFault("unmapped fetch", pc=pc, address=address, detail=detail)
        address = self._find_refusal(state.access_address, state.access_size, lacks)
        kind: FaultKind = "unmapped write" if lacks == uc.UC_PROT_WRITE else "unmapped read"
        region = platform.region_of(address)
        if region is not None:
            kind, detail = "write to read-only memory", region.name
        elif is_stack_overflow(platform, address, sp):
            kind, detail = "stack overflow", stack_overflow_detail(platform, sp)
        else:
            detail = nearest_region(platform, address)
        return DeviceFault(kind, pc=pc, address=address, size=state.access_size, detail=detail)

    def _find_refusal(self, address: int, size: int, lacks: int) -> int:
        """Return the first byte of an access in a page that lacks a permission."""
        last = address + size - 1
        if self._allows(address, lacks) and last // PAGE != address // PAGE:
            return last // PAGE * PAGE & 0xFFFFFFFF
        return address

    def _allows(self, address: int, permission: int) -> bool:
        return any(
            first <= address <= last and permissions & permission
            for first, last, permissions in self._engine.mem_regions()
        )

    def _exception(self, pc: int) -> DeviceFault:
        number = self._counter.state.interrupt - 1
        if self._is_arm and number == _UNALIGNED:
            return self._unaligned_fault(pc)
        if self._is_arm and number == _SVC:
            pc -= 2
        elif not self._is_arm and number in _RISCV_PAST:
            pc -= 4  # even where the instruction has 2 bytes
        table = _ARM_EXCEPTIONS if self._is_arm else _RISCV_EXCEPTIONS
        kind, detail = table.get(number, ("unhandled exception", f"number {number}"))
        if kind == "illegal instruction":
            detail = f"opcode 0x{self._counter.opcode(pc):x}: {detail}"
        return DeviceFault(kind, pc=pc, detail=detail)
