"""A wild access is a fault with kind, address, size and pc, whatever is around it.

Programs are random, of instructions that the emulator executes and those that covp does (counters,
interrupt masks), with one access that is known to be wild, at once or in a later round of a loop.
Encodings: RISC-V unprivileged ISA 20191213, chapter 24; Arm DDI0403E, chapters A5 and A7.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from covp.chip.platform_file import load_platform
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceFault, FaultKind

PROGRAMS = 200


def _words(*values: int) -> bytes:
    return b"".join(value.to_bytes(4, "little") for value in values)


def _halves(*values: int) -> bytes:
    return b"".join(value.to_bytes(2, "little") for value in values)


@dataclass(frozen=True)
class Wild:
    """An access through the wild register. ``size``: of the access; 0: a jump."""

    code: bytes
    is_store: bool
    size: int


@dataclass(frozen=True)
class Machine:
    """How programs for a core are made.

    Attributes:
        platform: its name.
        good, wild: registers with an address in RAM, and of the wild access.
        plain: makes an instruction that changes neither, nor faults.
        accesses: wild ones.
        step: adds 4 to the wild register.
        back: a jump over so many bytes, to before itself.
    """

    platform: str
    good: str
    wild: str
    plain: Callable[[random.Random], bytes]
    accesses: tuple[Wild, ...]
    step: bytes
    back: Callable[[int], bytes]


def _riscv(draw: random.Random) -> bytes:
    rd, rs, rt = (draw.randrange(10, 16) for _ in range(3))
    offset = 4 * draw.randrange(64)
    csr = draw.choice((0xB02, 0xC02, 0x300, 0x304, 0x340, 0x344))
    cycles = draw.choice((0xB00, 0xC00, 0xB80))
    return draw.choice(
        (
            _words(draw.randrange(4096) << 20 | rs << 15 | rd << 7 | 0x13),  # addi
            _words(rt << 20 | rs << 15 | draw.choice((0, 4, 6, 7)) << 12 | rd << 7 | 0x33),
            _words(0x02000033 | rt << 20 | rs << 15 | rd << 7),  # mul
            _words(offset << 20 | 8 << 15 | 2 << 12 | rd << 7 | 0x03),  # lw
            _words((offset >> 5) << 25 | rt << 20 | 8 << 15 | 2 << 12 | (offset & 31) << 7 | 0x23),
            _words(0x00000463 | rs << 15 | rt << 20, 0x13),  # beq over a nop
            _halves(0x0001),  # c.nop
            _halves(0x0505),  # c.addi a0, 1
            *(_words(csr << 20 | kind << 12 | rd << 7 | 0x73) for kind in (2, 3, 6, 7)),  # reads
            _words(cycles << 20 | 2 << 12 | 0x73),
            _words(0x340 << 20 | rs << 15 | 1 << 12 | rd << 7 | 0x73),  # csrrw mscratch
            _words(0x304 << 20 | 5 << 12 | 0x73),  # csrwi mie, 0
            _words(0x300 << 20 | 8 << 15 | 6 << 12 | 0x73),  # csrsi mstatus, MIE
        )
    )


def _jal(back: int) -> bytes:
    bits = -back & 0x1FFFFF
    fields = (bits >> 20 & 1) << 31 | (bits >> 1 & 0x3FF) << 21 | (bits >> 11 & 1) << 20
    return _words(fields | (bits >> 12 & 0xFF) << 12 | 0x6F)


RISCV = Machine(
    "riscv32",
    "s0",
    "s1",
    _riscv,
    (
        *(Wild(_words(9 << 15 | kind << 12 | 10 << 7 | 0x03), False, size)
          for kind, size in ((0, 1), (1, 2), (2, 4), (4, 1), (5, 2))),
        *(Wild(_words(10 << 20 | 9 << 15 | kind << 12 | 0x23), True, 1 << kind)
          for kind in range(3)),
        Wild(_halves(0x4088), False, 4),  # c.lw a0, 0(s1)
        Wild(_halves(0xC088), True, 4),  # c.sw
        Wild(_words(0x48067), False, 0),  # jr s1
    ),
    _words(0x00448493),
    _jal,
)  # fmt: skip


def _arm(draw: random.Random) -> bytes:
    rd, rs, rt = (draw.randrange(4) for _ in range(3))
    return draw.choice(
        (
            _halves(0x3000 | rd << 8 | draw.randrange(256)),  # adds
            _halves(draw.choice((0x4000, 0x4040, 0x4300, 0x4340)) | rs << 3 | rd),  # ands ... muls
            _halves(0x6828 | draw.randrange(32) << 6 & 0x7C0 | 0),  # ldr r0, [r5, #]
            _halves(0x6028 | draw.randrange(32) << 6 & 0x7C0 | 1),  # str r1, [r5, #]
            _halves(0xFB20 | rs, 0xF000 | rd << 8 | rt),  # smlad, without addition
            _halves(0xBF08, 0x3001),  # it eq; addeq
            _halves(0xD000, 0xBF00),  # beq over a nop
            _halves(0xB662),  # cpsie i
            _halves(0xB672),  # cpsid i
            _halves(0xB661),  # cpsie f
            *(_halves(0xF380 | rs, 0x8800 | name) for name in (0x10, 0x11, 0x12)),  # msr primask
            *(_halves(0xF3EF, 0x8000 | rd << 8 | name) for name in (0x10, 0x11, 0x13)),  # mrs
            _halves(0xBF10),  # yield
        )
    )


ARM = Machine(
    "stm32l4r5",
    "r5",
    "r6",
    _arm,
    (
        *(Wild(_halves(code | 6 << 3), code & 0x800 == 0, size)
          for code, size in ((0x6800, 4), (0x7800, 1), (0x8800, 2), (0x6000, 4), (0x7000, 1),
                             (0x8000, 2))),
        Wild(_halves(0xF8D6, 0x0000), False, 4),  # ldr.w
        Wild(_halves(0xF8C6, 0x0000), True, 4),
        Wild(_halves(0xE9D6, 0x0100), False, 4),  # ldrd r0, r1
        Wild(_halves(0xE896, 0x0003), False, 4),  # ldm r6, {r0, r1}
        Wild(_halves(0x4730), False, 0),  # bx r6
    ),
    _halves(0x3604),
    lambda back: _halves(0xE000 | (-(back + 4) >> 1) & 0x7FF),
)  # fmt: skip


def _kind(wild: Wild, in_flash: bool) -> FaultKind:
    if not wild.size:
        return "unmapped fetch"
    if wild.is_store:
        return "write to read-only memory" if in_flash else "unmapped write"
    return "unmapped read"


@pytest.mark.parametrize("machine", [RISCV, ARM], ids=lambda one: one.platform)
@pytest.mark.parametrize("seed", range(PROGRAMS // 20))
def test_random_programs(machine: Machine, seed: int) -> None:
    for number in range(20):
        runs_wild(machine, random.Random(f"{seed} {number}"))


def runs_wild(machine: Machine, draw: random.Random) -> None:
    """A random program meets its wild access, as a whole and instruction by instruction."""
    platform = load_platform(machine.platform)
    ram, flash = platform.ram, platform.flash
    wild = draw.choice(machine.accesses)
    in_flash = wild.is_store and draw.random() < 0.3
    loops = bool(wild.size) and not in_flash and draw.random() < 0.5
    rounds = draw.randrange(12) if loops else 0
    address = ram.end if loops else draw.randrange(0x60000000, 0x70000000, 16)
    if in_flash:
        address = flash.start + draw.randrange(0x8000, 0x10000, 16)
    before, inside, after = (
        b"".join(machine.plain(draw) for _ in range(draw.randrange(9))) for _ in range(3)
    )
    body = wild.code + inside + machine.step
    code = before + body + machine.back(len(body)) * loops + after
    start = flash.start + 0x1000
    pc = start + len(before) if wild.size else address
    counts = []
    for run in (_run, _step):
        with VirtualDevice(platform) as device:
            device.write(start, code)
            thumb = 0 if wild.size else device.core.thumb
            device.core.write_register(machine.wild, address - 4 * rounds | thumb)
            device.core.write_register(machine.good, ram.start + 0x8000)
            with pytest.raises(DeviceFault) as caught:
                run(device, start, start + len(code))
            fault = caught.value
            counts.append(device.instructions)
        found = fault.kind, fault.address, fault.pc
        assert found == (_kind(wild, in_flash), address, pc), f"{run.__name__} {code.hex()}"
        assert not wild.size or fault.size == wild.size
    assert counts[0] == counts[1]


def _run(device: VirtualDevice, start: int, end: int) -> None:
    device.execute(start, end)


def _step(device: VirtualDevice, start: int, end: int) -> None:
    device.core.write_register("pc", start | device.core.thumb)
    while True:
        device.step()
