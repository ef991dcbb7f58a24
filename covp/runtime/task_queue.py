"""`TaskQueue`: calls that wait on the host, and how they get to the task runner on the device.

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
from covp.device.base import LowLevelDevice, name_fault
from covp.device.stop import Stop
from covp.errors import DeviceError, DeviceFault, FaultKind
from covp.runtime.abi import TASK_BYTES
from covp.runtime.allocator import Block
from covp.runtime.call import Call
from covp.runtime.linking import DONE, ENTRY, QUEUE, RETURN, ImageMemory, LoadedImage
from covp.runtime.sanitizer import Sanitizer
from covp.runtime.transfers import MeteredDevice
from covp.runtime.undefined_behaviour import as_finding

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


MAX_TASKS = 1024
_RESULT = 8  # offset in struct covp_task
_QUEUE = struct.Struct(f"<{5 + TRAP_WORDS}I")  # struct covp_queue
_WORDS = struct.Struct("<II")


class TaskQueue:
    """Runs calls in the order they were added, as many as memory allows at a time.

    Several tasks lie in RAM that is free at that moment, one alone lies in covp_queue itself. The
    largest free piece beside them is the workspace of covp_workspace_alloc: neither takes memory
    while nothing runs.

    Attributes:
        timeout: seconds of host time for one execution; None is the device's default.
        call_return: the address in the task runner that each call returns to.
    """

    def __init__(
        self,
        platform: Platform,
        device: MeteredDevice,
        memory: ImageMemory,
        runtime: LoadedImage,
        timeout: float | None,
        sanitizer: Sanitizer | None = None,
    ) -> None:
        self.timeout = timeout
        self._sanitizer = sanitizer
        self._platform = platform
        self._device = device
        self._ram = memory.ram
        self._address = {n: runtime.elf.symbols[n].address for n in (ENTRY, DONE, QUEUE)}
        self.call_return = runtime.elf.symbols[RETURN].address
        self._waiting: list[Call] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, call: Call) -> None:
        """Let a call wait for `run_all`."""
        self._waiting.append(call)

    def run_all(self) -> list[Stop]:
        """Run what waits; the `Stop` of each execution.

        Raises:
            DeviceFault, CapacityError: all that has not run by then is dropped.
        """
        stops = []
        while self._waiting:
            room = max((gap.size for gap in self._ram.gaps()), default=0)
            count = max(1, min(MAX_TASKS, room // TASK_BYTES))
            batch, self._waiting = self._waiting[:count], self._waiting[count:]
            try:
                stops.append(self.run(batch))
            except BaseException:
                self.drop_all()
                raise
        return stops

    def drop_all(self) -> None:
        """Forget what waits; asking such a call for its result is an error."""
        for call in self._waiting:
            call.drop()
        self._waiting.clear()

    def run(self, batch: Sequence[Call], workspace: Block | None = None) -> Stop:
        """Run these calls now, in one execution, without those that wait.

        Args:
            batch: the calls.
            workspace: the memory for covp_workspace_alloc; by default the largest free piece.

        Raises:
            DeviceFault: one of them faulted; it and those after it are dropped.
            CapacityError: their queue does not fit the RAM.
        """
        block = None
        try:
            if len(batch) > 1:
                size = len(batch) * TASK_BYTES
                block = self._ram.allocate(size, 16, f"the queue of {len(batch)} calls")
            self._store(batch, block, workspace or self.workspace())
            try:
                stop = self._execute()
            except BaseException as error:
                if isinstance(error, DeviceFault):
                    as_finding(error, self._device.device)
                if isinstance(error, DeviceFault) or not isinstance(error, DeviceError):
                    self._collect(batch, block)  # the device can still be read
                raise
            record = self._collect(batch, block)
            fault = fault_of(self._platform, self._device.device, record)
            if fault is not None:
                as_finding(fault, self._device.device)
                self._device.reset()  # out of the exception handler
                raise fault
            if self._sanitizer is not None:
                self._sanitizer.check_outputs()
            return stop
        except BaseException:
            for call in batch:
                call.drop()
            raise
        finally:
            if block is not None:
                self._ram.free(block)

    def _execute(self) -> Stop:
        try:
            return self._device.execute(self._address[ENTRY], self._address[DONE], self.timeout)
        finally:
            if self._sanitizer is not None:
                self._sanitizer.end()

    def _store(self, batch: Sequence[Call], block: Block | None, workspace: Block) -> None:
        queue, tasks = self._address[QUEUE], b"".join([call.task for call in batch])
        place = queue + _QUEUE.size if block is None else block.address
        header = _QUEUE.pack(
            place, len(batch), 0, workspace.address, workspace.size, *[0] * TRAP_WORDS
        )
        if block is None:
            self._device.write(queue, header + tasks)
        else:
            self._device.write(block.address, tasks)
            self._device.write(queue, header)
        if self._sanitizer is not None:
            self._sanitizer.begin(batch, workspace)

    def workspace(self) -> Block:
        """Return the largest piece of free RAM."""
        gaps = self._ram.gaps()
        return max(gaps, key=lambda gap: gap.size) if gaps else Block(self._address[QUEUE], 0)

    def _collect(self, batch: Sequence[Call], block: Block | None) -> tuple[int, ...]:
        """Give the calls that ran their results; returns the words of covp_queue.trap."""
        single = TASK_BYTES * len(batch) if block is None else 0
        record = self._device.read(self._address[QUEUE], _QUEUE.size + single)
        tasks = record[_QUEUE.size :]
        if block is not None:
            tasks = self._device.read(block.address, len(batch) * TASK_BYTES)
        header = _QUEUE.unpack_from(record)
        for position, call in enumerate(batch[: header[2]]):
            call.finish(*_WORDS.unpack_from(tasks, position * TASK_BYTES + _RESULT))
        return header[5:]
