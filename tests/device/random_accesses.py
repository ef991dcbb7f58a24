"""Random programs of loads, stores and jumps, many of which go where they must not.

Encodings: Arm DDI0403E, chapters A5 to A7; RISC-V unprivileged ISA 20191213, chapter 24.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from covp.chip.platform_file import Platform

ENTRY = 0x1000
"""Of programs, from the start of the flash."""
NEAR = 256
"""Bytes before and after a place that a program may reach from it."""
_UNMAPPED = 0x60000000
_POINTERS = 4


@dataclass(frozen=True)
class Program:
    """A program: its ``code``, and the registers that it starts with."""

    code: bytes
    registers: dict[str, int]


def _halves(*values: int) -> bytes:
    return b"".join(value.to_bytes(2, "little") for value in values)


def _words(*values: int) -> bytes:
    return b"".join(value.to_bytes(4, "little") for value in values)


def places(platform: Platform) -> list[int]:
    """Addresses that programs access: ends of memories and peripherals, and what is inside."""
    found = [platform.ram.start + 0x2000, platform.flash.start + 0x4000, _UNMAPPED]
    for region in platform.memory:
        found += [region.start, region.end, region.start + 0x3000]
    for peripheral in platform.peripherals[:2]:
        found += [peripheral.base, (peripheral.base | 0xFFF) + 1]
    return found


def windows(platform: Platform) -> list[tuple[int, int]]:
    """Addresses and sizes of the RAM that programs may store to."""
    return [
        (start, min(place + NEAR, region.end) - start)
        for place in places(platform)
        for region in platform.memory
        if region.kind == "ram"
        for start in [max(place - NEAR, region.start)]
        if start < region.end and place + NEAR > region.start
    ]


def random_program(platform: Platform, draw: random.Random) -> Program:
    """A program for the first core of a platform."""
    core = platform.core
    if core.architecture == "riscv":
        language: _Riscv | _Thumb = _Riscv(draw)
    else:
        language = _Thumb(draw, not core.isa.is_armv6m, core.has("fpu"))
    lines = b"".join(language.line() for _ in range(draw.randrange(1, 12)))
    if draw.random() < 0.4:
        lines = language.loop(lines, draw.randrange(2, 5))
    lines = language.start + lines
    inside, others = platform.ram.start + 0x2000, places(platform)
    registers = {name: draw.getrandbits(draw.choice((3, 32))) for name in language.data}
    for name in language.pointers:
        place = inside if draw.random() < 0.6 else draw.choice(others)
        near = draw.choice((0, 0, 4, 8, -4, -8, draw.randrange(-12, 12)))
        registers[name] = (place + near) & (0xFFFFFFFC if name == "sp" else 0xFFFFFFFF)
    flash = platform.flash.end
    bad = (flash, flash - 2, flash - 4, _UNMAPPED, 0, platform.peripherals[0].base)
    registers[language.jump] = draw.choice(bad) + draw.choice((1, 1, 0, 2))
    return Program(lines, registers)


class _Riscv:
    data = ("a0", "a1", "a2", "a3")
    jump = "t1"
    start = b""
    pointers = ("a4", "a5", "s0", "s1")

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw

    def line(self) -> bytes:
        return self._draw.choice((self._access, self._access, self._access, self._plain))()

    def loop(self, body: bytes, count: int) -> bytes:
        """li t0, count; body; addi t0, t0, -1; bnez t0, body."""
        back = -(len(body) + 4) & 0x1FFF
        fields = (back >> 12) << 31 | (back >> 5 & 63) << 25 | (back >> 1 & 15) << 8
        branch = fields | (back >> 11 & 1) << 7 | 5 << 15 | 1 << 12 | 0x63
        return _words(count << 20 | 5 << 7 | 0x13) + body + _words(0xFFF28293, branch)

    def _access(self) -> bytes:
        draw = self._draw
        data, pointer, offset = draw.randrange(10, 14), draw.choice((14, 15, 8, 9)), self._offset()
        if draw.random() < 0.2:  # c.lw, c.sw
            at = offset & 0x7C
            fields = (at >> 3 & 7) << 10 | (at >> 2 & 1) << 6 | (at >> 6 & 1) << 5
            code = draw.choice((0x4000, 0xC000)) | fields
            return _halves(code | (pointer - 8) << 7 | (data - 8) << 2)
        if draw.random() < 0.5:
            size = draw.choice((0, 1, 2, 2, 4, 5))
            return _words((offset & 0xFFF) << 20 | pointer << 15 | size << 12 | data << 7 | 0x03)
        fields = (offset >> 5 & 127) << 25 | data << 20 | pointer << 15 | (offset & 31) << 7
        return _words(fields | draw.choice((0, 1, 2, 2)) << 12 | 0x23)

    def _offset(self) -> int:
        return self._draw.choice((0, 0, 4, 8, 64, self._draw.randrange(-8, 8)))

    def _plain(self) -> bytes:
        draw = self._draw
        rd, rs, rt = (draw.randrange(10, 14) for _ in range(3))
        pointer = draw.choice((14, 15, 8, 9))
        step = draw.choice((1, 2, 4, 4, 4, -4))
        return draw.choice(
            (
                _words(draw.randrange(4096) << 20 | rs << 15 | rd << 7 | 0x13),  # addi
                _words((step & 0xFFF) << 20 | pointer << 15 | pointer << 7 | 0x13),
                _words(rt << 20 | rs << 15 | draw.choice((0, 4, 6, 7)) << 12 | rd << 7 | 0x33),
                _words(0x02000033 | rt << 20 | rs << 15 | rd << 7),  # mul
                _words(0x02004033 | rt << 20 | rs << 15 | rd << 7),  # div
                _words(0x00000463 | rs << 15 | rt << 20, 0x13),  # beq over a nop
                _halves(0x0001),  # c.nop
                _words(0x30067) if draw.random() < 0.1 else _halves(0x0505),  # jr t1
            )
        )


class _Thumb:
    data = ("r0", "r1", "r2", "r3")
    jump = "lr"
    pointers = ("r4", "r5", "r6", "sp")

    def __init__(self, draw: random.Random, is_wide: bool, has_fpu: bool) -> None:
        self._draw, self._is_wide, self._has_fpu = draw, is_wide, has_fpu
        self.start = _halves(0xF3BF, 0x8F2F) if is_wide else b""  # clrex

    def line(self) -> bytes:
        draw = self._draw
        if self._is_wide and draw.random() < 0.25:
            return self._conditional()
        return self._flow() if draw.random() < 0.1 else self._single()

    def loop(self, body: bytes, count: int) -> bytes:
        """movs r7, count; body; subs r7, 1; bne body."""
        back = -(len(body) + 2 + 4) >> 1
        if back >= -128:
            return _halves(0x2700 | count) + body + _halves(0x3F01, 0xD100 | back & 0xFF)
        return body

    def _conditional(self) -> bytes:
        """it, itt, ..."""
        draw = self._draw
        count, condition = draw.randrange(1, 5), draw.randrange(14)
        mask = 8 >> (count - 1)
        for n in range(count - 1):
            mask |= (condition & 1 ^ draw.randrange(2)) << (3 - n)
        body = b"".join(self._single() for _ in range(count))
        return _halves(0xBF00 | condition << 4 | mask) + body

    def _single(self) -> bytes:
        kinds: tuple[Callable[[], bytes], ...] = (self._short, self._short, self._plain)
        if self._is_wide:
            kinds += (self._wide, self._wide, self._several, self._several)
        if self._has_fpu:
            kinds += (self._float,)
        return self._draw.choice(kinds)()

    def _pointer(self) -> int:
        return self._draw.choice((4, 5, 6))

    def _short(self) -> bytes:
        draw = self._draw
        data, pointer, at = draw.randrange(4), self._pointer(), draw.choice((0, 0, 1, 2, 16))
        return _halves(
            draw.choice(
                (
                    *(kind | at << 6 | pointer << 3 | data  # str, ldr, strb, ldrb, strh, ldrh
                      for kind in (0x6000, 0x6800, 0x7000, 0x7800, 0x8000, 0x8800)),
                    *(kind | at << 6 | pointer << 3 | data for kind in (0x6000, 0x6800)),
                    *(kind | data << 8 | at for kind in (0x9000, 0x9800)),  # of the stack
                    *(kind | draw.randrange(4) << 6 | pointer << 3 | data  # of two registers
                      for kind in (0x5000, 0x5200, 0x5600, 0x5800, 0x5E00)),
                    *(kind | pointer << 8 | draw.randrange(1, 16)  # stm, ldm
                      for kind in (0xC000, 0xC800)),
                    0xB400 | draw.randrange(1, 16),  # push, pop
                    0xBC00 | draw.randrange(1, 16),
                )
            )
        )  # fmt: skip

    def _wide(self) -> bytes:
        """Loads and stores of bytes, halves and words, indexed, exclusive, and table branches."""
        draw = self._draw
        data, pointer = draw.randrange(4), self._pointer()
        kind = draw.choice((0xF800, 0xF820, 0xF840, 0xF840, 0xF900, 0xF920))
        load = 0x10 if kind >= 0xF900 else draw.choice((0, 0x10))
        form = draw.randrange(4)
        if form == 0:
            offset = draw.choice((0, 1, 2, 4, 8, 64))
            return _halves(kind | 0x80 | load | pointer, data << 12 | offset)
        if form == 3:
            if draw.randrange(2):
                return _halves(0xE850 | pointer, data << 12 | 0x0F00)  # ldrex, strex
            return _halves(0xE840 | pointer, data << 12 | (data + 1 & 3) << 8)
        indexing = draw.choice((0xC00, 0x900, 0xB00, 0xD00, 0xF00))
        return _halves(kind | load | pointer, data << 12 | indexing | draw.choice((0, 1, 4, 8)))

    def _several(self) -> bytes:
        """ldrd, strd, ldm, stm in their forms."""
        draw = self._draw
        first, pointer, load = draw.randrange(3), draw.choice((4, 5, 6, 13)), draw.randrange(2) << 4
        if draw.random() < 0.6:
            indexing = draw.choice((0x100, 0x180, 0x1A0, 0xA0, 0x20, 0x120))
            high = 0xE840 | indexing | load | pointer
            return _halves(high, first << 12 | (first + 1) << 8 | draw.choice((0, 1, 2)))
        return _halves(
            draw.choice((0xE880, 0xE8A0, 0xE900, 0xE920)) | load | pointer,
            draw.choice((3, 6, 9, 7, 15)),
        )

    def _float(self) -> bytes:
        draw = self._draw
        pointer, load = draw.choice((4, 5, 6, 13)), draw.randrange(2) << 4
        wide = draw.randrange(2) << 8
        if draw.random() < 0.7:  # vldr, vstr
            return _halves(0xED80 | load | pointer, draw.randrange(8) << 12 | 0xA00 | wide)
        return _halves(draw.choice((0xEC80, 0xECA0, 0xED20)) | load | pointer, 0x0A04 | wide)

    def _plain(self) -> bytes:
        draw = self._draw
        rd, rs = draw.randrange(4), draw.randrange(4)
        return draw.choice(
            (
                _halves(0x3000 | rd << 8 | draw.randrange(256)),  # adds
                _halves(0x3000 | self._pointer() << 8 | draw.choice((1, 2, 4, 4, 4))),
                _halves(draw.choice((0x4000, 0x4040, 0x4280, 0x4300, 0x4340)) | rs << 3 | rd),
                _halves(0x2800 | rd << 8 | draw.randrange(8)),  # cmp
                _halves(0xBF00),
            )
        )

    def _flow(self) -> bytes:
        draw = self._draw
        if draw.random() < 0.2:
            return _halves(0x4770)  # bx lr
        return _halves(0xD000 | draw.randrange(14) << 8, 0xBF00)  # b<c> over a nop
