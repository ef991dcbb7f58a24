"""The record that the runtime on the target leaves of an exception, as a `DeviceFault`.

The virtual device finds faults itself; on all others the runtime's exception handlers
(device_runtime/enter_*.S) end the run and leave a record in ``covp_queue.trap``.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import suppress

from covp.chip.isa.arm import EXCEPTION_FRAME, exception_frame_bytes
from covp.chip.isa.riscv import CAUSES
from covp.chip.memory_errors import is_stack_overflow
from covp.chip.platform_file import Platform
from covp.device.base import LowLevelDevice
from covp.device.fault_names import name_fault
from covp.errors import DeviceError, DeviceFault, FaultKind

TRAP_WORDS = 6

# CFSR, Arm DDI0403E (ARMv7-M) B3.2.15: bit, kind, detail, the register with the address.
_MMFAR, _BFAR = 4, 5
_CFSR: tuple[tuple[int, FaultKind, str, int | None], ...] = (
    (0, "unmapped fetch", "MemManage: instruction access", None),
    (1, "unmapped access", "MemManage: data access", _MMFAR),
    (4, "stack overflow", "MemManage while an exception was entered", None),
    (8, "unmapped fetch", "BusFault: instruction bus error", None),
    (9, "unmapped access", "BusFault: precise data bus error", _BFAR),
    (10, "unmapped access", "BusFault: imprecise, the pc is past the store", None),
    (12, "stack overflow", "BusFault while an exception was entered", None),
    (16, "illegal instruction", "UsageFault: undefined instruction", None),
    (17, "illegal instruction", "UsageFault: a jump to an even address", None),
    (18, "illegal instruction", "UsageFault: wrong exception return", None),
    (19, "illegal instruction", "UsageFault: no such coprocessor, or it is off", None),
    (24, "misaligned access", "UsageFault", None),
    (25, "division by zero", "UsageFault", None),
)
_STACK_ERRORS = (4, 12)
_ADDRESS_VALID = {_MMFAR: 7, _BFAR: 15}
_ARM_EXCEPTIONS = {2: "NMI", 3: "HardFault", 11: "SVC", 12: "DebugMonitor", 14: "PendSV"}


def fault_of(
    platform: Platform, device: LowLevelDevice, record: Sequence[int]
) -> DeviceFault | None:
    """Return the fault that a record describes; None where the run ended well.

    Args:
        device: halted; the stacked frame is read from it.
        record: `TRAP_WORDS` words of ``covp_queue.trap``.
    """
    if not record[0]:
        return None
    fault = (_riscv if platform.core.architecture == "riscv" else _arm)(platform, device, record)
    return name_fault(fault, device)


def _arm(platform: Platform, device: LowLevelDevice, record: Sequence[int]) -> DeviceFault:
    number, how = record[0] & 0x1FF, record[0] >> 16
    frame, status = record[1:3]
    registers = {"sp": frame}
    with suppress(DeviceError):  # a stack that ran out has no frame
        stacked = struct.unpack("<8I", device.read(frame, 32))
        registers |= dict(zip(EXCEPTION_FRAME, stacked, strict=True))
        registers["sp"] = frame + exception_frame_bytes(how, registers["xpsr"])
    pc = registers.get("pc")
    raised = [row for row in _CFSR if status >> row[0] & 1]
    overflow = [row for row in raised if row[0] in _STACK_ERRORS]
    if not raised:
        name = _ARM_EXCEPTIONS.get(number, f"exception {number}")
        kind: FaultKind = "hard fault" if name == "HardFault" else "unhandled exception"
        return DeviceFault(kind, pc=pc, detail=name, registers=registers)
    _, kind, detail, place = (overflow or raised)[0]
    address: int | None = None
    if place is not None and status >> _ADDRESS_VALID[place] & 1:
        address = record[place]
    if kind == "stack overflow":
        detail += f"; the stack is {platform.stack_bytes} bytes"
    return DeviceFault(kind, pc=pc, address=address, detail=detail, registers=registers)


def _riscv(platform: Platform, device: LowLevelDevice, record: Sequence[int]) -> DeviceFault:
    _, cause, pc, value, sp, ra = record
    registers = {"pc": pc, "sp": sp, "ra": ra, "mcause": cause, "mtval": value}
    kind, _ = CAUSES.get(cause, ("unhandled exception", ""))
    if cause in (2, 3) or kind == "unhandled exception":
        return DeviceFault(kind, pc=pc, detail=f"mcause {cause}", registers=registers)
    if kind == "unmapped write" and is_stack_overflow(platform, value, sp):
        kind = "stack overflow"
    return DeviceFault(kind, pc=pc, address=value, detail=f"mcause {cause}", registers=registers)
