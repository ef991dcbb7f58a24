"""RISC-V: small bodies of loops, each with one hazard of a pipeline, and random ones."""

from __future__ import annotations

import random

from covp.chip.isa import Isa
from covp.evaluation.calibration.divisions import DIVISIONS

_NAMES = [*(f"a{n}" for n in range(8)), *(f"t{n}" for n in range(7))]
VALUES = (("a0", 1), ("a1", 2), ("a2", 3), ("a3", 4), ("a4", 5))
RANDOM_VALUES = tuple((name, n * 0x9E3779B1 % (1 << 31)) for n, name in enumerate(_NAMES))
SKEW = ".2byte 1"
TEMPLATE = """
.option push
.option norvc
.balign 4
start@:
 li s0, {short}
 j begin@
long@:
 li s0, {long}
 j begin@
.option pop
begin@:
 {prologue}
 li s1, {data}
 mv t1, s1
 li t2, {words}
1:
 sw x0, 0(t1)
 addi t1, t1, 4
 addi t2, t2, -1
 bnez t2, 1b
 la s2, leaf@
 {setup}
 j loop@
.balign 16
{skew}
loop@:
 {body}
 addi s0, s0, -1
 bnez s0, loop@
 j end@
.balign 8
leaf@:
 add a4, a4, a0
 ret
end@:
 j end@
"""

_ALWAYS = {
    "alu": "add a1,a2,a3; add a1,a2,a3; add a1,a2,a3; add a1,a2,a3",
    "alu_use": "add a1,a2,a3; add a2,a1,a3; add a1,a2,a3; add a2,a1,a3",
    "loads": "lw a1,0(s1); lw a2,4(s1); lw a3,8(s1); lw a4,12(s1)",
    "load_use": "lw a1,0(s1); add a2,a1,a1; lw a1,0(s1); add a2,a1,a1",
    "load_then_alu": "lw a1,0(s1); add a2,a3,a3; add a2,a3,a3; lw a1,0(s1); add a2,a3,a3",
    "load_use_later": "lw a1,0(s1); add a2,a3,a3; add a2,a1,a1; lw a1,0(s1); add a2,a3,a3; "
    "add a2,a1,a1",
    "load_address": "sw s1,0(s1); lw a1,0(s1); lw a2,4(a1); lw a1,0(s1); lw a2,4(a1)",
    "computed_address": "mv a1,s1; lw a2,0(a1); mv a1,s1; lw a2,4(a1)",
    "computed_store": "mv a1,s1; sw a2,0(a1); mv a1,s1; sw a2,4(a1)",
    "stores": "sw a1,0(s1); sw a2,4(s1); sw a3,8(s1)",
    "store_computed": "add a1,a2,a3; sw a1,0(s1); add a1,a2,a3; sw a1,4(s1)",
    "load_store": "lw a1,0(s1); sw a1,4(s1); lw a2,0(s1); sw a3,4(s1)",
    "store_load": "sw a1,0(s1); lw a2,0(s1); sw a3,4(s1); lw a4,4(s1)",
    "overwritten_load": "lw a1,0(s1); li a1,5",
    "shifts": "sll a1,a2,a3; srl a1,a2,a3; sra a1,a2,a3",
    "shifts_far": "li a3,31; sll a1,a2,a3; srl a1,a2,a3; sra a1,a2,a3",
    "shifts_constant": "slli a1,a2,1; srli a1,a2,1; srai a1,a2,1",
    "shifts_constant_far": "slli a1,a2,31; srli a1,a2,31; srai a1,a2,31",
    "jump": "j 1f; 1:; add a1,a2,a3; j 2f; 2:; add a1,a2,a3",
    "jump_over": "j 1f; add a1,a2,a3; 1:; add a1,a2,a3; j 2f; add a1,a2,a3; 2:",
    "jumps": "j 1f; 1:; j 2f; 2:; j 3f; 3:; j 4f; 4:",
    "branches": "beq x0,x0,1f; add a1,a1,a1; 1:; bne x0,x0,2f; add a1,a2,a3; 2:",
    "branches_taken": "beq x0,x0,1f; add a1,a1,a1; 1:; beq x0,x0,1f; add a1,a1,a1; 1:; "
    "beq x0,x0,1f; add a1,a1,a1; 1:",
    "branches_untaken": "bne x0,x0,1f; bne x0,x0,1f; bne x0,x0,1f; 1:",
    "branch_back": "li a1,4; 1:; addi a1,a1,-1; bnez a1,1b",
    "load_branch": "lw a1,0(s1); beq a1,x0,1f; add a1,a2,a2; 1:",
    "computed_branch": "add a1,a2,a3; beq a1,x0,1f; add a1,a2,a3; bne a1,x0,1f; add a1,a2,a2; 1:",
    "call": "jal ra,leaf@",
    "call_register": "la t1,leaf@; jalr t1",
    "call_register_later": "la t1,leaf@; nop; nop; nop; jalr t1",
    "relink": "la ra,leaf@; nop; nop; nop; jalr ra",
    "relink_use": "la ra,leaf@; jalr ra",
    "load_jump": "sw s2,0(s1); lw t1,0(s1); jalr t1",
    "csr": "csrr a1,mscratch; csrw mscratch,a1",
    "fence": "fence",
}
_SHORT = {
    "alu_short": "c.add a1,a2; c.add a1,a2; c.add a1,a2; c.add a1,a2",
    "alu_mixed": "c.add a1,a2; add a1,a2,a3; c.add a1,a2; add a3,a2,a1",
    "loads_short": "c.lw a1,0(s1); c.lw a2,4(s1); c.lw a3,8(s1); c.lw a4,12(s1)",
    "branch_to_wide": "beq x0,x0,1f; c.nop; 1:; add a1,a2,a3; beq x0,x0,1f; c.nop; c.nop; 1:; "
    "add a1,a2,a3",
}
_MULTIPLY = {
    "mul": "mul a1,a2,a3; add a2,a1,a4; mul a1,a2,a3",
    "muls": "mul a1,a2,a3; mul a1,a2,a3; mul a1,a2,a3",
    "mul_later": "mul a1,a2,a3; add a4,a3,a3; mul a1,a2,a3; add a4,a3,a3",
    "mulh": "mulh a1,a2,a3; add a2,a3,a4; mulh a1,a2,a3",
    "mulh_use": "mulh a1,a2,a3; add a2,a1,a4; mulh a1,a2,a3; add a2,a1,a4",
    "mulh_jump": "mulh a1,a2,a3; j 1f; 1:",
    "load_mul": "lw a1,0(s1); mul a2,a1,a3; lw a1,0(s1); mul a2,a1,a3",
    **{
        name: f"li a1,{first}; li a2,{second}; div a3,a1,a2"
        for name, (first, second) in DIVISIONS.items()
    },
    "rem_unsigned": "li a1,1000; li a2,7; remu a3,a1,a2",
    "div_use": "li a1,1000; li a2,7; div a3,a1,a2; add a4,a3,a3",
    "div_jump": "li a1,1000; li a2,7; div a3,a1,a2; j 1f; 1:",
}
_MISALIGNED = {
    "misaligned_load": "lw a1,1(s1)",
    "misaligned_loads": "lw a1,1(s1); lw a2,5(s1); lh a3,3(s1)",
    "misaligned_store": "sh a1,3(s1)",
    "misaligned_stores": "sw a1,1(s1); sw a2,5(s1); sh a1,3(s1)",
}


