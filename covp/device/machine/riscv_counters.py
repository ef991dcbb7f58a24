"""`RiscvCounters`: the counter CSRs of a RISC-V core; Unicorn gives host ticks for them.

Encodings: RISC-V unprivileged ISA 20191213, chapters 10 and 24.
"""

from __future__ import annotations

from collections.abc import Callable

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
