"""Thumb of Armv7-M and later: bodies of loops, each with one hazard, and random ones."""

from __future__ import annotations

import random

from covp.chip.isa import Isa
from covp.evaluation.calibration.divisions import DIVISIONS

_NAMES = ["r0", "r1", "r2", "r3", "r4", "r5", "r8", "r9"]
VALUES = (("r0", 1), ("r1", 2), ("r2", 3), ("r3", 4), ("r4", 5), ("r5", 6))
RANDOM_VALUES = tuple((name, n * 0x9E3779B1 % (1 << 31)) for n, name in enumerate(_NAMES))
SKEW = "nop"
TEMPLATE = """
.thumb_func
start@:
 movw r10, #{short}
 b begin@
.thumb_func
long@:
 movw r10, #{long}
 b begin@
begin@:
 {prologue}
 movw r7, #({data} & 0xffff)
 movt r7, #({data} >> 16)
 movs r0, #0
 movs r1, #{words}
 mov r2, r7
1:
 str r0, [r2], #4
 subs r1, #1
 bne 1b
 add r2, r2, #64
 mov sp, r2
 movw r6, #:lower16:leaf@
 movt r6, #:upper16:leaf@
 {setup}
 b loop@
.balign 16
{skew}
loop@:
 {body}
 subs r10, r10, #1
 bne loop@
 b end@
.balign 8
.thumb_func
leaf@:
 adds r4, r4, r0
 bx lr
.balign 8
.thumb_func
popping@:
 push {{r4, lr}}
 pop {{r4, pc}}
.thumb_func
end@:
 b end@
"""


def _set(name: str, value: int) -> str:
    """Return two instructions."""
    return f"movw {name}, #{value & 0xFFFF}; movt {name}, #{value >> 16 & 0xFFFF}"


