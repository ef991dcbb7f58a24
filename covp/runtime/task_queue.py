"""`TaskQueue`: calls that wait on the host, and how they get to the task runner on the device."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from covp.chip.platform_file import Platform
from covp.device.stop import Stop
from covp.errors import DeviceError, DeviceFault
from covp.runtime.abi import TASK_BYTES
from covp.runtime.allocator import Block
from covp.runtime.call import Call
from covp.runtime.image import DONE, ENTRY, QUEUE, RETURN
from covp.runtime.linking import ImageMemory, LoadedImage
from covp.runtime.sanitizer import Sanitizer
from covp.runtime.transfers import MeteredDevice
from covp.runtime.traps import TRAP_WORDS, fault_of
from covp.runtime.undefined_behaviour import as_finding

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
