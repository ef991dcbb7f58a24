"""Properties of single instructions that decide how the host lets the emulator execute them."""

from __future__ import annotations

from covp.chip.cores import Core
from covp.device.machine.special_instructions import ARM_UNMASKING, RISCV_UNMASKING

MRET = 0x30200073
"""RISC-V's return from a handler."""


def may_unmask(core: Core, bytes: int, bits: int) -> bool:
    """Return whether pending interrupts have to be checked after an instruction."""
    patterns = ARM_UNMASKING if core.architecture == "arm" else RISCV_UNMASKING
    return any(p.bytes == bytes and bits & p.mask == p.match for p in patterns)


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
    """Return whether an instruction stores and changes no register."""
    stores = _ARM_STORES if core.architecture == "arm" else _RISCV_STORES
    short = bits <= 0xFFFF if core.architecture == "arm" else bits & 3 != 3
    return any(
        bits & mask == match and (mask <= 0xFFFF) == (short or mask == 0x7F)
        for mask, match in stores
    )


def is_wait_for_interrupt(core: Core, bits: int) -> bool:
    """Return whether it is a WFI: Arm's 16-bit form, or RISC-V's."""
    return bits == (0xBF30 if core.architecture == "arm" else 0x10500073)