_ALWAYS = {
    "alu": "adds r1,r2,r3; adds r1,r2,r3; adds r1,r2,r3; adds r1,r2,r3",
    "alu_wide": "add.w r1,r2,r3; add.w r1,r2,r3; add.w r1,r2,r3; add.w r1,r2,r3",
    "alu_mixed": "adds r1,r2,r3; add.w r1,r2,r3; adds r1,r2,r3; add.w r3,r2,r1",
    "alu_use": "adds r1,r2,r3; adds r2,r1,r3; adds r1,r2,r3; adds r2,r1,r3",
    "loads": "ldr r1,[r7]; ldr r2,[r7,#4]; ldr r3,[r7,#8]; ldr r4,[r7,#12]",
    "loads_wide": "ldr.w r1,[r7]; ldr.w r2,[r7,#4]; ldr.w r3,[r7,#8]; ldr.w r4,[r7,#12]",
    "load": "ldr r1,[r7]; adds r2,r3,r3; adds r2,r3,r3; adds r2,r3,r3",
    "load_use": "ldr r1,[r7]; adds r2,r1,r1; ldr r1,[r7]; adds r2,r1,r1",
    "load_use_later": "ldr r1,[r7]; adds r2,r3,r3; adds r2,r1,r1; ldr r1,[r7]; adds r2,r3,r3; "
    "adds r2,r1,r1",
    "load_address": "str r7,[r7]; ldr r1,[r7]; ldr r2,[r1,#4]; ldr r1,[r7]; ldr r2,[r1,#4]",
    "loads_narrow": "ldrb r1,[r7]; ldrb r2,[r7,#4]; ldrh r3,[r7,#8]; ldrh r4,[r7,#12]",
    "narrow_use": "ldrb r1,[r7]; adds r2,r1,r1; ldrh r1,[r7]; adds r2,r1,r1",
    "computed_address": "mov r1,r7; ldr r2,[r1]; mov r1,r7; ldr r2,[r1,#4]",
    "computed_narrow": "mov r1,r7; ldrb r2,[r1]; mov r1,r7; ldrb r2,[r1,#4]",
    "computed_store": "mov r1,r7; str r2,[r1]; mov r1,r7; str r2,[r1,#4]",
    "computed_pair": "mov r1,r7; ldrd r2,r3,[r1]; mov r1,r7; ldrd r2,r3,[r1]",
    "computed_multiple": "mov r1,r7; ldm r1,{r2,r3}; mov r1,r7; ldm r1,{r2,r3}",
    "store_offset": "movs r1,#4; str r2,[r7,r1]; adds r3,r4,r4; str r2,[r7,r1]",
    "store_offsets": "movs r1,#4; str r2,[r7,r1]; str r3,[r7,r1]; str r4,[r7,r1]",
    "load_offset": "movs r1,#4; ldr r2,[r7,r1]; adds r3,r4,r4; ldr r2,[r7,r1]",
    "shifts": "lsls r1,r2,#3; lsrs r3,r4,#2; asrs r1,r2,#1; adds r3,r1,r1",
    "shift_by_register": "lsls r1,r2; lsl.w r1,r2,r3; lsr.w r3,r2,r4; adds r4,r3,r3",
    "shifted": "add.w r1,r2,r3,lsl #3; add.w r1,r2,r3,lsl #3; adds r4,r5,r5",
    "shifted_use": "adds r3,r4,r5; add.w r1,r2,r3,lsl #3; adds r2,r1,r1; add.w r1,r2,r3,lsl #3",
    "bitfield": "ubfx r1,r2,#3,#4; bfi r3,r2,#3,#4; ubfx r1,r2,#3,#4; adds r4,r5,r5",
    "bitfield_use": "adds r2,r3,r4; ubfx r1,r2,#3,#4; adds r2,r1,r1; ubfx r1,r2,#3,#4",
    "extends": "sxth r1,r2; uxtb r3,r4; sxtb.w r1,r2; adds r4,r5,r5",
    "stores": "str r1,[r7]; str r2,[r7,#4]; str r3,[r7,#8]",
    "store": "str r1,[r7]; adds r2,r3,r3; adds r2,r3,r3",
    "store_computed": "adds r1,r2,r3; str r1,[r7]; adds r1,r2,r3; str r1,[r7,#4]",
    "load_store": "ldr r1,[r7]; str r1,[r7,#4]; ldr r2,[r7]; str r3,[r7,#4]",
    "store_load": "str r1,[r7]; ldr r2,[r7]; str r3,[r7,#4]; ldr r4,[r7,#4]",
    "pairs": "ldrd r1,r2,[r7]; ldrd r3,r4,[r7,#8]",
    "store_pair": "strd r1,r2,[r7]; adds r3,r4,r4",
    "multiple": "ldm r7,{r1,r2,r3}; adds r4,r5,r5",
    "store_multiple": "stm r7,{r1,r2,r3}; adds r4,r5,r5",
    "push_pop": "push {r1,r2}; adds r4,r5,r5; pop {r1,r2}",
    "jump": "b 1f; 1:; adds r1,r2,r3; b 2f; 2:; adds r1,r2,r3",
    "jump_over": "b 1f; adds r1,r2,r3; 1:; adds r1,r2,r3; b 2f; adds r1,r2,r3; 2:",
    "jumps": "b 1f; 1:; b 2f; 2:; b 3f; 3:; b 4f; 4:",
    "branches_taken": "cmp r0,r0; beq 1f; adds r1,r2,r3; 1:; cmp r0,r0; beq 1f; adds r1,r2,r3; 1:",
    "branches_untaken": "cmp r0,r0; bne 1f; bne 1f; bne 1f; 1:",
    "branch_zero": "movs r1,#0; cbz r1,1f; adds r1,r2,r3; 1:; movs r1,#0; cbnz r1,1f; 1:",
    "branch_back": "movs r1,#4; 1:; subs r1,#1; bne 1b",
    "load_branch": "ldr r1,[r7]; cbz r1,1f; adds r1,r2,r2; 1:",
    "branch_to_wide": "cmp r0,r0; beq 1f; nop; 1:; add.w r1,r2,r3; beq 1f; nop; nop; 1:; "
    "add.w r1,r2,r3",
    "conditional": "cmp r0,r0; it eq; addeq r1,r2,r3; adds r1,r2,r3",
    "call": "bl leaf@",
    "call_register": "blx r6",
    "call_popping": "bl popping@",
    "mul": "mul r1,r2,r3; adds r4,r5,r5; mul r1,r2,r3; adds r4,r5,r5",
    "mul_use": "mul r1,r2,r3; adds r2,r1,r1; mul r1,r2,r3; adds r2,r1,r1",
    "muls": "muls r1,r2; muls r1,r2; muls r1,r2",
    "mla": "mla r1,r2,r3,r4; adds r4,r5,r5; mla r1,r2,r3,r4; adds r4,r5,r5",
    "mla_use": "mla r1,r2,r3,r1; mla r1,r2,r3,r1; adds r2,r1,r1",
    "mull": "umull r1,r2,r3,r4; adds r4,r5,r5; smull r1,r2,r3,r4; adds r4,r5,r5",
    "mull_use": "umull r1,r2,r3,r4; adds r4,r1,r1; umull r1,r2,r3,r4; adds r4,r2,r2",
    "mlal": "umlal r1,r2,r3,r4; adds r4,r5,r5; umlal r1,r2,r3,r4; adds r4,r5,r5",
    "load_mul": "ldr r1,[r7]; mul r2,r1,r3; ldr r1,[r7]; mul r2,r1,r3",
    "system": "mrs r1,primask; adds r2,r3,r3",
    "barrier": "dmb; adds r2,r3,r3",
}
_DIVIDE = {
    **{
        name: f"{_set('r1', first)}; {_set('r2', second)}; sdiv r3,r1,r2; adds r4,r5,r5"
        for name, (first, second) in DIVISIONS.items()
    },
    "div_unsigned": "mov r1,#1000; movs r2,#7; udiv r3,r1,r2; adds r4,r5,r5",
    "div_use": "mov r1,#1000; movs r2,#7; udiv r3,r1,r2; adds r4,r3,r3",
}
_DSP = {
    "mac": "smlad r1,r2,r3,r4; adds r4,r5,r5; smlad r1,r2,r3,r4; adds r4,r5,r5",
    "mac_use": "smlad r1,r2,r3,r1; smlad r1,r2,r3,r1; adds r4,r1,r1",
    "extend": "sxtb16 r1,r2; sxtb16 r3,r4; smlad r1,r1,r3,r4",
    "extend_add": "sxtah r1,r2,r3; sxtah r4,r2,r3; adds r5,r4,r1",
    "extend_add_use": "adds r3,r4,r5; sxtah r1,r2,r3; adds r2,r1,r1; sxtah r1,r2,r3",
    "packed": "sadd16 r1,r2,r3; sadd16 r2,r1,r3; adds r4,r5,r5",
}
_FLOAT = {
    "vadd": "vadd.f32 s0,s1,s2; adds r4,r5,r5; vadd.f32 s3,s1,s2; adds r4,r5,r5",
    "vadd_use": "vadd.f32 s0,s1,s2; vadd.f32 s1,s0,s2; vadd.f32 s0,s1,s2",
    "vmul": "vmul.f32 s0,s1,s2; vmul.f32 s3,s1,s2; adds r4,r5,r5",
    "vmul_use": "vmul.f32 s0,s1,s2; vadd.f32 s1,s0,s2; adds r4,r5,r5",
    "vmla": "vmla.f32 s0,s1,s2; vmla.f32 s3,s1,s2; adds r4,r5,r5",
    "vmla_use": "vmla.f32 s0,s1,s2; vmla.f32 s0,s1,s2; vadd.f32 s1,s0,s2",
    "vdiv": "vdiv.f32 s0,s1,s2; adds r4,r5,r5; adds r4,r5,r5",
    "vdiv_use": "vdiv.f32 s0,s1,s2; vadd.f32 s1,s0,s2; adds r4,r5,r5",
    "vldr": "vldr s0,[r7]; vldr s1,[r7,#4]; adds r4,r5,r5",
    "vldr_use": "vldr s0,[r7]; vadd.f32 s1,s0,s2; vldr s0,[r7]; vadd.f32 s1,s0,s2",
    "computed_vldr": "mov r1,r7; vldr s0,[r1]; mov r1,r7; vstr s0,[r1]",
    "vstr": "vstr s0,[r7]; vstr s1,[r7,#4]; adds r4,r5,r5",
    "vldm": "vldm r7,{s0-s3}; adds r4,r5,r5",
    "vmov": "vmov r1,s0; adds r2,r1,r1; vmov s1,r2; vadd.f32 s2,s1,s3",
    "vmov_pair": "vmov r1,r2,d0; adds r4,r5,r5",
}


