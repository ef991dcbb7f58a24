"""The code that a core executes from reset on: it sets the sp and jumps to a program's entry."""

from __future__ import annotations

from collections.abc import Mapping

_LUI, _ADDI, _JALR, _SYSTEM = 0x37, 0x13, 0x67, 0x73
_CSRRW = 1
_T0, _SP = 5, 2


def boot_code(entry: int, sp: int, csrs: Mapping[int, int]) -> list[int]:
    """Return words of code, without compressed instructions.

    Encodings: RISC-V unprivileged ISA 20191213, chapters 2 and 9.

    Args:
        entry: of the program.
        sp: value of the stack pointer there.
        csrs: number to value of CSRs to set.
    """
    words = []
    for number, value in csrs.items():
        words += [*_load(_T0, value), number << 20 | _T0 << 15 | _CSRRW << 12 | _SYSTEM]
    return [*words, *_load(_SP, sp), *_load(_T0, entry), _T0 << 15 | _JALR]


def _load(register: int, value: int) -> tuple[int, int]:
    """LUI, ADDI."""
    high = (value + 0x800) & 0xFFFFF000
    low = value - high & 0xFFF
    return high | register << 7 | _LUI, low << 20 | register << 15 | register << 7 | _ADDI
