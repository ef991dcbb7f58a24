"""Small programs, each with one hazard of a pipeline: the set that a timing model has to pass.

Loops of RISC-V assembly whose bodies meet a load's use, a taken branch, a division by its operands
and so on, at both alignments that compressed code has.
"""

from __future__ import annotations

TIMES = 50
"""Runs of a body in its loop."""

_BODIES = {
    "alu": "add a1,a2,a3; add a1,a2,a3; add a1,a2,a3; add a1,a2,a3",
    "alu_short": "c.add a1,a2; c.add a1,a2; c.add a1,a2; c.add a1,a2",
    "alu_mixed": "c.add a1,a2; add a1,a2,a3; c.add a1,a2; add a3,a2,a1",
    "loads": "lw a1,0(s1); lw a2,4(s1); lw a3,8(s1); lw a4,12(s1)",
    "load_use": "lw a1,0(s1); add a2,a1,a1; lw a1,0(s1); add a2,a1,a1",
    "load_then_alu": "lw a1,0(s1); add a2,a3,a3; add a2,a3,a3; lw a1,0(s1); add a2,a3,a3",
    "stores": "sw a1,0(s1); sw a2,4(s1); sw a3,8(s1)",
    "load_store": "lw a1,0(s1); sw a1,4(s1); lw a2,0(s1); sw a3,4(s1)",
    "overwritten_load": "lw a1,0(s1); li a1,5",
    "mul": "mul a1,a2,a3; add a2,a1,a4; mul a1,a2,a3",
    "mulh": "mulh a1,a2,a3; add a2,a3,a4; mulh a1,a2,a3",
    "mulh_jump": "mulh a1,a2,a3; j 1f; 1:",
    "shifts": "sll a1,a2,a3; srl a1,a2,a3; sra a1,a2,a3",
    "jump": "j 1f; 1: add a1,a2,a3; j 2f; 2: add a1,a2,a3",
    "branches": "beq x0,x0,1f; add a1,a1,a1; 1: bne x0,x0,2f; add a1,a2,a3; 2:",
    "load_branch": "lw a1,0(s1); beq a1,x0,1f; add a1,a2,a2; 1:",
    "call": "jal ra,leaf",
    "call_register": "la t1,leaf; jalr t1",
    "relink": "la ra,leaf; nop; nop; nop; jalr ra",
    "load_jump": "sw s2,0(s1); lw t1,0(s1); jalr t1",
    "div": "li a1,1000; li a2,7; div a3,a1,a2",
    "div_zero": "li a1,1000; li a2,0; divu a3,a1,a2",
    "div_negative": "li a1,-1000; li a2,-7; div a3,a1,a2",
    "div_small": "li a1,5; li a2,1000; div a3,a1,a2",
    "div_big": "li a1,0x7fffffff; li a2,0x40000000; div a3,a1,a2",
    "div_use": "li a1,1000; li a2,7; div a3,a1,a2; add a4,a3,a3",
    "misaligned_load": "lw a1,1(s1)",
    "misaligned_store": "sh a1,3(s1)",
    "csr": "csrr a1,mscratch; csrw mscratch,a1",
    "fence": "fence",
}

NAMES = list(_BODIES)


def program(name: str, is_misaligned: bool = False) -> str:
    """Assembly from `start` to `end`; its loop starts on a word, or in the middle of one."""
    return f"""
start:
 li s0, {TIMES}
 li s1, 0x80002000
 la s2, leaf
 li a0, 1
 li a1, 2
 li a2, 3
 li a3, 4
 li a4, 5
 j loop
.balign 16
{".2byte 1" if is_misaligned else ""}
loop:
 {_BODIES[name].replace("; ", chr(10) + " ")}
 addi s0, s0, -1
 bnez s0, loop
 j end
.balign 8
leaf:
 c.add a4, a0
 ret
end:
 j end
"""
