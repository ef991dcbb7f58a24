"""Random programs full of look-ups in tables and misaligned accesses, for a core's RTL."""

from __future__ import annotations

import random

from covp.chip.cores import Core
from covp.evaluation.calibration import riscv

ROUNDS = 40
DATA = 0x2000
"""Of what the program reads and writes, from the start of RAM."""
_LOADS = {1: ["lb", "lbu"], 2: ["lh", "lhu"], 4: ["lw"]}
_STORES = {1: "sb", 2: "sh", 4: "sw"}
_BRANCHES = ("beq", "bne", "blt", "bgeu")
_NAMES = [f"a{n}" for n in range(8)]
_MIXERS = (
    "add {0},{0},s0",
    "xori {0},{0},0x55",
    "slli {0},{0},1",
    "sub {0},{1},{0}",
    "srli {0},{1},3",
)
TEXT = """
start:
 li s0, {rounds}
 li s1, {data}
 la s2, table
 la s3, pointers
 mv t0, s3
 li t1, {pointers}
 li t2, 8
1:
 lw t3, 0(t0)
 sw t3, 0(t1)
 addi t0, t0, 4
 addi t1, t1, 4
 addi t2, t2, -1
 bnez t2, 1b
 li s3, {pointers}
 {values}
 j again
.balign 16
{skew}
again:
 {body}
 addi s0, s0, -1
 beqz s0, end
 j again
end:
 j end
.balign 16
pointers:
 .word table, {data}, table + 8, {data} + 8, table + 20, {data} + 4, {data} + 16, table + 64
table:
 {words}
"""


def memory_program(core: Core, source: random.Random, ram: int, mixed: bool = True) -> str:
    """A loop; its labels are ``start`` and ``end``.

    Args:
        core: with misaligned accesses where it allows them.
        source: of chance.
        ram: where RAM starts; the program itself is in flash.
        mixed: with accesses whose memory is another one from round to round.
    """
    lines = [_line(core, source, mixed) for _ in range(source.randint(20, 50))]
    return TEXT.format(
        rounds=ROUNDS,
        data=ram + DATA,
        pointers=ram + DATA + 0x200,
        values="\n ".join(f"li {name}, {source.getrandbits(31)}" for name in _NAMES),
        skew=riscv.SKEW if core.isa.has("c") and source.random() < 0.5 else "",
        body="\n ".join(lines),
        words="\n ".join(f".word 0x{source.getrandbits(32):08x}" for _ in range(96)),
    )


def _line(core: Core, source: random.Random, mixed: bool) -> str:
    """One to some instructions."""
    kind = source.choice(["access"] * 6 + ["mix"] * 3 + ["branch", "nop"])
    if kind == "branch":
        first, second = source.choice(_NAMES), source.choice(_NAMES)
        inner = "\n ".join(_access(core, source, mixed) for _ in range(source.randint(1, 3)))
        return f"{source.choice(_BRANCHES)} {first}, {second}, 1f\n {inner}\n1:"
    if kind == "mix":
        return source.choice(_MIXERS).format(source.choice(_NAMES), source.choice(_NAMES))
    return "nop" if kind == "nop" else _access(core, source, mixed)


def _access(core: Core, source: random.Random, mixed: bool) -> str:
    """A look-up in a table of flash, data of its own, a misaligned one, or through a pointer."""
    kinds = ["table", "own"] + ["misaligned"] * core.allows_misaligned + ["pointer"] * mixed
    kind = source.choice(kinds)
    to, index = source.choice(_NAMES), source.choice(_NAMES)
    size = source.choice([2, 4, 4] if kind == "misaligned" else [1, 2, 4, 4])
    load = source.choice(_LOADS[size])
    either = source.choice([*_LOADS[size], _STORES[size]])
    if kind == "table":
        return f"andi t0, {index}, {64 - size}\n add t0, t0, s2\n {load} {to}, 0(t0)"
    if kind == "own":
        return f"{either} {to}, {4 * source.randint(0, 15)}(s1)"
    if kind == "pointer":
        return f"andi t0, {index}, 28\n add t0, t0, s3\n lw t1, 0(t0)\n {load} {to}, 0(t1)"
    mask = source.choice([1, 2, 3, 7, 15])
    return f"andi t0, {index}, {mask}\n add t0, t0, s1\n {either} {to}, 0(t0)"
