"""`HostDevice`: this machine as a device; programs run in a child process, in memory of their own.

Code is compiled for x86-64 with 32-bit pointers, so that its data is laid out as on a 32-bit core.
Its results are those of the other devices; its cost is measured in seconds. There are
no instruction counts, peripherals or accelerators.

It is not a sandbox: the program is a process of the user's and may do all that the user may, such
as writing files and starting programs. Its process group is killed when the device is closed.

Clang's undefined-behaviour sanitizer compiles traps in: UD1 with a number as displacement, the
position of the failed check in LIST_SANITIZER_CHECKS (clang/lib/CodeGen/SanitizerHandler.h).
"""

from __future__ import annotations

import mmap
import os
import signal
from contextlib import suppress

from covp.base.closing import Owned
from covp.chip.memory_errors import (
    is_stack_overflow,
    nearest_region,
    outside_memory,
    stack_overflow_detail,
)
from covp.chip.platform_file import Platform
from covp.device.abilities import Abilities
from covp.device.code_names import CodeNames
from covp.device.debugger import DEFAULT_TIMEOUT
from covp.device.host_process import HostProcess, Report, host_runner
from covp.device.stop import Source, Sources, Stop
from covp.errors import DeviceError, DeviceFault, FaultKind, PlatformError

TRAP_BYTES = 5
"""The longest trap, in bytes."""

_UD1 = b"\x0f\xb9"
_ADDRESS_SIZE = b"\x67"  # prefix of addresses with 32 bits
_CHECKS = {
    0: "addition overflows",
    1: "code that cannot be reached",
    3: "division by zero, or a quotient that does not fit",
    5: "a float that does not fit the integer type",
    6: "call through a pointer to another type of function",
    8: "a builtin function's argument is out of range",
    10: "a value that its type does not have",
    11: "no return value",
    12: "multiplication overflows",
    13: "negation overflows",
    18: "index outside the array",
    19: "pointer arithmetic overflows",
    20: "shift by a count out of range, or of a value that does not fit",
    21: "subtraction overflows",
    22: "misaligned address, or a null pointer",
    23: "an assumed alignment does not hold",
    24: "length of an array is not positive",
}


def undefined_behaviour(code: bytes) -> str | None:
    """Return the failed check of a trap; None where the instruction is no such trap.

    Args:
        code: `TRAP_BYTES` of the program from the faulting instruction on.
    """
    code = code.removeprefix(_ADDRESS_SIZE)
    if not code.startswith(_UD1) or len(code) < 4:
        return None
    # ModRM: [eax], where the number is 0, or [eax + one byte]
    number = {0x00: 0, 0x40: code[3]}.get(code[2])
    if number is None:
        return None
    return f"undefined behaviour: {_CHECKS.get(number, f'check {number} of the sanitizer')}"


_BREAKPOINT = b"\xcc"  # int3
_SI_KERNEL = 0x80  # Linux, asm-generic/siginfo.h: no page fault, but a general protection fault
# Page fault error code, Intel SDM volume 3A, 4.7.
_WRITE, _FETCH = 1 << 1, 1 << 4
_SOURCES = Sources(seconds=Source("measured", "processor time of the process"))
_KINDS: dict[int, tuple[FaultKind, str]] = {
    signal.SIGILL: ("illegal instruction", ""),
    signal.SIGFPE: ("division by zero", "or a quotient that does not fit"),
    signal.SIGTRAP: ("breakpoint", ""),
    signal.SIGBUS: ("bus error", ""),
}


