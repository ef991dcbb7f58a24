"""`measure_intervals`: what a program takes from one place to another, on a virtual device."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from covp.device.debug.program_file import ProgramFile, load_elf, start_firmware
from covp.device.phase_count import CORE
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceFault, ProgramExit, UsageError, near_misses
from covp.hardware.observer import Observer, RegisterAccess

_HALT_SECONDS = 0.05
"""Between requests to halt, until the core has."""


@dataclass(frozen=True)
class Interval:
    """What lies between two places of a program.

    Attributes:
        instructions: retired, exact.
        cycles: an estimate, waiting included.
    """

    instructions: int
    cycles: int


def measure_intervals(
    device: VirtualDevice, elf: Path, marks: tuple[str, str], times: int = 1, timeout: float = 300.0
) -> list[Interval]:
    """Run a firmware from reset and measure from the first mark to the second one.

    A mark is reached before its instruction, or with a store to its register. A first mark that
    comes again before the second one begins anew. The run ends with the last interval.

    Args:
        device: its peripherals take part.
        elf: a linked program for its platform.
        marks: each a symbol of the program, the address of an instruction, or that of a
            peripheral's register, as 0x40001000.
        times: intervals to measure.
        timeout: seconds of host time.

    Raises:
        UsageError: there is no such mark, or the program ended before.
        UsageError, DeviceError: the file cannot be loaded, see `load_elf`.
        DeviceFault: the program faulted, or the time was over.
    """
    program = load_elf(device, elf)
    addresses = [_address(mark, program) for mark in marks]
    listener = _Listener(device, addresses, times)
    device.core.write_register("pc", start_firmware(device, program))
    device.set_breakpoints([one for one in addresses if not listener.is_register(one)])
    try:
        with device.board.bus.observe(listener), _halt_after(timeout, device) as is_late:
            while len(listener.found) < times:
                if device.run():
                    listener.reach(device.core.read_register("pc") & ~1)
                elif is_late():
                    pc = device.core.read_register("pc")
                    raise DeviceFault("timeout", pc=pc, detail=f"{timeout:g} seconds of host time")
    except ProgramExit as end:
        count = len(listener.found)
        raise UsageError(
            f"{elf}: the program ended with status {end.status} after {count} of {times} intervals "
            f"from {marks[0]} to {marks[1]}"
        ) from None
    finally:
        device.set_breakpoints([])
    return listener.found


def _address(mark: str, program: ProgramFile) -> int:
    """Return the address of a mark without Thumb's bit. Raises UsageError: no such symbol."""
    symbol = program.symbols.get(mark)
    if symbol is not None:
        return symbol.address & ~1
    try:
        return int(mark, 0) & ~1
    except ValueError:
        hint = near_misses(mark, program.symbols)
        raise UsageError(f"the program has no symbol {mark!r}:", hint=hint) from None


class _Listener(Observer):
    """The marks that were reached, by breakpoints and by stores to registers."""

    def __init__(self, device: VirtualDevice, addresses: list[int], times: int) -> None:
        self.found: list[Interval] = []
        self._device, self._times = device, times
        self._first, self._second = addresses
        self._begin: Interval | None = None
        self._bases = {model: base for base, model in device.peripherals.values()}

    def is_register(self, address: int) -> bool:
        """Return whether an address is that of a peripheral."""
        return any(base <= address < base + model.size for model, base in self._bases.items())

    def accessed(self, access: RegisterAccess) -> None:
        """Take a store to a register as a mark."""
        if access.is_store and access.master == CORE:
            self.reach(self._bases[access.peripheral] + access.offset)

    def reach(self, address: int) -> None:
        """Note that the core is at an address, or stores to it."""
        now = Interval(self._device.instructions, self._device.clock.now)
        begin = self._begin
        if address == self._second and begin is not None and len(self.found) < self._times:
            spent = now.instructions - begin.instructions, now.cycles - begin.cycles
            self.found.append(Interval(*spent))
            self._begin = None
            if len(self.found) == self._times:
                self._device.request_halt()
        if address == self._first:
            self._begin = now


@contextmanager
def _halt_after(seconds: float, device: VirtualDevice) -> Iterator[Callable[[], bool]]:
    """Halt the core after a time; the returned function says whether it was over."""
    over, ended = threading.Event(), threading.Event()

    def watch() -> None:
        if not ended.wait(seconds):
            over.set()
            while not ended.wait(_HALT_SECONDS):
                device.request_halt()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield over.is_set
    finally:
        ended.set()
        thread.join()
