"""Estimated cycles of instructions: published tables as data, for zero-wait-state memory.

Every figure is an estimate: a static cost for each instruction plus the cost of branches that
were taken. Caches, wait states, bus contention and most data hazards are left out. Where a source
gives a range, the middle is taken. Sources:

- m0plus: Arm DDI0484C, Cortex-M0+ TRM table 3-1 (single-cycle multiplier).
- m3: Cortex-M3 TRM, instruction timing table (os.mbed.com/media/uploads/4180_1).
- m4: Arm 100166_0001, Cortex-M4 TRM table 3-1; load/store pairing as in TI SWCU192; FPU counts as
  in LLVM's ARMScheduleM4.td. A taken branch refills 1-3 cycles: 2 are booked.
- m7: LLVM's ARMScheduleM7.td, a scheduler's model: two instructions that use different units
  issue together, whatever their operands.
- m33: Arm publishes no table; m4's with a branch refill of 1 (branches are resolved in the second
  of three stages).
- rv32: OpenHW CV32E40P, docs/source/pipeline.rst, load-use stalls left out; divisions take 3-35.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from covp.cores import Core


@dataclass(frozen=True)
class Rule:
    """What holds for the instructions with ``bits & mask == match``.

    Attributes:
        bytes: 2 or 4.
        mask, match: over the instruction's bits; Arm 32-bit: first halfword on top.
        cycles: estimated cycles.
        list: one more cycle for each of these bits that is set (register lists); with COUNTED the
            value of these low bits instead.
        taken: extra cycles when a conditional branch is taken.
        flags: SPECIAL, LOAD, MEMORY, COUNTED.
        unit: neighbours with different units other than 0 issue together (dual-issue cores).
    """

    bytes: int
    mask: int
    match: int
    cycles: int = 1
    list: int = 0
    taken: int = 0
    flags: int = 0
    unit: int = 0


SPECIAL = 1  # stop in front of it: the host carries it out, or this core does not have it
LOAD = 2  # the next instruction, if it is MEMORY, takes a cycle less
MEMORY = 4
COUNTED = 8

_ALU, _MAC, _PORT = 1, 2, 3


def core_rules(core: Core) -> tuple[Rule, ...]:
    """The core's timing table; empty means one cycle an instruction."""
    return TABLES.get(core.timing or "", ())


def _thumb16(load: int, store: int, refill: int, pop_pc: int) -> tuple[Rule, ...]:
    """Thumb's 16-bit instructions; ``refill`` cycles are lost by a branch that is taken."""
    memory = [
        *((mask, match, load, LOAD | MEMORY) for mask, match in (
            (0xFE00, 0x5600), (0xF800, 0x5800), (0xFE00, 0x5E00), (0xFC00, 0x5C00),
            (0xF800, 0x6800), (0xF800, 0x7800), (0xF800, 0x8800), (0xF800, 0x9800),
            (0xF800, 0x4800),
        )),
        *((mask, match, store, MEMORY) for mask, match in (
            (0xFE00, 0x5000), (0xFE00, 0x5200), (0xFE00, 0x5400),
            (0xF800, 0x6000), (0xF800, 0x7000), (0xF800, 0x8000), (0xF800, 0x9000),
        )),
    ]  # fmt: skip
    return (
        *(Rule(2, mask, match, cycles, flags=flags, unit=_PORT)
          for mask, match, cycles, flags in memory),
        Rule(2, 0xFE00, 0xB400, 1, list=0x1FF),  # push
        Rule(2, 0xFF00, 0xBD00, pop_pc, list=0xFF),  # pop {.., pc}
        Rule(2, 0xFF00, 0xBC00, 1, list=0xFF),  # pop
        Rule(2, 0xF000, 0xC000, 1, list=0xFF),  # stm, ldm
        Rule(2, 0xFE00, 0xDE00, 1),  # udf, svc
        Rule(2, 0xF000, 0xD000, 1, taken=refill),  # b<c>
        Rule(2, 0xF500, 0xB100, 1, taken=refill),  # cbz, cbnz
        Rule(2, 0xF800, 0xE000, 1 + refill),  # b
        Rule(2, 0xFF00, 0x4700, 1 + refill),  # bx, blx
        Rule(2, 0xFF87, 0x4487, 1 + refill),  # add pc
        Rule(2, 0xFF87, 0x4687, 1 + refill),  # mov pc
        Rule(2, 0xFFC0, 0x4340, 1, unit=_MAC),  # mul
        Rule(2, 0x0000, 0x0000, 1, unit=_ALU),
    )  # fmt: skip


