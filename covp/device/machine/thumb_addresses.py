"""`aligned_access`: where an instruction accesses memory that has to be aligned on every Arm core.

Armv7-M Architecture Reference Manual A5.2, A6.7 and A7.7: all loads and stores of Armv6-M, and
exclusive ones.
"""

from __future__ import annotations

from collections.abc import Callable

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