def hazards(isa: Isa, misaligned: bool) -> dict[str, str]:
    """Name to body, instructions separated by "; ".

    Args:
        isa: what the core has.
        misaligned: it allows accesses that cross a word.
    """
    return {
        **_ALWAYS,
        **(_SHORT if isa.has("c") else {}),
        **(_MULTIPLY if isa.has("m") else {}),
        **(_MISALIGNED if misaligned else {}),
    }


def prologue(isa: Isa) -> str:
    """Return no code: nothing has to be switched on."""
    return ""


def set_register(name: str, value: int) -> str:
    """Return an instruction."""
    return f"li {name}, {value}"


_THREE = ["add", "sub", "xor", "and", "or", "sltu", "sll", "srl", "sra"]
_CONSTANT = ["addi", "xori", "andi"]
_SHIFT = ["slli", "srli", "srai"]
_MULTIPLIES = ["mul", "mul", "mulh", "mulhu", "mulhsu"]
_DIVIDES = ["div", "divu", "rem", "remu"]
_ACCESSES = {1: ["lb", "lbu", "sb"], 2: ["lh", "lhu", "sh"], 4: ["lw", "sw"]}
_CALLS = ["jal ra, leaf@", "la t2, leaf@\n jalr t2"]
_BRANCHES = ["beq", "bne", "blt", "bgeu"]
_KINDS = (
    ["three"] * 4 + ["constant"] * 4 + ["access"] * 4 + ["branch"] * 2
    + ["shift", "value", "call"]
)  # fmt: skip


def random_line(source: random.Random, isa: Isa, misaligned: bool) -> str:
    """Return an instruction, a call, or a branch over some: one or more lines.

    Args:
        source: of chance.
        isa: what the core has.
        misaligned: with accesses that cross a word.
    """
    kinds = _KINDS + ["multiply", "multiply", "divide"] * isa.has("m") + ["misaligned"] * misaligned
    kind = source.choice(kinds)
    if kind == "branch":
        return _branch(source)
    return source.choice(_CALLS) if kind == "call" else _simple(source, kind)


def _branch(source: random.Random) -> str:
    """Return a branch over one to four instructions."""
    kinds = (source.choice(["three", "constant", "access"]) for _ in range(source.randint(1, 4)))
    lines = "\n ".join(_simple(source, kind) for kind in kinds)
    first, second = source.choice(_NAMES), source.choice(_NAMES)
    return f"{source.choice(_BRANCHES)} {first}, {second}, 1f\n {lines}\n1:"


def _simple(source: random.Random, kind: str) -> str:
    """Return one instruction."""
    one, two, three = (source.choice(_NAMES) for _ in range(3))
    if kind == "constant":
        return f"{source.choice(_CONSTANT)} {one}, {two}, {source.randint(-2048, 2047)}"
    if kind == "shift":
        return f"{source.choice(_SHIFT)} {one}, {two}, {source.randint(0, 31)}"
    if kind == "value":
        return f"li {one}, {source.randint(-(1 << 31), (1 << 31) - 1)}"
    if kind == "access":
        size = source.choice([1, 2, 4, 4])
        place = source.randint(0, 60 // size) * size
        return f"{source.choice(_ACCESSES[size])} {one}, {place}(s1)"
    if kind == "misaligned":
        return f"{source.choice(['lw', 'lh', 'sw', 'sh'])} {one}, {source.choice([1, 7])}(s1)"
    names = {"three": _THREE, "multiply": _MULTIPLIES, "divide": _DIVIDES}[kind]
    return f"{source.choice(names)} {one}, {two}, {three}"
