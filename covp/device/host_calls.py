"""`HostCalls`: lets a `Semihosting` answer the calls of a core's program."""

from __future__ import annotations

from collections.abc import Callable

from covp.chip.isa import ARCHITECTURES
from covp.device.machine.emulated_core import EmulatedCore
from covp.device.semihosting import Semihosting
from covp.device.semihosting.abi import call_bytes
from covp.errors import DeviceError, DeviceFault, ProgramExit


class HostCalls:
    """The `Execution.host_call` of a core.

    Args:
        core: its registers hold operation and parameter, and get the result.
        read: memory at an address: bytes of a size.
        host: executes the calls.
    """

    def __init__(
        self, core: EmulatedCore, read: Callable[[int, int], bytes], host: Semihosting
    ) -> None:
        self._core, self._read, self._host = core, read, host
        self._architecture = core.core.architecture
        self._names = ARCHITECTURES[self._architecture].arguments[:2]

    def __call__(self, pc: int) -> int | None:
        """Execute the call at ``pc``; where to go on, or None: it is not a call.

        Raises:
            ProgramExit: the program has ended.
            DeviceFault: one of its pointers is wrong.
        """
        try:
            size = call_bytes(self._architecture, pc, self._read)
        except DeviceError:  # at the edge of the memory
            size = 0
        if not size:
            return None
        operation, parameter = (self._core.read_register(name) for name in self._names)
        try:
            result = self._host.call(operation, parameter)
        except (ProgramExit, DeviceFault) as end:
            end.pc = pc
            raise
        if result is None:
            return pc
        self._core.write_register(self._names[0], result)
        return pc + size
