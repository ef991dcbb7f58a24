"""The `DeviceFault` of a run that the emulator ended with an error."""

from __future__ import annotations

from unicorn import unicorn_const as uc

from covp.chip.cores import Core
from covp.chip.memory_errors import is_stack_overflow, nearest_region, stack_overflow_detail
from covp.chip.platform_file import Platform
from covp.device.machine.counter import Counter
from covp.errors import DeviceFault, FaultKind

_ACCESS_KINDS: dict[int, FaultKind] = {
    uc.UC_MEM_READ_UNMAPPED: "unmapped read",
    uc.UC_MEM_WRITE_UNMAPPED: "unmapped write",
    uc.UC_MEM_FETCH_UNMAPPED: "unmapped fetch",
    uc.UC_MEM_WRITE_PROT: "write to read-only memory",
    uc.UC_MEM_READ_PROT: "unmapped read",
    uc.UC_MEM_FETCH_PROT: "unmapped fetch",
}
# Exception numbers as the emulator reports them.
_ARM_EXCEPTIONS: dict[int, tuple[FaultKind, str]] = {
    1: ("illegal instruction", "undefined instruction"),
    2: ("unhandled exception", "SVC, and there is no handler"),
    3: ("unmapped fetch", "the instruction cannot be fetched"),
    4: ("misaligned access", "this core needs aligned addresses here"),
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
_SVC = 2
_RISCV_PAST = (2, 3, 8, 11)
"""Exceptions at which the emulator's pc is past the instruction."""
_EBREAK = (0x00100073, 0x9002)


class FaultReader:
    """Makes faults from the counter's hooks and the emulator's status.

    Args:
        platform: its memory map.
        core: whose exceptions these are.
        counter: of the core.
    """

    def __init__(self, platform: Platform, core: Core, counter: Counter) -> None:
        self._platform, self._core, self._counter = platform, core, counter
        self._is_arm = core.architecture == "arm"

    def fault(self, pc: int, sp: int, status: int) -> DeviceFault:
        """The fault that ended a run with the core's pc and sp."""
        if self._counter.state.access_type:
            return self._access(pc, sp)
        if self._counter.state.interrupt:
            return self._exception(pc)
        if status == uc.UC_ERR_INSN_INVALID:
            opcode = self._counter.opcode(pc)
            if not self._is_arm and opcode in _EBREAK:
                return DeviceFault("breakpoint", pc=pc, detail="ebreak")
            return DeviceFault("illegal instruction", pc=pc, detail=f"opcode 0x{opcode:x}")
        return DeviceFault("emulator stop", pc=pc, detail=f"Unicorn's status {status}")

    def misaligned(self, pc: int) -> DeviceFault:
        """The fault of the misaligned access that the counter found at ``pc``."""
        state = self._counter.state
        return DeviceFault(
            "misaligned access",
            pc=pc,
            address=state.access_address,
            size=state.access_size,
            detail=f"a {self._core.name} needs a multiple of {state.access_size} here",
        )

    def illegal(self, pc: int) -> DeviceFault:
        """The fault of an instruction that the emulator executes and the core does not have."""
        detail = f"opcode 0x{self._counter.opcode(pc):x}: {self._core.name} does not have it"
        return DeviceFault("illegal instruction", pc=pc, detail=detail)

    def _access(self, pc: int, sp: int) -> DeviceFault:
        state, platform = self._counter.state, self._platform
        address, kind = state.access_address, _ACCESS_KINDS[state.access_type]
        if kind == "unmapped fetch":
            return DeviceFault(kind, pc=pc, address=address, detail="a jump out of the memory")
        if kind == "write to read-only memory":
            region = platform.region_of(address)
            detail = region.name if region is not None else ""
        elif is_stack_overflow(platform, address, sp):
            kind, detail = "stack overflow", stack_overflow_detail(platform, sp)
        else:
            detail = nearest_region(platform, address)
        return DeviceFault(kind, pc=pc, address=address, size=state.access_size, detail=detail)

    def _exception(self, pc: int) -> DeviceFault:
        number = self._counter.state.interrupt - 1
        if self._is_arm and number == _SVC:
            pc -= 2
        elif not self._is_arm and number in _RISCV_PAST:
            pc -= 4  # even where the instruction has 2 bytes
        table = _ARM_EXCEPTIONS if self._is_arm else _RISCV_EXCEPTIONS
        kind, detail = table.get(number, ("unhandled exception", f"number {number}"))
        if kind == "illegal instruction":
            detail = f"opcode 0x{self._counter.opcode(pc):x}: {detail}"
        return DeviceFault(kind, pc=pc, detail=detail)
