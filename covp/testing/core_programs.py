"""Programs that show whether a RISC-V core does what the instruction set says, for `check_core`."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from covp.chip.cores import Core
from covp.evaluation.calibration import riscv

ALARM = 0xF0000000
"""Address of the `Alarm`: some cores take only addresses with bit 31 for peripherals."""
DATA_BYTES, DUMP_BYTES, STACK_BYTES = 64, 128, 64
"""Bytes that a program reads and writes, and after them its registers at its end, and its stack."""
DUMPED = (*(name for name, _ in riscv.RANDOM_VALUES), "ra", "sp", "s3")
"""Registers that a program stores at its end, in this order."""
_VALUES = (0, 1, 2, 31, 32, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
_LOADS = {"lb": 1, "lbu": 1, "lh": 2, "lhu": 2, "lw": 4}
_STORES = {"sb": 1, "sh": 2, "sw": 4}
_BRANCHES = ("beq", "bne", "blt", "bge", "bltu", "bgeu")
_PAIRS = ((0, 0), (1, -1), (-1, 1), (5, 5), (-(1 << 31), (1 << 31) - 1), (2, 3))
_WORDS = ("add", "sub", "xor", "or", "and", "slt", "sltu", "sll", "srl", "sra")
_CONSTANTS = ("addi", "xori", "ori", "andi", "slti", "sltiu")
_SHIFTS = ("slli", "srli", "srai")
_MULTIPLY = ("mul", "mulh", "mulhu", "mulhsu", "div", "divu", "rem", "remu")
_SHORT = (
    "c.li a0, -5", "c.lui a1, 3", "c.addi a0, 7", "c.slli a0, 3", "c.mv a2, a0", "c.add a2, a1",
    "c.srli a0, 2", "c.srai a0, 1", "c.andi a0, 13", "c.sub a0, a1", "c.xor a0, a1", "c.or a0, a1",
    "c.and a0, a2", "c.sw a1, 8(s1)", "c.lw a3, 8(s1)", "c.swsp a1, 4(sp)", "c.lwsp a4, 4(sp)",
    "c.addi16sp sp, -32", "c.addi4spn a5, sp, 12", "c.addi16sp sp, 32",
    "c.beqz a0, 1f\n c.addi a1, 1\n1:", "c.bnez a0, 1f\n c.addi a1, 1\n1:",
    "c.j 1f\n c.addi a1, 1\n1:", "la t0, 1f\n c.jr t0\n c.addi a1, 1\n1:",
    "la t0, 1f\n c.jalr t0\n c.addi a1, 1\n1:\n sub ra, ra, t0",
)  # fmt: skip
UNKNOWN = ("ebreak", "ecall", ".word 0xffffffff")
"""Instructions that not every core has, or that not every core rejects."""
_TRAPS = (
    *UNKNOWN,
    "lui a0, 0x60000\n lw a1, 4(a0)",
    "lui a0, 0x60000\n lbu a1, 5(a0)",
    "lui a0, 0x60000\n sw a1, 4(a0)",
    "auipc a0, 0\n sw a1, 0(a0)",
)


_MIX = "slli a4, a3, 5\n srli a3, a3, 27\n or a3, a3, a4\n xor a3, a3, {}"
"""Every result up to now is in a3: a difference does not get lost."""


@dataclass(frozen=True)
class CoreProgram:
    """A program, as elements that may be left out from the end on.

    Attributes:
        elements: an instruction each, or some that belong together.
        handles: it takes interrupts, which are counted in s3.
    """

    elements: tuple[str, ...]
    handles: bool = False

    def cut(self, count: int) -> CoreProgram:
        """Return the program with its first elements only."""
        return CoreProgram(self.elements[:count], self.handles)


def assembly(program: CoreProgram, data: int, number: int) -> str:
    """Return the code of a program.

    Its labels are ``start_N``, ``end_N``, and ``at_N_K`` before the K-th element.

    Args:
        program: any.
        data: address of what it reads and writes, with its dump, and of its stack after that.
        number: N.
    """
    values = "\n ".join(f"li {name}, {value}" for name, value in riscv.RANDOM_VALUES)
    body = "\n".join(f"at_{number}_{n}:\n {text}" for n, text in enumerate(program.elements))
    dump = "\n ".join(
        f"sw {name}, {DATA_BYTES + 4 * place}(s1)" for place, name in enumerate(DUMPED)
    )
    text = f"""