def _thumb32(refill: int, mla: int, mull: int, mlal: int, div: int) -> tuple[Rule, ...]:
    """The 32-bit instructions of ARMv7-M and later."""
    return (
        Rule(4, 0xF800D000, 0xF000D000, 1 + refill),  # bl
        Rule(4, 0xF800D000, 0xF0009000, 1 + refill),  # b.w
        Rule(4, 0xFBFFFF00, 0xF3BF8F00, 1),  # dsb, dmb, isb
        Rule(4, 0xFB80D000, 0xF3808000, 1),  # msr, mrs, hints
        Rule(4, 0xF800D000, 0xF0008000, 1, taken=refill),  # b<c>.w
        Rule(4, 0xFFF0FFE0, 0xE8D0F000, 4 + refill),  # tbb, tbh
        Rule(4, 0xFFD00000, 0xE8900000, 1, list=0x7FFF),  # ldm
        Rule(4, 0xFFD00000, 0xE9100000, 1, list=0x7FFF),
        Rule(4, 0xFFD00000, 0xE8800000, 1, list=0x7FFF),  # stm
        Rule(4, 0xFFD00000, 0xE9000000, 1, list=0x7FFF),
        Rule(4, 0xFE400000, 0xE8400000, 3),  # ldrd, strd
        Rule(4, 0xFF70F000, 0xF850F000, 3 + refill),  # ldr pc
        Rule(4, 0xFE100000, 0xF8100000, 2, flags=LOAD | MEMORY, unit=_PORT),
        Rule(4, 0xFE100000, 0xF8000000, 1, flags=MEMORY, unit=_PORT),
        Rule(4, 0xFFF0F0F0, 0xFB90F0F0, div),  # sdiv
        Rule(4, 0xFFF0F0F0, 0xFBB0F0F0, div),  # udiv
        Rule(4, 0xFFF0F0F0, 0xFB00F000, 1, unit=_MAC),  # mul
        Rule(4, 0xFFF000E0, 0xFB000000, mla, unit=_MAC),  # mla, mls
        Rule(4, 0xFF800000, 0xFB000000, 1, unit=_MAC),  # smlad and its kin
        Rule(4, 0xFFD00000, 0xFB800000, mull, unit=_MAC),  # smull, umull
        Rule(4, 0xFF800000, 0xFB800000, mlal, unit=_MAC),  # smlal, umlal
        Rule(4, 0xFF300E00, 0xED100A00, 2, flags=LOAD | MEMORY, unit=_PORT),  # vldr
        Rule(4, 0xFF300E00, 0xED000A00, 2, flags=MEMORY, unit=_PORT),  # vstr
        Rule(4, 0xFFE00E00, 0xEC400A00, 2),  # vmov of two registers
        Rule(4, 0xFE000E00, 0xEC000A00, 1, list=0xFF, flags=COUNTED),  # vldm, vstm
        Rule(4, 0xFFB00E50, 0xEE800A00, 14),  # vdiv
        Rule(4, 0xFFBF0ED0, 0xEEB10AC0, 14),  # vsqrt
        Rule(4, 0xFFA00E10, 0xEE000A00, 3),  # vmla, vnmla
        Rule(4, 0xFF900E10, 0xEE900A00, 3),  # vfnma
        Rule(4, 0xFFB00E10, 0xEEA00A00, 3),  # vfma
        Rule(4, 0x00000000, 0x00000000, 1, unit=_ALU),
    )


def _single_issue(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    return tuple(replace(rule, unit=0) for rule in rules)


def _no_pairing_of_loads(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    return tuple(replace(rule, flags=rule.flags & ~(LOAD | MEMORY)) for rule in rules)


_M4_32 = _thumb32(refill=2, mla=1, mull=1, mlal=1, div=7)

_RV32 = (
    Rule(4, 0x0000007F, 0x00000063, 1, taken=2),  # branches
    Rule(4, 0x0000007F, 0x0000006F, 2),  # jal
    Rule(4, 0x0000007F, 0x00000067, 2),  # jalr
    Rule(4, 0xFE00707F, 0x02000033, 1),  # mul
    Rule(4, 0xFE00407F, 0x02000033, 5),  # mulh, mulhsu, mulhu
    Rule(4, 0xFE00407F, 0x02004033, 19),  # div, rem
    Rule(4, 0xFE00007F, 0x18000053, 10),  # fdiv.s
    Rule(4, 0xFE00007F, 0x58000053, 10),  # fsqrt.s
    Rule(4, 0xFFF0007F, 0x30000073, 4),  # mstatus
    Rule(2, 0xC003, 0xC001, 1, taken=2),  # c.beqz, c.bnez
    Rule(2, 0xE003, 0xA001, 2),  # c.j
    Rule(2, 0xE003, 0x2001, 2),  # c.jal
    Rule(2, 0xF07F, 0x8002, 2),  # c.jr
    Rule(2, 0xF07F, 0x9002, 2),  # c.jalr
)

TABLES: dict[str, tuple[Rule, ...]] = {
    "m0plus": _no_pairing_of_loads(
        _single_issue((*_thumb16(2, 2, 1, 3), Rule(4, 0xF800D000, 0xF000D000, 3)))
    ),
    "m3": _single_issue((*_thumb16(2, 1, 2, 3), *_thumb32(refill=2, mla=2, mull=4, mlal=5, div=7))),
    "m4": _single_issue((*_thumb16(2, 1, 2, 3), *_M4_32)),
    "m7": (*_thumb16(2, 1, 1, 3), *_thumb32(refill=1, mla=1, mull=1, mlal=1, div=7)),
    "m33": _single_issue(
        (*_thumb16(2, 1, 1, 2), *_thumb32(refill=1, mla=1, mull=1, mlal=1, div=7))
    ),
    "rv32": _RV32,
}
