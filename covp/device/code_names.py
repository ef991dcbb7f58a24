"""`CodeNames`: names of functions and source lines of the code on a device."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TypeVar

from covp.chip.isa import ARCHITECTURES
from covp.compilers import unwind
from covp.compilers.symbols import Symbols
from covp.errors import DeviceError, DeviceFault

_Method = TypeVar("_Method", bound=Callable[..., object])


class CodeNames:
    """Names of a device's code, from the debug information of the ELF files on it.

    Args:
        architecture: of the core, "arm", "riscv" or "x86".
        read: a method of the device: returns bytes of its memory from address and size.
        registers: another one: reads the halted core's registers, for faults that say few of
            them; None: the device has no way to.

    Attributes:
        symbols: the ELF files' content.
    """

    def __init__(
        self,
        architecture: str,
        read: unwind.Read,
        registers: Callable[[], Mapping[str, int]] | None = None,
    ) -> None:
        self.symbols = Symbols()
        self._architecture = architecture
        # weak: the device has these names, and ends its process when nothing holds it
        self._read = weakref.WeakMethod(read)
        self._registers = None if registers is None else weakref.WeakMethod(registers)

    def call_stack(self, pc: int, registers: Mapping[str, int]) -> tuple[str, ...]:
        """Return the functions active at ``pc``, by `covp.compilers.unwind`.

        Args:
            pc: address of an instruction.
            registers: their values there by name, as many as are known.
        """
        kept = {*ARCHITECTURES[self._architecture].kept} - {"sp"}
        if self._registers is not None and not kept & registers.keys():
            # they are still as the handler of the fault left them; else by those that are known
            with suppress(DeviceError):
                registers = {**self._method(self._registers)(), **registers}
        read = self._method(self._read)
        return unwind.call_stack(self.symbols, self._architecture, pc, registers, read)

    @staticmethod
    def _method(of_device: weakref.WeakMethod[_Method]) -> _Method:
        method = of_device()
        assert method is not None  # called by the device
        return method

    def explain(self, fault: DeviceFault) -> DeviceFault:
        """Add symbol, source line and active functions of its pc to a fault, and return it."""
        if fault.pc is not None:
            fault.symbol, fault.source = self.symbols.locate(fault.pc)
            fault.call_stack = self.call_stack(fault.pc, fault.registers)
        return fault
