"""`RiscvInterrupts`: the interrupt controller of a RISC-V core: the machine external interrupt."""

from __future__ import annotations

from collections.abc import Callable

from unicorn.unicorn_py3.unicorn import Uc

from covp.device.machine.engine import register_id

# RISC-V privileged ISA 20211203, sections 3.1.6, 3.1.9 and 3.1.15.
_MIE, _MPIE, _MPP = 1 << 3, 1 << 7, 3 << 11
_MEI = 1 << 11
_MACHINE_EXTERNAL = 11


class RiscvInterrupts:
    """The machine external interrupt: all lines together."""

    def __init__(self, engine: Uc) -> None:
        self._engine = engine
        self._high: set[int] = set()
        self._pulsed: set[int] = set()
        self.on_entry: Callable[[int, int], None] | None = None
        self.on_return: Callable[[], None] | None = None

    @property
    def mip(self) -> int:
        """The pending bits, as a read of the CSR gives them."""
        return _MEI if self._high or self._pulsed else 0

    def set_line(self, number: int, level: bool) -> None:
        """Set the level of an interrupt line."""
        (self._high.add if level else self._high.discard)(number)

    def pulse(self, number: int) -> None:
        """Make an interrupt pending once."""
        self._pulsed.add(number)

    def wakes(self) -> bool:
        """Return whether WFI ends: an enabled interrupt is pending, whatever mstatus.MIE says."""
        return bool(self.mip & self._read("MIE"))

    def preempts(self) -> bool:
        """Return whether mstatus.MIE lets an enabled interrupt in."""
        if not (self._high or self._pulsed):
            return False
        return self.wakes() and bool(self._read("MSTATUS") & _MIE)

    def take(self, pc: int) -> int:
        """Trap entry."""
        if not self.preempts():
            return pc
        line = min(self._pulsed or self._high)
        self._pulsed.discard(line)
        if self.on_entry is not None:
            self.on_entry(line, pc)
        status = self._read("MSTATUS")
        self._write("MEPC", pc)
        self._write("MCAUSE", 1 << 31 | _MACHINE_EXTERNAL)
        self._write("MSTATUS", status & ~_MIE | _MPIE | _MPP)
        vector = self._read("MTVEC")
        return (vector & ~3) + (4 * _MACHINE_EXTERNAL if vector & 1 else 0)

    def reset(self) -> None:
        """Reset: all lines are down, nothing is enabled."""
        self._high.clear()
        self._pulsed.clear()
        self._write("MIE", 0)
        self._write("MSTATUS", self._read("MSTATUS") & ~_MIE)

    def save_state(self) -> object:
        """Return the lines that are up, and the requests; the rest is in the core's registers."""
        return frozenset(self._high), frozenset(self._pulsed)

    def load_state(self, state: object) -> None:
        """Go back to a saved state."""
        assert isinstance(state, tuple)
        self._high, self._pulsed = map(set, state)

    def _read(self, name: str) -> int:
        return int(self._engine.reg_read(register_id("riscv", name)))

    def _write(self, name: str, value: int) -> None:
        self._engine.reg_write(register_id("riscv", name), value)