def hazards(isa: Isa, misaligned: bool) -> dict[str, str]:
    """Name to body, instructions separated by "; ".

    Args:
        isa: what the core has.
        misaligned: it allows accesses that cross a word; there is no hazard of that yet.
    """
    return {
        **_ALWAYS,
        **_DIVIDE,
        **(_DSP if isa.has("dsp") else {}),
        **(_FLOAT if isa.has("fpu") else {}),
    }


def prologue(isa: Isa) -> str:
    """Return the code that enables the FPU, in CPACR (Armv7-M, B3.2.20)."""
    if not isa.has("fpu"):
        return ""
    steps = (
        "movw r0,#0xed88", "movt r0,#0xe000", "ldr r1,[r0]", "orr r1,#0xf00000", "str r1,[r0]",
        "dsb", "isb", "mov r1,#0x3f800000",
        *(f"vmov s{n},r1" for n in range(4)),
    )  # fmt: skip
    return "\n ".join(steps)


def set_register(name: str, value: int) -> str:
    """Return two instructions."""
    return _set(name, value).replace("; ", "\n ")


_THREE = ["add", "adds", "sub", "eors", "and", "orrs", "lsl", "lsrs", "asr"]
_CONSTANT = ["add", "adds", "eor", "and"]
_ACCESSES = {1: ["ldrb", "ldrsb", "strb"], 2: ["ldrh", "ldrsh", "strh"], 4: ["ldr", "str"]}
_CONDITIONS = ["eq", "ne", "lt", "hs", "gt", "mi"]
_KINDS = (
    ["three"] * 4 + ["constant"] * 4 + ["access"] * 4 + ["branch"] * 2 + ["multiply"] * 2
    + ["shift", "value", "call", "divide", "pair", "stack", "conditional"]
)  # fmt: skip


