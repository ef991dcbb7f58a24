"""Why a run ended: the emulator's signs turned into a `DeviceFault`."""

from __future__ import annotations

from dataclasses import dataclass

from unicorn import unicorn_const as uc

from covp.errors import DeviceFault, FaultKind
from covp.machine.counter import Counter
from covp.platform_file import Platform

_STACK_GUARD = 0x10000
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
    2: ("unhandled exception", "SVC, and no handler takes it"),
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
    8: ("unhandled exception", "ecall, and no handler takes it"),
    11: ("unhandled exception", "ecall, and no handler takes it"),
}
_SVC = 2
_RISCV_BEHIND = (2, 3, 8, 11)
_EBREAK = (0x00100073, 0x9002)


@dataclass(frozen=True)
class Ending:
    """How a run ended: the pc and sp, and the emulator's status."""

    pc: int
    sp: int
    status: int


def explain(platform: Platform, counter: Counter, ending: Ending) -> DeviceFault:
    """The fault that the counter's hooks and the emulator's status tell of."""
    state = counter.state
    if state.access_type:
        return _access_fault(platform, counter, ending)
    if state.interrupt:
        return _exception_fault(platform, counter, ending)
    if ending.status == uc.UC_ERR_INSN_INVALID:
        opcode = counter.opcode(ending.pc)
        if platform.core.architecture == "riscv" and opcode in _EBREAK:
            return DeviceFault("breakpoint", pc=ending.pc, detail="ebreak")
        return DeviceFault("illegal instruction", pc=ending.pc, detail=f"opcode 0x{opcode:x}")
    return DeviceFault("emulator stop", pc=ending.pc, detail=f"Unicorn's status {ending.status}")


def _access_fault(platform: Platform, counter: Counter, ending: Ending) -> DeviceFault:
    state = counter.state
    address, kind = state.access_address, _ACCESS_KINDS[state.access_type]
    detail = ""
    if kind == "unmapped fetch":
        return DeviceFault(kind, pc=ending.pc, address=address, detail="a jump out of the memory")
    if kind == "write to read-only memory":
        region = platform.region_of(address)
        detail = region.name if region else ""
    elif is_stack_overflow(platform, address, ending.sp):
        kind = "stack overflow"
        detail = (
            f"sp 0x{ending.sp:08x}, the stack is {platform.stack_bytes} bytes from "
            f"0x{platform.ram.start:08x}; a larger one is set by the platform's key stack"
        )
    else:
        detail = nearest_region(platform, address)
    return DeviceFault(kind, pc=ending.pc, address=address, size=state.access_size, detail=detail)


def is_stack_overflow(platform: Platform, address: int, sp: int) -> bool:
    """Whether an access just under the first ram comes from a stack that ran out of it."""
    bottom = platform.ram.start
    below = bottom - _STACK_GUARD <= address < bottom
    return below and bottom - _STACK_GUARD <= sp <= bottom + platform.stack_bytes


def nearest_region(platform: Platform, address: int) -> str:
    """Where an address outside the memory lies, seen from the next region."""
    region = min(platform.memory, key=lambda r: max(r.start - address, address - r.end + 1))
    if address < region.start:
        return f"{region.start - address} bytes below {region.name} at 0x{region.start:08x}"
    return f"{address - region.end} bytes behind the end of {region.name} at 0x{region.end:08x}"


def _exception_fault(platform: Platform, counter: Counter, ending: Ending) -> DeviceFault:
    number = counter.state.interrupt - 1
    is_arm = platform.core.architecture == "arm"
    pc = ending.pc
    if is_arm and number == _SVC:
        pc -= 2
    elif not is_arm and number in _RISCV_BEHIND:
        pc -= 4  # even where the instruction has 2 bytes
    table = _ARM_EXCEPTIONS if is_arm else _RISCV_EXCEPTIONS
    kind, detail = table.get(number, ("unhandled exception", f"number {number}"))
    if kind == "illegal instruction":
        detail = f"opcode 0x{counter.opcode(pc):x}: {detail}"
    return DeviceFault(kind, pc=pc, detail=detail)