.balign 16
start_{number}:
 li s1, {data}
 li s2, {ALARM}
 li s3, 0
 li sp, {data + DATA_BYTES + DUMP_BYTES + STACK_BYTES}
 la ra, start_{number}
 {_ENABLE if program.handles else ""}
 {values}
{body}
dump_{number}:
 {dump}
 j end_{number}
leaf_{number}:
 add a4, a4, a0
 ret
end_{number}:
 j end_{number}
 nop
 nop
"""
    return (text + _HANDLER if program.handles else text).replace("@", f"_{number}")


_ENABLE = """la t0, handler@
 csrw mtvec, t0
 li t0, 0x800
 csrw mie, t0
 csrsi mstatus, 8"""
_HANDLER = """
.balign 256
handler@: # of all interrupts, also where the core always enters through a table
 .option push
 .option norvc
 .rept 16
 j taken@
 .endr
 .option pop
taken@:
 addi s3, s3, 1
 sw x0, 4(s2)
 csrr a1, mcause
 mret
"""


def programs_of(
    core: Core, instructions: int, seed: int
) -> Iterator[tuple[str, list[CoreProgram]]]:
    """Yield what is checked and the programs that check it, the simplest first.

    Args:
        core: the instruction set.
        instructions: of the random programs, at least.
        seed: of these.
    """
    yield "start and stop", [CoreProgram(("nop",)), CoreProgram(("nop",) * 7)]
    yield "arithmetic", list(_computing(_WORDS, _CONSTANTS))
    if core.isa.has("m"):
        yield "multiplication, division", list(_computing(_MULTIPLY, ()))
    yield "loads", [_accesses(_LOADS, misaligned=False)]
    yield "stores", [_accesses(_STORES, misaligned=False)]
    yield "misaligned accesses", list(_misaligned(core))
    yield "branches and jumps", list(_branches())
    if core.isa.has("c"):
        yield "short instructions", [CoreProgram(_SHORT)]
        yield "code alignment", list(_alignments())
    yield "traps", [CoreProgram(("nop", text)) for text in _TRAPS]
    yield "random instructions", list(_random(core, instructions, seed))


def interrupted_programs() -> list[CoreProgram]:
    """Return programs that an `Alarm` interrupts: asleep, twice, in a loop, and not at all."""
    alarm = "li t0, {}\n sw t0, 0(s2)"
    # a core may take WFI for a NOP
    once, twice = (f"1:\n wfi\n li t0, {n}\n bltu s3, t0, 1b" for n in (1, 2))
    return [
        CoreProgram((alarm.format(300), once), handles=True),
        CoreProgram((alarm.format(3000), once, alarm.format(200), twice), handles=True),
        CoreProgram((alarm.format(500), "1:\n addi a0, x0, 1\n beqz s3, 1b"), handles=True),
        CoreProgram(("csrci mstatus, 8", alarm.format(100), "wfi", "nop"), handles=True),
    ]


def _computing(words: Sequence[str], constants: Sequence[str]) -> Iterator[CoreProgram]:
    """Yield each operation with all pairs of remarkable values."""
    for name in words:
        pairs = itertools.product(_VALUES, repeat=2)
        yield _mixed(f"li a0, {one}\n li a1, {two}\n {name} a2, a0, a1" for one, two in pairs)
    small, places = (0, 1, -1, 2047, -2048), (0, 1, 15, 31)
    kinds = {**dict.fromkeys(constants, small), **dict.fromkeys(_SHIFTS, places)}
    for name, others in kinds.items() if constants else ():
        pairs = itertools.product(_VALUES, others)
        yield _mixed(f"li a0, {one}\n {name} a2, a0, {two}" for one, two in pairs)
    if constants:
        yield CoreProgram(("lui a0, 0x12345", "auipc a1, 0x1000", "sub a1, a1, s1", "fence"))


def _mixed(elements: Iterable[str], mixes: Sequence[str] = (_MIX.format("a2"),)) -> CoreProgram:
    """Return a program of elements, each followed by what keeps its result."""
    return CoreProgram(tuple(line for one in elements for line in (one, *mixes)))


def _accesses(kinds: dict[str, int], misaligned: bool) -> CoreProgram:
    """Return a program with accesses of each kind at each address in two words."""
    loads = kinds is _LOADS
    seen = [f"lw a2, {word}(s1)\n {_MIX.format('a2')}" for word in (0, 4)]
    elements = (
        f"{name} {'a2' if loads else 'a3'}, {place}(s1)"
        for name, size in kinds.items()
        for place in range(9 - size)
        if misaligned or place % size == 0
    )
    return _mixed(elements) if loads else _mixed(elements, seen)


def _misaligned(core: Core) -> Iterator[CoreProgram]:
    """Yield accesses that the core allows, or else each of those that it rejects."""
    if core.allows_misaligned:
        yield _accesses(_LOADS, misaligned=True)
        yield _accesses(_STORES, misaligned=True)
        return
    for name, size in (*_LOADS.items(), *_STORES.items()):
        for place in range(1, size):
            yield CoreProgram(("nop", f"{name} a2, {place}(s1)"))


def _branches() -> Iterator[CoreProgram]:
    """Yield each condition with values that meet it and do not; jumps; a loop."""
    yield CoreProgram(
        tuple(
            f"li a0, {one}\n li a1, {two}\n {name} a0, a1, 1f\n addi a2, a2, 5\n1:\n slli a2, a2, 1"
            for name in _BRANCHES
            for one, two in _PAIRS
        )
    )
    yield CoreProgram(
        (
            "j 1f\n addi a0, a0, 1\n1:",
            "jal ra, leaf@",
            "la t0, leaf@\n jalr t0",
            "la t0, leaf@\n jalr ra, 0(t0)",
            "li a0, 9\n1:\n addi a0, a0, -1\n add a1, a1, a0\n bnez a0, 1b",
            "li a0, 4\n1:\n jal ra, leaf@\n addi a0, a0, -1\n bgtz a0, 1b",
            "sub ra, ra, t0",
        )
    )


def _alignments() -> Iterator[CoreProgram]:
    """Yield mixes of long and short instructions: all of five in a row, and jumps to each."""
    for skew in ("", "c.nop"):
        lines = [skew] if skew else []
        for mix in itertools.product((False, True), repeat=5):
            lines += ["c.addi a0, 3" if short else "xori a0, a0, 0x555" for short in mix]
        yield CoreProgram(tuple(lines))
        for count in range(4):
            gap = "\n ".join(["c.addi a1, 1"] * count)
            lines = [
                f"{jump} 1f\n {gap}\n1:\n {first}\n {second}"
                for jump in ("beq x0, x0,", "j", "bne x0, x0,", "c.j")
                for first in ("c.addi a0, 3", "xori a0, a0, 0x555")
                for second in ("c.addi a0, 3", "xori a0, a0, 0x555")
            ]
            yield CoreProgram((*([skew] if skew else []), *lines))


def _random(core: Core, instructions: int, seed: int, each: int = 80) -> Iterator[CoreProgram]:
    """Yield programs of random elements, at least so many instructions in all."""
    source = random.Random(seed)
    for _ in range(-(-instructions // each)):
        yield CoreProgram(
            tuple(riscv.random_line(source, core.isa, core.allows_misaligned) for _ in range(each))
        )
