"""What the emulator is too lax about: instructions that a core does not have, and its counters.

Unicorn runs DSP instructions on a Cortex-M3, CBZ on a Cortex-M0+, floats on an RV32IMC, and gives
host ticks for RISC-V's cycle counter. Rules with the flag SPECIAL stop in front of such an
instruction; the device refuses it or carries it out. Encodings: Arm DDI0403E (ARMv7-M) chapter
A5, DDI0419E (ARMv6-M) chapter A5; RISC-V unprivileged ISA 20191213, chapter 24.
"""

from __future__ import annotations

from collections.abc import Callable

from covp.cores import Core, Isa
from covp.timing.tables import SPECIAL, Rule

_CYCLE, _TIME, _INSTRET = 0, 1, 2
_MIP = 0x344
_COUNTERS = {
    base + high + number
    for base in (0xB00, 0xC00)
    for high in (0x00, 0x80)
    for number in (_CYCLE, _TIME, _INSTRET)
} - {0xB01, 0xB81}


def special_rules(core: Core) -> tuple[Rule, ...]:
    """Rules to be put in front of the timing table."""
    if core.architecture == "riscv":
        return (*_RISCV_MASKING, *_riscv_counters(), *_riscv_refused(core.isa))
    return (*_ARM_MASKING, *_arm_refused(core.isa))


# Instructions that may let a pending interrupt in. CPSIE; MSR to PRIMASK, BASEPRI and FAULTMASK.
_ARM_MASKING = (
    Rule(2, 0xFFF8, 0xB660, flags=SPECIAL),
    Rule(4, 0xFFF0FFFC, 0xF3808810, flags=SPECIAL),
)
# MRET; accesses to mstatus and mie.
_RISCV_MASKING = (
    Rule(4, 0xFFFFFFFF, 0x30200073, flags=SPECIAL),
    *(Rule(4, 0xFFF0007F, number << 20 | 0x73, 1, flags=SPECIAL) for number in (0x300, 0x304)),
)


def may_unmask(core: Core, bytes: int, bits: int) -> bool:
    """Whether an instruction has to be followed by a look at pending interrupts."""
    rules = _ARM_MASKING if core.architecture == "arm" else _RISCV_MASKING
    return any(rule.bytes == bytes and bits & rule.mask == rule.match for rule in rules)


# Stores that change nothing but memory: STR, STRH, STRB without write-back; SW, SH, SB and their
# compressed forms.
_ARM_STORES = (
    *((0xFE00, match) for match in (0x5000, 0x5200, 0x5400)),
    *((0xF800, match) for match in (0x6000, 0x7000, 0x8000, 0x9000)),
    *((0xFFF00000, match) for match in (0xF8800000, 0xF8A00000, 0xF8C00000)),
    *((0xFFF00800, match) for match in (0xF8000000, 0xF8200000, 0xF8400000)),
)
_RISCV_STORES = ((0x7F, 0x23), (0xE003, 0xC000), (0xE003, 0xC002))


def is_plain_store(core: Core, bits: int) -> bool:
    """Whether an instruction stores and changes no register."""
    stores = _ARM_STORES if core.architecture == "arm" else _RISCV_STORES
    short = bits <= 0xFFFF if core.architecture == "arm" else bits & 3 != 3
    return any(
        bits & mask == match and (mask <= 0xFFFF) == (short or mask == 0x7F)
        for mask, match in stores
    )


def is_wait_for_interrupt(core: Core, bits: int) -> bool:
    """WFI: Arm's 16-bit form, RISC-V's."""
    return bits == (0xBF30 if core.architecture == "arm" else 0x10500073)


def checks_alignment(core: Core) -> bool:
    """Whether covp has to look for misaligned accesses; on ARMv6-M the emulator faults itself."""
    if core.architecture == "arm":
        return not core.isa.is_armv6m  # even with unaligned loads, LDM and LDRD need words
    return not core.has("unaligned")


def _refuse(bytes: int, *patterns: tuple[int, int]) -> tuple[Rule, ...]:
    return tuple(Rule(bytes, mask, match, flags=SPECIAL) for mask, match in patterns)