def random_line(source: random.Random, isa: Isa, misaligned: bool) -> str:
    """Return an instruction, a call, or a branch over some: one or more lines.

    Args:
        source: of chance.
        isa: what the core has.
        misaligned: with accesses that cross a word; there are none yet.
    """
    kind = source.choice(_KINDS + ["packed"] * isa.has("dsp"))
    if kind == "branch":
        return _branch(source)
    if kind == "call":
        return source.choice(["bl leaf@", "blx r6", "bl popping@"])
    return _simple(source, kind)


def _branch(source: random.Random) -> str:
    """Return a comparison, and a branch over one to four instructions."""
    kinds = (source.choice(["three", "constant", "access"]) for _ in range(source.randint(1, 4)))
    lines = "\n ".join(_simple(source, kind) for kind in kinds)
    first, second = source.choice(_NAMES), source.choice(_NAMES)
    return f"cmp {first}, {second}\n b{source.choice(_CONDITIONS)} 1f\n {lines}\n1:"


def _simple(source: random.Random, kind: str) -> str:
    """Return one instruction, or two that belong together."""
    one, two, three, four = source.sample(_NAMES, 4)
    if kind == "constant":
        return f"{source.choice(_CONSTANT)} {one}, {two}, #{source.randint(0, 255)}"
    if kind == "shift":
        return f"{source.choice(['lsls', 'lsr', 'asrs'])} {one}, {two}, #{source.randint(1, 31)}"
    if kind == "value":
        return f"movw {one}, #{source.randint(0, 0xFFFF)}"
    if kind == "access":
        size = source.choice([1, 2, 4, 4])
        place = source.randint(0, 60 // size) * size
        return f"{source.choice(_ACCESSES[size])} {one}, [r7, #{place}]"
    if kind == "conditional":
        return f"cmp {one}, {two}\n it {(condition := source.choice(_CONDITIONS))}\n " + (
            f"add{condition} {three}, {one}, {two}"
        )
    return source.choice(_SEVERAL[kind]).format(one, two, three, four)


_SEVERAL = {
    "three": [f"{name} {{0}}, {{1}}, {{2}}" for name in _THREE],
    "multiply": [
        "mul {0}, {1}, {2}", "mla {0}, {1}, {2}, {3}", "mls {0}, {1}, {2}, {3}",
        "umull {0}, {1}, {2}, {3}", "smlal {0}, {1}, {2}, {3}",
    ],
    "divide": ["udiv {0}, {1}, {2}", "sdiv {0}, {1}, {2}"],
    "packed": ["smlad {0}, {1}, {2}, {3}", "sxtb16 {0}, {1}", "sadd16 {0}, {1}, {2}"],
    "pair": ["ldrd {0}, {1}, [r7, #16]", "strd {0}, {1}, [r7, #24]", "ldm r7, {{r1, r2, r5}}"],
    "stack": ["push {{r1, r3}}\n pop {{r1, r3}}", "push {{r2, r4, r5}}\n pop {{r2, r4, r5}}"],
}  # fmt: skip
