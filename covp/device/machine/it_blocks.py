"""`accesses_conditionally`: whether a block of Thumb code has loads or stores in an IT block."""

from __future__ import annotations

from collections.abc import Callable

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
