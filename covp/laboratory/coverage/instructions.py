"""Instructions as far as coverage needs them: where control goes after each.

Sources: Armv7-M Architecture Reference Manual (DDI 0403E) A5.2, A5.3, A7.7; RISC-V unprivileged ISA
20191213, 2.5 and 16.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["plain", "branch", "jump", "call", "leave"]


@dataclass(frozen=True)
class DecodedInstruction:
    """A decoded instruction.

    Attributes:
        address, size: in bytes.
        bits: as the manuals write them; Arm 32-bit: first halfword on top.
        kind: "branch" is conditional, "jump" is not; "call" comes back; "leave" goes where a
            register or the stack says, or traps.
        target: of a direct branch, jump or call; None: not in the instruction.
        name: of a branch, its mnemonic, e.g. "bne"; "it" of the first one of an IT block.
        conditional: executes only if a condition holds, in an IT block of Arm.
        guards: it is the first one of an IT block.
    """

    address: int
    size: int
    bits: int
    kind: Kind = "plain"
    target: int | None = None
    name: str = ""
    conditional: bool = False
    guards: bool = False

    @property
    def is_site(self) -> bool:
        """True if a condition is decided here: a conditional branch, or an IT block."""
        return self.kind == "branch" or self.guards

    @property
    def end(self) -> int:
        """The address after the instruction."""
        return self.address + self.size


def decode(code: bytes, address: int, is_thumb: bool) -> Iterator[DecodedInstruction]:
    """Decode straight code from ``address`` on; stops at half an instruction.

    Args:
        code: its bytes, without data in between.
        address: of the first instruction.
        is_thumb: T32 of Arm; else RISC-V with compressed instructions.
    """
    return _thumb_code(code, address) if is_thumb else _riscv_code(code, address)


def _half(code: bytes, at: int) -> int:
    return int.from_bytes(code[at : at + 2], "little")


def _sign_extend(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def _gather(bits: int, *fields: tuple[int, int, int]) -> int:
    """Assemble the immediate from fields (lowest bit, how many, their place in it)."""
    return sum((bits >> low & ((1 << count) - 1)) << to for low, count, to in fields)


# -- RISC-V ----------------------------------------------------------------------------------------

_RISCV_BRANCHES = ("beq", "bne", "", "", "blt", "bge", "bltu", "bgeu")
_C_JUMP = (
    (12, 1, 11),
    (11, 1, 4),
    (9, 2, 8),
    (8, 1, 10),
    (7, 1, 6),
    (6, 1, 7),
    (3, 3, 1),
    (2, 1, 5),
)
_C_BRANCH = ((12, 1, 8), (10, 2, 3), (5, 2, 6), (3, 2, 1), (2, 1, 5))
_BRANCH = ((31, 1, 12), (25, 6, 5), (8, 4, 1), (7, 1, 11))
_JAL = ((31, 1, 20), (21, 10, 1), (20, 1, 11), (12, 8, 12))
_RISCV_TRAPS = (0x00000073, 0x00100073, 0x30200073)  # ecall, ebreak, mret


def _riscv_code(code: bytes, address: int) -> Iterator[DecodedInstruction]:
    at = 0
    while at + 2 <= len(code):
        bits = _half(code, at)
        size = 4 if bits & 3 == 3 else 2
        if at + size > len(code):
            return
        if size == 4:
            bits |= _half(code, at + 2) << 16
        yield _riscv_step(address + at, size, bits)
        at += size


def _riscv_step(pc: int, size: int, bits: int) -> DecodedInstruction:
    return _short_riscv(pc, bits) if size == 2 else _long_riscv(pc, bits)


def _short_riscv(pc: int, bits: int) -> DecodedInstruction:
    kind = bits & 0xE003
    if kind in (0xA001, 0x2001):
        target = pc + _sign_extend(_gather(bits, *_C_JUMP), 12)
        return DecodedInstruction(pc, 2, bits, "jump" if kind == 0xA001 else "call", target)
    if kind in (0xC001, 0xE001):
        target = pc + _sign_extend(_gather(bits, *_C_BRANCH), 9)
        return DecodedInstruction(
            pc, 2, bits, "branch", target, "beqz" if kind == 0xC001 else "bnez"
        )
    if bits & 0xE07F == 0x8002:  # c.jr, c.jalr, c.ebreak; rs2 is zero
        calls = bits & 0x1000 and bits & 0x0F80
        return DecodedInstruction(pc, 2, bits, "call" if calls else "leave")
    return DecodedInstruction(pc, 2, bits)


def _long_riscv(pc: int, bits: int) -> DecodedInstruction:
    opcode, rd = bits & 0x7F, bits >> 7 & 31
    if opcode == 0x63:
        target = pc + _sign_extend(_gather(bits, *_BRANCH), 13)
        return DecodedInstruction(pc, 4, bits, "branch", target, _RISCV_BRANCHES[bits >> 12 & 7])
    if opcode == 0x6F:
        target = pc + _sign_extend(_gather(bits, *_JAL), 21)
        return DecodedInstruction(pc, 4, bits, "call" if rd else "jump", target)
    if opcode == 0x67:
        return DecodedInstruction(pc, 4, bits, "call" if rd else "leave")
    return DecodedInstruction(pc, 4, bits, "leave" if bits in _RISCV_TRAPS[1:] else "plain")


# -- Arm -------------------------------------------------------------------------------------------

_CONDITIONS = ("eq", "ne", "cs", "cc", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le")


def _thumb_code(code: bytes, address: int) -> Iterator[DecodedInstruction]:
    at, first = 0, False
    in_block = 0  # instructions of an IT block that are still to come
    while at + 2 <= len(code):
        bits = _half(code, at)
        size = 4 if bits >= 0xE800 else 2
        if at + size > len(code):
            return
        if size == 4:
            bits = bits << 16 | _half(code, at + 2)
        step = _short_thumb(address + at, bits) if size == 2 else _long_thumb(address + at, bits)
        yield _conditional(step, first) if in_block else step
        first = size == 2 and bits & 0xFF00 == 0xBF00 and bits & 0xF != 0
        in_block = 4 - ((bits & -bits).bit_length() - 1) if first else max(0, in_block - 1)
        at += size


def _conditional(step: DecodedInstruction, first: bool) -> DecodedInstruction:
    """Return the step as one in an IT block."""
    return replace(step, name="it" if first else "", conditional=True, guards=first)


def _short_thumb(pc: int, bits: int) -> DecodedInstruction:
    if bits & 0xF000 == 0xD000 and bits & 0x0E00 != 0x0E00:
        target = pc + 4 + _sign_extend((bits & 0xFF) << 1, 9)
        return DecodedInstruction(pc, 2, bits, "branch", target, f"b{_CONDITIONS[bits >> 8 & 15]}")
    if bits & 0xF500 == 0xB100:
        target = pc + 4 + _gather(bits, (9, 1, 6), (3, 5, 1))
        name = "cbnz" if bits & 0x0800 else "cbz"
        return DecodedInstruction(pc, 2, bits, "branch", target, name)
    if bits & 0xF800 == 0xE000:
        return DecodedInstruction(
            pc, 2, bits, "jump", pc + 4 + _sign_extend((bits & 0x7FF) << 1, 12)
        )
    if bits & 0xFF87 == 0x4780:  # blx
        return DecodedInstruction(pc, 2, bits, "call")
    # bx; mov and add to pc; pop of pc; udf, bkpt
    leaves = ((0xFF87, 0x4700), (0xFF87, 0x4687), (0xFF87, 0x4487), (0xFF00, 0xBD00))
    traps = ((0xFF00, 0xDE00), (0xFF00, 0xBE00))
    if any(bits & mask == match for mask, match in leaves + traps):
        return DecodedInstruction(pc, 2, bits, "leave")
    return DecodedInstruction(pc, 2, bits)


def _long_thumb(pc: int, bits: int) -> DecodedInstruction:
    if bits & 0xF8009000 == 0xF0009000:  # b.w, bl
        sign = bits >> 26 & 1
        i1, i2 = (bits >> 13 & 1) ^ sign ^ 1, (bits >> 11 & 1) ^ sign ^ 1
        offset = sign << 24 | i1 << 23 | i2 << 22 | _gather(bits, (16, 10, 12), (0, 11, 1))
        kind: Kind = "call" if bits & 0x4000 else "jump"
        return DecodedInstruction(pc, 4, bits, kind, pc + 4 + _sign_extend(offset, 25))
    if bits & 0xF800D000 == 0xF0008000 and bits & 0x03800000 != 0x03800000:
        fields = ((26, 1, 20), (11, 1, 19), (13, 1, 18), (16, 6, 12), (0, 11, 1))
        target = pc + 4 + _sign_extend(_gather(bits, *fields), 21)
        return DecodedInstruction(pc, 4, bits, "branch", target, f"b{_CONDITIONS[bits >> 22 & 15]}")
    table = bits & 0xFFF0FFE0 == 0xE8D0F000  # tbb, tbh
    loads_many = bits & 0xFE508000 == 0xE8108000 and bits & 0x01800000 in (0x800000, 0x1000000)
    loads_pc = bits & 0xFF70F000 == 0xF850F000
    undefined = bits & 0xFFF0F000 == 0xF7F0A000
    return DecodedInstruction(
        pc, 4, bits, "leave" if table or loads_many or loads_pc or undefined else "plain"
    )
