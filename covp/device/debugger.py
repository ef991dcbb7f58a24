"""`DebuggerDevice`: read, write, execute and reset through a debugger, whatever its protocol.

A real core's cycles are counted by its own counter (`CycleCounter`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from covp.base.closing import Owned
from covp.chip.cores import Core
from covp.chip.memory_errors import outside_memory
from covp.chip.platform_file import Platform, Region
from covp.device.abilities import Abilities
from covp.device.code_names import CodeNames
from covp.device.stop import Source, Sources, Stop
from covp.errors import DeviceError, DeviceFault, FaultKind

# Arm DDI0403E (ARMv7-M) C1.6.5 and C1.8: the counter stops while the core is halted.
_DEMCR, _TRCENA = 0xE000EDFC, 1 << 24
_DWT_CTRL, _CYCCNTENA = 0xE0001000, 1
_DWT_CYCCNT = 0xE0001004
_WORD = 1 << 32


class Debugger(Protocol):
    """The part of a debugger that reading the counter needs."""

    def read_memory(self, address: int, size: int) -> bytes:
        """Return the bytes of memory or of registers on the bus."""
        ...

    def write_memory(self, address: int, data: bytes) -> None:
        """Store them."""
        ...

    def read_register(self, name: str) -> int:
        """Return the value of any register by name."""
        ...


class CycleCounter:
    """DWT_CYCCNT (Armv7-M and later) or mcycle (RISC-V).

    Without one (Cortex-M0+, an emulator that has none) the result is None.
    DWT_CYCCNT has 32 bits: a run longer than 2^32 cycles is counted modulo that.
    """

    def __init__(self, core: Core, device: Debugger) -> None:
        self._arm = core.architecture == "arm"
        self._device = device
        self._usable: bool | None = None if core.isa.counts_cycles else False
        self._before = 0

    @property
    def source(self) -> Source | None:
        """The counter; None where the core has none."""
        if self._usable is False:
            return None
        return Source("measured", "DWT_CYCCNT" if self._arm else "mcycle")

    def forget(self) -> None:
        """Forget that the counter is on, as the core was reset."""
        if self._usable:
            self._usable = None

    def disable(self) -> None:
        """Ignore the counter: it does not count cycles here (QEMU counts host time)."""
        self._usable = False

    def start(self) -> None:
        """Note where the counter stands; switches it on the first time."""
        if self._usable is None:
            self._usable = self._enable()
        if self._usable:
            self._before = self._now()

    def stop(self) -> int | None:
        """Return the cycles since `start`; None where the core cannot tell."""
        if not self._usable:
            return None
        return (self._now() - self._before) % (_WORD if self._arm else _WORD * _WORD)

    def _enable(self) -> bool:
        try:
            if not self._arm:
                self._now()
                return True
            self._write(_DEMCR, self._read(_DEMCR) | _TRCENA)
            self._write(_DWT_CTRL, self._read(_DWT_CTRL) | _CYCCNTENA)
            return bool(self._read(_DWT_CTRL) & _CYCCNTENA)
        except DeviceError:
            return False

    def _now(self) -> int:
        if self._arm:
            return self._read(_DWT_CYCCNT)
        return self._device.read_register("mcycle") | self._device.read_register("mcycleh") << 32

    def _read(self, address: int) -> int:
        return int.from_bytes(self._device.read_memory(address, 4), "little")

    def _write(self, address: int, value: int) -> None:
        self._device.write_memory(address, value.to_bytes(4, "little"))


DEFAULT_TIMEOUT = 300.0
_XPSR_THUMB = 0x01000000


class DebuggerDevice(Owned):
    """A core that a debugger halts, changes and lets run.

    A protocol implements the abstract methods; what they raise on a broken connection is a
    DeviceError that names `transport` and the step. All of them are called while the core is
    halted, except `_wait_halted` and `_halt`.

    Args:
        platform: its memory map bounds what may be read and written.
        transport: for messages, e.g. "gdb:localhost:1234".
        timeout: default time limit of `execute`, in seconds.
        verify: read back what is written and compare.
    """

    def __init__(
        self,
        platform: Platform,
        transport: str,
        timeout: float = DEFAULT_TIMEOUT,
        verify: bool = True,
    ) -> None:
        self.platform = platform
        self.transport = transport
        self.timeout = timeout
        self.verify = verify
        self.names = CodeNames(platform.core.architecture, self.read, self.registers)
        self._cycles = CycleCounter(platform.core, self)

    # -- what a protocol does -----------------------------------------------------------------

    @abstractmethod
    def read_memory(self, address: int, size: int) -> bytes:
        """Read ``size`` bytes, of any size and alignment."""

    @abstractmethod
    def write_memory(self, address: int, data: bytes) -> None:
        """Store bytes in RAM or in registers on the bus."""

    @abstractmethod
    def _read_registers(self) -> dict[str, int]:
        """Return r0..r12, sp, lr, pc, xpsr; or ra, sp, ... t6, pc."""

    @abstractmethod
    def read_register(self, name: str) -> int:
        """Return any register that the debugger knows by name, e.g. mcycle. Raises DeviceError."""

    @abstractmethod
    def write_register(self, name: str, value: int) -> None:
        """Change a register. Raises DeviceError."""

    @abstractmethod
    def _set_breakpoint(self, address: int) -> None:
        """Halt before the instruction at ``address``, in flash too."""

    @abstractmethod
    def _clear_breakpoint(self, address: int) -> None:
        """Take a breakpoint away."""

    @abstractmethod
    def _resume(self) -> None:
        """Let the core run from its pc."""

    @abstractmethod
    def _wait_halted(self, seconds: float) -> bool:
        """Wait; True if the core halted within the time."""

    @abstractmethod
    def _halt(self) -> None:
        """Stop the core wherever it is and wait until it stands. Raises DeviceError otherwise."""

    @abstractmethod
    def _reset_halt(self) -> None:
        """Reset the core and its surroundings; the core is halted afterwards."""

    def _write_flash(self, region: Region, address: int, data: bytes) -> None:
        """Store bytes in a region of kind flash; plain writes unless a protocol knows better."""
        self.write_memory(address, data)

    # -- LowLevelDevice -----------------------------------------------------------------------

    @property
    def abilities(self) -> Abilities:
        """The abilities: measuring cycles where the core has a counter, and naming code."""
        return Abilities(names=self.names, time=self, closing=self)

    @property
    def sources(self) -> Sources:
        """Cycles by the core's own counter."""
        return Sources(cycles=self._cycles.source)

    @property
    def label(self) -> str:
        """The transport, for messages."""
        return self.transport

    def read(self, address: int, size: int) -> bytes:
        """Return ``size`` bytes from ``address``. Raises DeviceError outside the memory."""
        self._region(address, size)
        return self.read_memory(address, size) if size else b""

    def write(self, address: int, data: bytes) -> None:
        """Store bytes, in flash too; read back and compared if ``verify``.

        Raises:
            DeviceError: outside the memory, or the memory holds something else afterwards.
        """
        region = self._region(address, len(data))
        if not data:
            return
        if region.kind == "flash":
            self._write_flash(region, address, bytes(data))
        else:
            self.write_memory(address, bytes(data))
        if self.verify:
            self._check_written(address, bytes(data))

    def execute(self, entry: int, stop: int, timeout: float | None = None) -> Stop:
        """Run from ``entry`` until the pc reaches ``stop``; bit 0 of both is ignored.

        Cycles are measured by the core's own counter where it has one (DWT_CYCCNT, mcycle).

        Raises:
            DeviceFault: the time was over (kind "timeout"; the core is halted), or the core halted
                somewhere else.
        """
        entry, stop = entry & ~1, stop & ~1
        seconds = self.timeout if timeout is None else timeout
        self.write_register("pc", entry)
        if self.platform.core.architecture == "arm":
            self.write_register("xpsr", _XPSR_THUMB)
        with self._breakpoint(stop):
            self._cycles.start()
            self._resume()
            if not self._wait_halted(seconds):
                self._halt()
                raise self._fault("timeout", f"{seconds:g} seconds")
            cycles = self._cycles.stop()
        pc = self.read_register("pc") & ~1
        if pc != stop:
            raise self._fault("unexpected halt", f"the core was to halt at 0x{stop:08x}")
        return Stop(stop, None, cycles, sources=self.sources if cycles is not None else Sources())

    def reset(self) -> None:
        """Reset the core and its surroundings and leave it halted; memory is kept."""
        self._reset_halt()
        self._cycles.forget()

    def registers(self) -> dict[str, int]:
        """Return all general registers and the pc."""
        return self._read_registers()

    # -----------------------------------------------------------------------------------------

    def _region(self, address: int, size: int) -> Region:
        region = self.platform.region_of(address, size)
        if region is None:
            raise outside_memory(address, size)
        return region

    def _check_written(self, address: int, data: bytes) -> None:
        found = self.read_memory(address, len(data))
        if found != data:
            first = next(i for i, (a, b) in enumerate(zip(found, data, strict=False)) if a != b)
            raise DeviceError(
                f"{self.transport}: verify failed after a write: address 0x{address + first:08x} "
                f"holds 0x{found[first]:02x}, not 0x{data[first]:02x}; is this the memory map of "
                f"{self.platform.name}?"
            )

    @contextmanager
    def _breakpoint(self, address: int) -> Iterator[None]:
        self._set_breakpoint(address)
        try:
            yield
        except DeviceFault:
            self._clear_breakpoint(address)
            raise
        except DeviceError:  # the connection: nothing can be cleared any more
            raise
        except BaseException:  # Ctrl-C while it runs: leave a core that can be used again
            with suppress(DeviceError):
                self._halt()
                self._clear_breakpoint(address)
            raise
        else:
            self._clear_breakpoint(address)

    def _fault(self, kind: FaultKind, detail: str) -> DeviceFault:
        registers = self._read_registers()
        pc = registers["pc"] & ~1
        detail = f"{detail} ({self.transport})"
        return self.names.explain(DeviceFault(kind, pc=pc, detail=detail, registers=registers))
