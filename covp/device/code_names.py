"""`CodeNames`: names of functions and source lines of the code on a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from covp.chip.isa import ARCHITECTURES
from covp.compilers import unwind
from covp.compilers.symbols import Symbols
from covp.errors import DeviceError, DeviceFault


class CodeNames:
    """Names of a device's code, from the debug information of the ELF files on it.

    Args:
        architecture: of the core, "arm", "riscv" or "x86".
        read: returns bytes of the device's memory from address and size.
        registers: reads the halted core's registers, for faults that say few of them; None: the
            device has no way to.

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
        self._architecture, self._read, self._registers = architecture, read, registers

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
                registers = {**self._registers(), **registers}
        return unwind.call_stack(self.symbols, self._architecture, pc, registers, self._read)

    def explain(self, fault: DeviceFault) -> DeviceFault:
        """Add symbol, source line and active functions of its pc to a fault, and return it."""
        if fault.pc is not None:
            fault.symbol, fault.source = self.symbols.locate(fault.pc)
            fault.call_stack = self.call_stack(fault.pc, fault.registers)
        return fault
