"""CSRs of a RISC-V core that Unicorn lacks: its counters and the machine external interrupt.

Encodings: RISC-V unprivileged ISA 20191213, chapters 10 and 24.
"""

from __future__ import annotations

from collections.abc import Callable

from unicorn.unicorn_py3.unicorn import Uc

from covp.device.machine.engine import register_id

_CYCLE, _TIME, _INSTRET = 0, 1, 2
_MIP = 0x344
_COUNTERS = {
    base + high + number
    for base in (0xB00, 0xC00)
    for high in (0x00, 0x80)
    for number in (_CYCLE, _TIME, _INSTRET)
} - {0xB01, 0xB81}

CSRS = frozenset({*_COUNTERS, _MIP})
"""Numbers of the CSRs that `RiscvCounters` has."""


class RiscvCounters:
    """mcycle, minstret and their read-only and upper halves; and mip, which only lines change.

    Args:
        cycles, instructions: totals before the accessing instruction.
        pending: the bits of mip.
    """

    def __init__(
        self,
        cycles: Callable[[], int],
        instructions: Callable[[], int],
        pending: Callable[[], int] = lambda: 0,
    ) -> None:
        self._pending = pending
        self._sources = {_CYCLE: cycles, _TIME: cycles, _INSTRET: instructions}
        self._offsets = {_CYCLE: 0, _TIME: 0, _INSTRET: 0}

    @staticmethod
    def takes(bits: int) -> bool:
        """Return whether the instruction is a CSR access to one of the counters."""
        return bits & 0x7F == 0x73 and bits >> 20 in CSRS and bits >> 12 & 3 != 0

    def read(self, number: int) -> int:
        """Return the 32 bits of the CSR."""
        if number == _MIP:
            return self._pending()
        value = self._sources[number & 3]() + self._offsets[number & 3]
        return (value >> (32 if number & 0x80 else 0)) & 0xFFFFFFFF

    def write(self, number: int, value: int) -> None:
        """Let the CSR continue from ``value``; mip does not change."""
        if number == _MIP:
            return
        which = number & 3
        now = self._sources[which]()
        whole = (now + self._offsets[which]) & 0xFFFFFFFF_FFFFFFFF
        shift = 32 if number & 0x80 else 0
        whole = whole & ~(0xFFFFFFFF << shift) | value << shift
        self._offsets[which] = whole - now

    def save_state(self) -> dict[int, int]:
        """Return the counters' distance from the totals."""
        return dict(self._offsets)

    def load_state(self, state: dict[int, int]) -> None:
        """Go back to a saved state."""
        self._offsets = dict(state)

    def access(self, bits: int, source: int) -> int | None:
        """Execute csrrw, csrrs, csrrc or their immediate forms.

        Args:
            bits: the instruction.
            source: the value of rs1; unused by the immediate forms.

        Returns:
            the value for rd, or None where the access is illegal: a write of a read-only counter.
        """
        number, kind, rs1 = bits >> 20, bits >> 12 & 7, bits >> 15 & 31
        operand = rs1 if kind & 4 else source
        old = self.read(number)
        if kind & 3 == 1 or rs1:
            if number >= 0xC00:
                return None
            new = (operand, old | operand, old & ~operand)[(kind & 3) - 1]
            self.write(number, new & 0xFFFFFFFF)
        return old


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
        """Take the pending trap if it preempts; return the pc to continue at."""
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
