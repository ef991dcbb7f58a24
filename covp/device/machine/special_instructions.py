"""Instructions that the emulator must not execute: the host does, or the core lacks them.

Unicorn runs DSP instructions on a Cortex-M3, CBZ on a Cortex-M0+, floats on an RV32IMC: it accepts
what the core does not implement. Instructions that unmask interrupts and accesses to counters need
the host. Encodings: Arm DDI0403E (ARMv7-M) chapter A5, DDI0419E (ARMv6-M) chapter A5; RISC-V
unprivileged ISA 20191213, chapter 24.
"""

from __future__ import annotations

from dataclasses import dataclass

from covp.chip.cores import Core
from covp.chip.isa import Isa
from covp.device.machine.data_cache import FLUSH, RISCV_OPERATIONS
from covp.device.machine.riscv_csrs import CSRS


@dataclass(frozen=True)
class Special:
    """The instructions with ``bits & mask == match``.

    Attributes:
        bytes: 2 or 4.
        mask, match: over the instruction's bits; Arm 32-bit: first halfword on top.
        is_special: the emulator stops before them; False: it executes them, whatever later
            patterns say.
    """

    bytes: int
    mask: int
    match: int
    is_special: bool = True


def special_instructions(core: Core, has_data_cache: bool = False) -> tuple[Special, ...]:
    """Return the patterns of a core's instructions; the first one that matches decides.

    Args:
        core: which.
        has_data_cache: instructions for it are the host's; else they are not in the core.
    """
    if core.architecture == "riscv":
        caches = _data_caches(core) if has_data_cache else ()
        return (*RISCV_UNMASKING, *_riscv_csrs(), *caches, *_not_in_riscv(core.isa))
    return (*ARM_UNMASKING, *_not_in_arm(core.isa))


# Instructions that may let a pending interrupt in. CPSIE; MSR to PRIMASK, BASEPRI and FAULTMASK.
ARM_UNMASKING = (
    Special(2, 0xFFF8, 0xB660),
    Special(4, 0xFFF0FFFC, 0xF3808810),
)
# MRET; accesses to mstatus and mie.
RISCV_UNMASKING = (
    Special(4, 0xFFFFFFFF, 0x30200073),
    *(Special(4, 0xFFF0007F, number << 20 | 0x73) for number in (0x300, 0x304)),
)


def _all(bytes: int, *patterns: tuple[int, int]) -> tuple[Special, ...]:
    return tuple(Special(bytes, mask, match) for mask, match in patterns)


def _not_in_arm(isa: Isa) -> tuple[Special, ...]:
    rules: tuple[Special, ...] = ()
    if isa.is_armv6m:
        return (
            Special(2, 0xFF0F, 0xBF00, False),  # hints
            *_all(2, (0xFF00, 0xBF00), (0xF500, 0xB100)),  # it; cbz, cbnz
            Special(4, 0xF800D000, 0xF000D000, False),  # bl
            Special(4, 0xFFFFFF00, 0xF3BF8F00, False),  # dsb, dmb, isb
            Special(4, 0xFFFFF000, 0xF3EF8000, False),  # mrs
            Special(4, 0xFFF0FF00, 0xF3808800, False),  # msr
            *_all(4, (0, 0)),
        )
    if not isa.has("dsp"):
        rules += _all(
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
        rules += _all(4, *((0xFFF00000, 0xFB000000 | kind << 20) for kind in range(1, 8)))
    if isa.has("fpu"):
        # The units are single precision; cp11 with bit 4 clear is double precision arithmetic.
        rules += _all(4, (0xEF000F10, 0xEE000B00))
    else:
        rules += _all(4, (0xEC000E00, 0xEC000A00))
    return rules


def _extend_and_add() -> list[tuple[int, int]]:
    """Return SXTAH and its kin: extensions whose Rn is not 15, by each bit of Rn that may be 0."""
    return [(0xFFA0F080 | 1 << bit, 0xFA00F080) for bit in range(16, 20)]


def _data_caches(core: Core) -> tuple[Special, ...]:
    patterns = (0xFFFFFFFF, FLUSH), *((0xFFF07FFF, bits) for bits in RISCV_OPERATIONS)
    return _all(4, *(patterns[:1] if core.flushes_data_cache else patterns[1:]))


def _riscv_csrs() -> tuple[Special, ...]:
    return tuple(Special(4, 0xFFF0007F, number << 20 | 0x73) for number in sorted(CSRS))


def _not_in_riscv(isa: Isa) -> tuple[Special, ...]:
    rules = _all(
        2,
        (0xE003, 0x8000),  # reserved; Zcb
        (0xFC03, 0x9C01),  # reserved on RV32; Zcb
        *((0xE003, match) for match in (0x2000, 0xA000, 0x2002, 0xA002)),  # c.fld and its kin
    ) + _all(4, (0x707F, 0x3007), (0x707F, 0x3027), (0x0600007F, 0x02000053))  # doubles
    if not isa.has("c"):
        rules += _all(2, (0, 0))
    if not isa.has("m"):
        rules += _all(4, (0xFE00007F, 0x02000033))
    if not isa.has("a"):
        rules += _all(4, (0x7F, 0x2F))
    if not isa.has("f"):
        rules += _all(4, *((0x7F, code) for code in (0x07, 0x27, 0x43, 0x47, 0x4B, 0x4F, 0x53)))
        rules += _all(2, *((0xE003, match) for match in (0x6000, 0xE000, 0x6002, 0xE002)))
    return rules