def _arm_refused(isa: Isa) -> tuple[Rule, ...]:
    rules: tuple[Rule, ...] = ()
    if isa.is_armv6m:
        return (
            Rule(2, 0xFF0F, 0xBF00),  # hints
            *_refuse(2, (0xFF00, 0xBF00), (0xF500, 0xB100)),  # it; cbz, cbnz
            Rule(4, 0xF800D000, 0xF000D000, 3),  # bl
            Rule(4, 0xFFFFFF00, 0xF3BF8F00, 3),  # dsb, dmb, isb
            Rule(4, 0xFFFFF000, 0xF3EF8000, 3),  # mrs
            Rule(4, 0xFFF0FF00, 0xF3808800, 3),  # msr
            *_refuse(4, (0, 0)),
        )
    if not isa.has("dsp"):
        rules += _refuse(
            4,
            (0xFF80F080, 0xFA80F000),  # parallel additions
            (0xFFF0F0C0, 0xFA80F080),  # qadd, qsub, qdadd, qdsub
            (0xFFF0F0C0, 0xFAA0F080),  # sel
            (0xFFE0F080, 0xFA20F080),  # sxtb16, uxtb16
            *_extend_and_add(),
            (0xFFF000C0, 0xFBC00080),  # smlal<x><y>, smlald
            (0xFFF000C0, 0xFBD000C0),  # smlsld
            (0xFFF000F0, 0xFBE00060),  # umaal
            (0xFFF08010, 0xEAC00000),  # pkhbt, pkhtb
            (0xFF70F0F0, 0xF3200000),  # ssat16, usat16
        )
        # mul, mla and mls are for all; the rest of the group is DSP
        rules += _refuse(4, *((0xFFF00000, 0xFB000000 | kind << 20) for kind in range(1, 8)))
    if isa.has("fpu"):
        # The units are single precision; cp11 with bit 4 clear is double precision arithmetic.
        rules += _refuse(4, (0xEF000F10, 0xEE000B00))
    else:
        rules += _refuse(4, (0xEC000E00, 0xEC000A00))
    return rules


def _extend_and_add() -> list[tuple[int, int]]:
    """SXTAH and its kin: extensions whose Rn is not 15, by each bit of Rn that may be zero."""
    return [(0xFFA0F080 | 1 << bit, 0xFA00F080) for bit in range(16, 20)]


def _riscv_counters() -> tuple[Rule, ...]:
    return tuple(
        Rule(4, 0xFFF0007F, number << 20 | 0x73, 1, flags=SPECIAL)
        for number in sorted({*_COUNTERS, _MIP})
    )


def _riscv_refused(isa: Isa) -> tuple[Rule, ...]:
    rules = _refuse(
        2,
        (0xE003, 0x8000),  # reserved; Zcb
        (0xFC03, 0x9C01),  # reserved on RV32; Zcb
        *((0xE003, match) for match in (0x2000, 0xA000, 0x2002, 0xA002)),  # c.fld and its kin
    ) + _refuse(4, (0x707F, 0x3007), (0x707F, 0x3027), (0x0600007F, 0x02000053))  # doubles
    if not isa.has("c"):
        rules += _refuse(2, (0, 0))
    if not isa.has("m"):
        rules += _refuse(4, (0xFE00007F, 0x02000033))
    if not isa.has("a"):
        rules += _refuse(4, (0x7F, 0x2F))
    if not isa.has("f"):
        rules += _refuse(4, *((0x7F, code) for code in (0x07, 0x27, 0x43, 0x47, 0x4B, 0x4F, 0x53)))
        rules += _refuse(2, *((0xE003, match) for match in (0x6000, 0xE000, 0x6002, 0xE002)))
    return rules


class RiscvCounters:
    """mcycle, minstret and their read-only and upper halves; and mip, which only lines change.

    Args:
        cycles, instructions: totals in front of the accessing instruction.
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
        """Whether the instruction is a CSR access to one of the counters."""
        known = bits >> 20 in _COUNTERS or bits >> 20 == _MIP
        return bits & 0x7F == 0x73 and known and bits >> 12 & 3 != 0

    def read(self, number: int) -> int:
        """The 32 bits of the CSR."""
        if number == _MIP:
            return self._pending()
        value = self._sources[number & 3]() + self._offsets[number & 3]
        return (value >> (32 if number & 0x80 else 0)) & 0xFFFFFFFF

    def write(self, number: int, value: int) -> None:
        """Let the CSR go on from ``value``; mip does not change."""
        if number == _MIP:
            return
        which = number & 3
        now = self._sources[which]()
        whole = (now + self._offsets[which]) & 0xFFFFFFFF_FFFFFFFF
        shift = 32 if number & 0x80 else 0
        whole = whole & ~(0xFFFFFFFF << shift) | value << shift
        self._offsets[which] = whole - now

    def save_state(self) -> dict[int, int]:
        """The counters' distance from the totals."""
        return dict(self._offsets)

    def load_state(self, state: dict[int, int]) -> None:
        """Go back to a saved state."""
        self._offsets = dict(state)

    def access(self, bits: int, source: int) -> int | None:
        """Carry out csrrw, csrrs, csrrc or their immediate forms.

        Args:
            bits: the instruction.
            source: the value of rs1; unused by the immediate forms.

        Returns:
            what rd gets, or None where the access is illegal: a write of a read-only counter.
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
