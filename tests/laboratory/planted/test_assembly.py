"""Planted bugs in assembly: bytes that an instruction uses, accesses beyond memory, unaligned."""

from __future__ import annotations

import numpy as np
import pytest

from covp.errors import DeviceFault
from covp.testing import Buffer, Kernel

ARM_START = "mov r4, r0; movs r1, #1; mov r2, r0; "
RISCV_START = "mv a4, a0; li a1, 1; "
FIRST, SECOND = "strb r1, [r4]; ldr r2, [r4]; ", "strb r1, [r4, #1]; ldr r2, [r4]; "
LOW, HIGH = "strh r1, [r4]; ldr r2, [r4]; ", "strh r1, [r4, #2]; ldr r2, [r4]; "
READ, WRITE, UNSET = "out-of-bounds read", "out-of-bounds write", "uninitialised read"
UNALIGNED = "misaligned access"
# what decides: a branch on flags that are set, or on a register
BRANCH, ON_R3, ON_A0 = "; bhi 9f; 9:", "; cmp r3, #9; bhi 9f; 9:", "; bltz a0, 9f; 9:"
# platform, kind, with the bug, without it; r0 and a0 point to 16 bytes that nothing has written
CASES = [
    (
        "cortex-m4",
        UNSET,
        FIRST + "uxtab r3, r1, r2, ror #8" + ON_R3,
        FIRST + "uxtab r3, r1, r2" + ON_R3,
    ),
    (
        "cortex-m4",
        UNSET,
        SECOND + "sxtab r3, r1, r2" + ON_R3,
        SECOND + "sxtab r3, r1, r2, ror #8" + ON_R3,
    ),
    ("cortex-m4", UNSET, FIRST + "sxtah r3, r1, r2" + ON_R3, LOW + "sxtah r3, r1, r2" + ON_R3),
    (
        "cortex-m4",
        UNSET,
        HIGH + "uxtah r3, r1, r2" + ON_R3,
        HIGH + "uxtah r3, r1, r2, ror #16" + ON_R3,
    ),
    ("cortex-m4", UNSET, LOW + "smulbt r3, r1, r2" + ON_R3, LOW + "smulbb r3, r1, r2" + ON_R3),
    ("cortex-m4", UNSET, LOW + "smultb r3, r2, r1" + ON_R3, HIGH + "smultb r3, r2, r1" + ON_R3),
    (
        "cortex-m4",
        UNSET,
        LOW + "smlabb r3, r1, r1, r2" + ON_R3,
        LOW + "smlabb r3, r2, r1, r1" + ON_R3,
    ),
    ("cortex-m4", UNSET, LOW + "cmp r2, #1" + BRANCH, LOW + "uxth r3, r2; cmp r3, #1" + BRANCH),
    (
        "cortex-m4",
        UNSET,
        LOW + "lsrs r3, r2, #1; cmp r3, #1" + BRANCH,
        HIGH + "lsrs r3, r2, #16; cmp r3, #1" + BRANCH,
    ),
    (
        "cortex-m4",
        UNSET,
        "ldr r0, [r0]; b 1f; 1: cmp r0, #3" + BRANCH,
        "ldr r0, [r0]; mov r0, r4; b 1f; 1: cmp r0, #3" + BRANCH,
    ),
    (
        "cortex-m4",
        UNSET,
        "str r1, [r0, #4]; ldrd r3, r1, [r0]; cmp r3, #4" + BRANCH,
        "str r1, [r0, #4]; ldrd r3, r1, [r0]; cmp r1, #4" + BRANCH,
    ),
    (
        "cortex-m4",
        UNSET,
        "str r1, [r4, #4]; ldrd r3, r0, [r4]; cmp r3, #4" + BRANCH,
        "str r1, [r4, #4]; ldrd r3, r0, [r4]; cmp r0, #4" + BRANCH,
    ),
    (
        "cortex-m4",
        UNSET,
        "ldr r0, [r0]; strd r1, r0, [r4, #8]; ldr r0, [r4, #12]; cmp r0, #4" + BRANCH,
        "ldr r0, [r0]; strd r1, r0, [r4, #8]; ldr r0, [r4, #8]; cmp r0, #4" + BRANCH,
    ),
    (
        "cortex-m4",
        UNSET,
        "str r1, [r0]; ldm r4, {r1, r2}; cmp r2, #1" + BRANCH,
        "str r1, [r0]; ldm r4, {r1, r2}; cmp r1, #1" + BRANCH,
    ),
    (
        "cortex-m4",
        UNSET,
        "ldr r3, [r0, #12]; str r1, [r0]; ldm r4, {r2, r3}; cmp r3, #1" + BRANCH,
        "ldr r3, [r0, #12]; str r1, [r0, #4]; ldm r4, {r2, r3}; cmp r3, #1" + BRANCH,
    ),
    (
        "cortex-m4",
        UNSET,
        "vldr s1, [r0]; vadd.f32 s2, s1, s1; vmov r3, s2" + ON_R3,
        "vldr s1, [r0]; vmov.f32 s2, s1; vstr s2, [r0, #8]",
    ),
    (
        "cortex-m4",
        UNSET,
        "ldrb r3, [r4]; tst r3, #1; bne 9f; 9:",
        "strb r1, [r4]; ldrb r3, [r4]; tst r3, #1; bne 9f; 9:",
    ),
    ("cortex-m4", READ, "ldrd r1, r3, [r0, #12]", "ldrd r1, r3, [r0, #8]"),
    (
        "cortex-m4",
        READ,
        "ldm r2!, {r1, r3}; ldm r2!, {r1, r3}; ldm r2!, {r1, r3}",
        "ldm r2!, {r1, r3}; ldm r2!, {r1, r3}",
    ),
    ("cortex-m4", READ, "vldm r0, {s0-s4}", "vldm r0, {s0-s3}"),
    ("cortex-m4", READ, "ldr r3, [r0, #-4]!", "ldr r3, [r0], #-4"),
    ("cortex-m4", WRITE, "strd r1, r1, [r0, #12]", "strd r1, r1, [r0, #8]"),
    ("cortex-m4", WRITE, "vstr d0, [r0, #12]", "vstr d0, [r0, #8]"),
    ("cortex-m4", WRITE, "strh r1, [r0, #15]", "strh r1, [r0, #14]"),
    (
        "cortex-m0plus",
        UNALIGNED,
        "strb r1, [r0]; adds r2, #1; str r1, [r2]",
        "strb r1, [r0]; adds r2, #4; str r1, [r2]",
    ),
    (
        "cortex-m0plus",
        UNALIGNED,
        "strb r1, [r0]; adds r2, #3; ldrh r3, [r2]",
        "strb r1, [r0]; adds r2, #2; ldrh r3, [r2]",
    ),
    (
        "cortex-m0plus",
        UNALIGNED,
        "strb r1, [r0]; adds r2, #2; ldmia r2!, {r3}",
        "strb r1, [r0]; adds r2, #4; ldmia r2!, {r3}",
    ),
    (
        "cortex-m0plus",
        WRITE,
        "stmia r2!, {r1, r3}; stmia r2!, {r1, r3}; stmia r2!, {r1}",
        "stmia r2!, {r1, r3}; stmia r2!, {r1, r3}",
    ),
    (
        "riscv32",
        UNSET,
        "lw a5, 0(a0); mul a0, a5, a1" + ON_A0,
        "lw a5, 0(a0); sw a5, 4(a0)" + ON_A0,
    ),
    (
        "riscv32",
        UNSET,
        "lw a5, 0(a0); add a0, a1, a5" + ON_A0,
        "sw a1, 0(a0); lw a5, 0(a0); add a0, a1, a5" + ON_A0,
    ),
    (
        "riscv32",
        UNSET,
        "sh a1, 0(a0); lw a5, 0(a0); srli a5, a5, 16; bnez a5, 1f; 1:",
        "sh a1, 0(a0); lw a5, 0(a0); slli a5, a5, 16; bnez a5, 1f; 1:",
    ),
    (
        "riscv32",
        UNSET,
        "lb a2, 3(a0); andi a3, a2, 1; beqz a3, 1f; 1:",
        "sb a1, 3(a0); lb a2, 3(a0); andi a3, a2, 1; beqz a3, 1f; 1:",
    ),
    ("riscv32", READ, "lh a2, 16(a0)", "lh a2, 14(a0)"),
    ("riscv32", WRITE, "sb a1, -1(a0)", "sb a1, 0(a0)"),
]


def kernel_of(bench, platform: str, body: str) -> Kernel:
    """A function that is some assembly, its argument in the first register."""
    first = "a0" if platform == "riscv32" else "r0"
    used = (
        '"a1", "a2", "a3", "a4", "a5"' if platform == "riscv32" else '"r1", "r2", "r3", "r4", "cc"'
    )
    start = RISCV_START if platform == "riscv32" else ARM_START
    source = f"""void body(int *p) {{
    register int *first __asm__("{first}") = p;
    __asm__ volatile("{start}{body}" : "+r"(first) : : {used}, "memory");
}}
"""
    return Kernel(bench.session(platform, sanitize=True).load_c(source)["body"])


@pytest.mark.parametrize(("platform", "kind", "bug", "correct"), CASES)
def test_assembly(bench, platform, kind, bug, correct):
    with pytest.raises(DeviceFault) as caught:
        kernel_of(bench, platform, bug)(Buffer(np.zeros(4, np.int32), scratch=True))
    assert caught.value.kind == kind
    assert caught.value.source == "module.c:3"
    kernel_of(bench, platform, correct)(Buffer(np.zeros(4, np.int32), scratch=True))
