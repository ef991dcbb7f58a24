"""Properties of single instructions that decide how the host lets the emulator execute them.

`aligned_access`: Armv7-M Architecture Reference Manual A5.2, A6.7 and A7.7: all loads and stores of
Armv6-M, and exclusive ones, access memory that has to be aligned on every Arm core.
"""

from __future__ import annotations

from collections.abc import Callable

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


_LONGEST = 512  # instructions of a block that the emulator translates at once

# Patterns of 16-bit instructions and of the first half of 32-bit ones; Armv7-M Architecture
# Reference Manual A5.2 and A5.3.
_ACCESSES = (
    (0xF800, 0x4800), (0xF000, 0x5000), (0xE000, 0x6000), (0xE000, 0x8000), (0xF600, 0xB400),
    (0xF000, 0xC000), (0xFE00, 0xE800), (0xFE00, 0xEC00), (0xFE00, 0xF800),
)  # fmt: skip
_BRANCHES = ((0xF000, 0xD000), (0xF800, 0xE000), (0xFF00, 0x4700), (0xF500, 0xB100))


def accesses_conditionally(opcode: Callable[[int], int], block: int) -> bool:
    """Return whether a load or store of a block is inside an IT block.

    Args:
        opcode: the bits of the instruction at an address, see `Counter.opcode`.
        block: address of the first instruction.
    """
    left = 0  # instructions of an IT block that are still to come
    pc = block
    for _ in range(_LONGEST):
        bits = opcode(pc)
        first = bits if bits <= 0xFFFF else bits >> 16
        if left and _is_one_of(first, _ACCESSES):
            return True
        if _ends(bits, first):
            return False
        is_it = first & 0xFF00 == 0xBF00 and first & 0xF
        left = 4 - ((first & -first).bit_length() - 1) if is_it else max(0, left - 1)
        pc += 2 if bits <= 0xFFFF else 4
    return False


def _is_one_of(first: int, patterns: tuple[tuple[int, int], ...]) -> bool:
    return any(first & mask == match for mask, match in patterns)


def _ends(bits: int, first: int) -> bool:
    """Return whether a block ends with an instruction: a branch."""
    if bits <= 0xFFFF:
        return bits == 0 or _is_one_of(first, _BRANCHES)
    return first & 0xF800 == 0xF000 and bool(bits & 0x8000)


_OF_TWO_REGISTERS = {0: 4, 1: 2, 4: 4, 5: 2, 7: 2}
"""Bytes by the operation: str, strh, ldr, ldrh, ldrsh."""
_SCALED = {0x6: 4, 0x8: 2}
"""Bytes of loads and stores with an offset, by the upper bits."""


def aligned_access(bits: int, register: Callable[[str], int]) -> tuple[int, int] | None:
    """Return the address and the bytes of an access, or None where there is none.

    Args:
        bits: of the instruction.
        register: reads one, before the access.
    """
    if bits > 0xFFFF:
        return _exclusive(bits, register)
    kind, base = bits >> 12, register(f"r{bits >> 3 & 7}")
    if kind in _SCALED:
        size = _SCALED[kind]
        return base + (bits >> 6 & 31) * size, size
    if kind == 0x5 and (bits >> 9 & 7) in _OF_TWO_REGISTERS:
        return base + register(f"r{bits >> 6 & 7}"), _OF_TWO_REGISTERS[bits >> 9 & 7]
    if kind == 0x9:
        return register("sp") + (bits & 255) * 4, 4
    if kind == 0xC:
        return register(f"r{bits >> 8 & 7}"), 4
    if bits & 0xF600 == 0xB400:
        pushed = 0 if bits & 0x800 else (bits & 0x1FF).bit_count()
        return register("sp") - 4 * pushed, 4
    return None


def _exclusive(bits: int, register: Callable[[str], int]) -> tuple[int, int] | None:
    """Return the same for ldrex, strex, ldrexh and strexh."""
    number = bits >> 16 & 15
    base = register("sp" if number == 13 else f"r{number}")
    if bits & 0xFFE00000 == 0xE8400000:
        return base + (bits & 255) * 4, 4
    return (base, 2) if bits & 0xFFE000F0 == 0xE8C00050 else None