class HostDevice(Owned):
    """The platform's memory at its addresses in a child process, run by this machine's processor.

    The memory is shared with the child and outlives it. A program that faults or takes too long
    costs the child; the next `execute` starts another. ``flash`` is read-only to the program.

    Args:
        platform: its core must be of the architecture "x86".
        timeout: default time limit of `execute`, in seconds.

    Raises:
        PlatformError: another core, or memory that is not in whole pages.
        DeviceError: this machine is not Linux on x86-64.
    """

    def __init__(self, platform: Platform, timeout: float = DEFAULT_TIMEOUT) -> None:
        if platform.core.architecture != "x86":
            raise PlatformError(
                f"device host: cannot run code for {platform.core.name}, the core of "
                f"{platform.name}; take the platform host"
            )
        host_runner()
        self.platform = platform
        self.timeout = timeout
        self.names = CodeNames(platform.core.architecture, self.read)
        self._process: HostProcess | None = None
        self._pieces: list[tuple[int, int, int, bool]] = []
        size = 0
        for region in platform.memory:
            if region.start % mmap.PAGESIZE or region.bytes % mmap.PAGESIZE:
                raise PlatformError(
                    f"memory {region.name}: device host needs start and size in multiples of "
                    f"{mmap.PAGESIZE}, not 0x{region.start:x} and {region.bytes}"
                )
            self._pieces.append((region.start, size, region.bytes, region.kind == "ram"))
            size += region.bytes
        self._file = os.memfd_create(f"covp-{platform.name}")
        os.truncate(self._file, size)
        self._memory: mmap.mmap | None = mmap.mmap(self._file, size)

    def __del__(self) -> None:
        if getattr(self, "_memory", None) is not None:
            self.close()

    @property
    def label(self) -> str:
        """The device's name, for messages."""
        return "device host"

    def close(self) -> None:
        """End the child and free the memory. A second call does nothing."""
        self._end_process()
        if self._memory is not None:
            self._memory.close()
            self._memory = None
            os.close(self._file)

    # -- LowLevelDevice -----------------------------------------------------------------------

    @property
    def abilities(self) -> Abilities:
        """The abilities: measuring time, and naming code."""
        return Abilities(names=self.names, time=self, closing=self)

    @property
    def sources(self) -> Sources:
        """Seconds by the process' own clock."""
        return _SOURCES

    def read(self, address: int, size: int) -> bytes:
        """Return ``size`` bytes from ``address``. Raises DeviceError outside the memory."""
        memory, offset = self._place(address, size)
        return memory[offset : offset + size]

    def write(self, address: int, data: bytes) -> None:
        """Store bytes, in flash too. Raises DeviceError outside the memory."""
        memory, offset = self._place(address, len(data))
        memory[offset : offset + len(data)] = bytes(data)

    def execute(self, entry: int, stop: int, timeout: float | None = None) -> Stop:
        """Run from ``entry`` until the pc reaches ``stop``.

        All registers start at 0 but rsp, which is at the top of the stack. The seconds are the
        processor time of the program, measured; two to three microseconds of them are the stop.

        Raises:
            DeviceFault: a signal ended the program, or the time was over.
            DeviceError: the child was killed, or cannot be started.
        """
        seconds = self.timeout if timeout is None else timeout
        top = self.platform.ram.start + self.platform.stack_bytes
        under = self.read(stop, 1)
        self.write(stop, _BREAKPOINT)
        try:
            report = self._ready_process().run(entry, stop, top, seconds)
        except BaseException:
            self._end_process()
            raise
        finally:
            self.write(stop, under)
        if report is None or report.signal:
            self._end_process()
            raise self._fault(report, seconds)
        return Stop(stop, seconds=report.nanoseconds / 1e9, sources=_SOURCES)

    def reset(self) -> None:
        """Do nothing: only memory is left of a run, and it is kept."""
        self._check_open()

    # -----------------------------------------------------------------------------------------

    def _check_open(self) -> mmap.mmap:
        if self._memory is None:
            raise DeviceError("the device is closed")
        return self._memory

    def _place(self, address: int, size: int) -> tuple[mmap.mmap, int]:
        memory = self._check_open()
        for start, offset, length, _ in self._pieces:
            if start <= address and address + size <= start + length:
                return memory, offset + address - start
        raise outside_memory(address, size)

    def _ready_process(self) -> HostProcess:
        if self._process is None or not self._process.usable:
            self._end_process()
            self._process = HostProcess(self._file, self._pieces)
        return self._process

    def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.end()

    def _fault(self, report: Report | None, seconds: float) -> DeviceFault:
        if report is None:
            return DeviceFault("timeout", detail=f"{seconds:g} seconds; it had to be killed")
        pc, number = report.registers["rip"], signal.Signals(report.signal)
        address: int | None = None
        kind: FaultKind
        if number == signal.SIGALRM:
            kind, detail = "timeout", f"{seconds:g} seconds"
        elif number == signal.SIGSEGV:
            kind, address, detail = self._access(report)
            detail = f"{number.name}: {detail}"
        else:
            kind, more = _KINDS.get(number, ("unhandled signal", ""))
            more = self._undefined_behaviour(pc) or more
            detail = f"{number.name}{more and f': {more}'}"
        fault = DeviceFault(kind, pc=pc, address=address, detail=detail, registers=report.registers)
        with suppress(OSError):  # an ELF file that is gone
            self.names.explain(fault)
        return fault

    def _undefined_behaviour(self, pc: int) -> str | None:
        """Return the reason, where a sanitizer's trap is at ``pc``."""
        try:
            return undefined_behaviour(self.read(pc, TRAP_BYTES))
        except DeviceError:  # outside the memory, or near its end
            return None

    def _access(self, report: Report) -> tuple[FaultKind, int | None, str]:
        """Return kind, address and detail of a segmentation fault."""
        if report.code == _SI_KERNEL:
            detail = "a privileged instruction, or an SSE operand that is not aligned"
            return "general protection", None, detail
        address, sp = report.address, report.registers["rsp"]
        region = self.platform.region_of(address)
        if report.error & _FETCH:
            return "unmapped fetch", address, "a jump out of the memory"
        if region is not None:
            return "write to read-only memory", address, region.name
        if is_stack_overflow(self.platform, address, sp):
            return "stack overflow", address, stack_overflow_detail(self.platform, sp)
        kind: FaultKind = "unmapped write" if report.error & _WRITE else "unmapped read"
        return kind, address, nearest_region(self.platform, address)
