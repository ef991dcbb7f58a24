"""Cycles of small Thumb programs beside those that manuals and measurements state.

    python benchmarks/documented_loops.py [--cores NAME ...] [--json FILE]

A body is repeated 4 and 14 times, by a loop of its own if it has one; the difference divided by ten
is what one takes (the method of quinapalus.com/cm7cycles.html). Exit status 1 where one differs
without a reason. ``tests/device/timing/test_documented_loops.py`` holds the models to them.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from covp.chip.platform_file import Platform, load_platform
from covp.compilers.toolchain import SourceText, get_toolchain
from covp.device.virtual import VirtualDevice


@dataclass(frozen=True)
class Case:
    """A body of instructions.

    Attributes:
        core: whose.
        body: assembly, separated by semicolons.
        cycles: that it takes, or the least and the most.
        source: the document.
        differs: why the model differs, "" where it does not.
    """

    core: str
    body: str
    cycles: float | tuple[float, float]
    source: str
    differs: str = ""


RUNS = (4, 14)
M0, M0PLUS, M3, M4 = "cortex-m0", "cortex-m0plus", "cortex-m3", "cortex-m4f"
M7, M33 = "cortex-m7f", "cortex-m33"
TRM0, TRM0PLUS = "Arm DDI0432C, table 3-1", "Arm DDI0484C, table 3-1"
TRM3 = "Arm DDI0337I, table 3-1"
PAIRS = "Arm DDI0337I, section 3.3.2"
TRM4 = "Arm 100166_0001, table 3-1"
PARTS4 = "Arm 100166_0001, section 3.3.3"
FLOATS4 = "LLVM, ARMScheduleM4.td"
BRANCHES = "compendium.i-0.nl, branch_timing (STM32L4)"
DIVISION = "compendium.i-0.nl, division (STM32L4)"
J = "measured: github.com/jnk0le/random, "
J4, J7, J33 = f"{J}cortex_m3m4.md", f"{J}cortex_m7.md", f"{J}cortex_m33.md"
Q7 = "measured: quinapalus.com/cm7cycles.html"

CASES = (
    Case(M0, "adds r1,r2,r3", 1, TRM0),
    Case(M0, "muls r1,r2,r1", 1, f"{TRM0}: with the fast multiplier"),
    Case(M0, "ldr r1,[r6]; str r1,[r6]", 4, TRM0),
    Case(M0, "ldm r6!,{r1,r2,r3}", 4, TRM0),
    Case(M0, "push {r1,r2,r3}; pop {r1,r2,r3}", 8, TRM0),
    Case(M0, "b 1f; 1:", 3, TRM0),
    Case(M0, "cmp r0,r0; beq 1f; nop; 1:", 4, TRM0),
    Case(M0, "cmp r0,r0; bne 1f; 1:", 2, TRM0),
    Case(M0, "bl leaf", 7, f"{TRM0}: bl 4, bx 3"),
    Case(M0, "adr r1,1f; mov pc,r1; .balign 4; 1:", 4, TRM0),
    Case(M0, "adr r1,1f; adds r1,#1; push {r1}; pop {pc}; .balign 4; 1:", 8,
         f"{TRM0}: pop {{pc}} 4 + N of the others"),
    Case(M0, "dsb", 4, TRM0),
    Case(M0, "loop: subs r0,#1; bne loop", 4, TRM0),
    Case(M0PLUS, "adds r1,r2,r3", 1, TRM0PLUS),
    Case(M0PLUS, "muls r1,r2,r1", 1, TRM0PLUS),
    Case(M0PLUS, "lsls r1,r2,#3; cmp r1,#4", 2, TRM0PLUS),
    Case(M0PLUS, "ldr r1,[r6]", 2, TRM0PLUS),
    Case(M0PLUS, "ldrb r1,[r6]; adds r2,r1,r1", 3, TRM0PLUS),
    Case(M0PLUS, "ldr r1,[r6]; ldr r2,[r6,#4]", 4, TRM0PLUS),
    Case(M0PLUS, "str r1,[r6]", 2, TRM0PLUS),
    Case(M0PLUS, "ldm r6!,{r1,r2,r3}", 4, TRM0PLUS),
    Case(M0PLUS, "push {r1,r2,r3}; pop {r1,r2,r3}", 8, TRM0PLUS),
    Case(M0PLUS, "b 1f; 1:", 2, TRM0PLUS),
    Case(M0PLUS, "cmp r0,r0; beq 1f; nop; 1:", 3, TRM0PLUS),
    Case(M0PLUS, "cmp r0,r0; bne 1f; 1:", 2, TRM0PLUS),
    Case(M0PLUS, "bl leaf", 5, f"{TRM0PLUS}: bl 3, bx 2"),
    Case(M0PLUS, "adr r1,1f; mov pc,r1; .balign 4; 1:", 3, TRM0PLUS),
    Case(M0PLUS, "loop: subs r0,#1; bne loop", 3, TRM0PLUS),
    Case(M3, "mla r1,r2,r3,r4", 2, TRM3),
    Case(M3, "smull r1,r2,r3,r4", (3, 5), TRM3),
    Case(M3, "smlal r1,r2,r3,r4", (4, 7), TRM3),
    Case(M3, "sdiv r1,r2,r3", (2, 12), TRM3),
    Case(M3, "ldr r1,[r6]; nop.w", (2, 3), TRM3),
    Case(M3, "ldr r1,[r6]; ldr r2,[r7]; add r3,r3,r4", 4, f"{PAIRS}: 3 and the addition"),
    Case(M3, "ldr r1,[r6]; ldr r2,[r7]; ldr r3,[r7,#4]; add r4,r4,r5", 5,
         f"{PAIRS}: 4 and the addition"),
    Case(M3, "ldr r1,[r6,r0]; str r2,[r7,r0]; add r4,r4,r5", 4, f"{PAIRS}: 3 and the addition"),
    Case(M3, "ldr r1,[r6,r0]; str r1,[r7,#20]; add r4,r4,r5", 4, f"{PAIRS}: 3 and the addition",
         "jnk0le measured 2 for such a pair, which CoreMark agrees with"),
    Case(M3, "add r6,r8,r0; ldr r1,[r6]", 4, f"{PAIRS}: a cycle more for the address"),
    Case(M4, "add r1,r2,r3", 1, TRM4),
    Case(M4, "mla r1,r2,r3,r4; smull r1,r2,r3,r4; smlad r1,r2,r3,r4", 3, TRM4),
    Case(M4, "sxtb16 r1,r2; pkhbt r1,r2,r3; qadd r1,r2,r3; ssat r1,#8,r2", 4, TRM4),
    Case(M4, "udiv r1,r2,r0", 2, f"{DIVISION}: by zero"),
    Case(M4, "udiv r1,r2,r3", 3, f"{DIVISION}: the divisor has more bits"),
    Case(M4, "udiv r1,r9,r10", 12, f"{TRM4}: at most"),
    Case(M4, "ldr r1,[r6]; ldr r2,[r7]; add r3,r3,r4", 4, TRM4),
    Case(M4, "ldr r1,[r6]; add r2,r2,r1", 3, TRM4),
    Case(M4, "str r1,[r6]; add r3,r3,r4", 2, TRM4),
    Case(M4, "ldrd r1,r2,[r6]; strd r1,r2,[r6]", 6, TRM4),
    Case(M4, "ldm r6,{r1-r4}", 5, TRM4),
    Case(M4, "ldr.w r1,[r6,#1]; add r3,r3,r4", 5, f"{PARTS4}: a byte, a halfword and a byte"),
    Case(M4, "ldr.w r1,[r6,#2]; add r3,r3,r4", 4, f"{PARTS4}: two halfwords"),
    Case(M4, "ldrh.w r1,[r6,#1]; add r3,r3,r4", 4, f"{PARTS4}: two bytes"),
    Case(M4, "push {r1-r4}; pop {r1-r4}", 10, TRM4),
    Case(M4, "b 1f; 1:", 2, f"{TRM4}, 1 + P; {BRANCHES}: P is 1"),
    Case(M4, "cmp r0,r0; beq 1f; nop; 1:", 3, BRANCHES),
    Case(M4, "cmp r0,r0; bne 1f; 1:", 2, TRM4),
    Case(M4, "cbz r0,1f; nop; 1:", 2, BRANCHES),
    Case(M4, "bl leaf", (4, 8), f"{TRM4}: 1 + P twice, P from 1 to 3"),
    Case(M4, "adds r1,r2,r3; it eq; moveq r4,r5", 2, f"{TRM4}: it is folded"),
    Case(M4, "vadd.f32 s0,s1,s2; vmul.f32 s3,s4,s5", 2, FLOATS4),
    Case(M4, "vmla.f32 s0,s1,s2", 3, FLOATS4),
    Case(M4, "vdiv.f32 s0,s1,s2", 14, FLOATS4),
    Case(M4, "vldr s0,[r6]; vadd.f32 s1,s2,s3", 3, FLOATS4),
    Case(M4, "ldr r1,[r6]; str r2,[r7]; add r3,r3,r4", 3, J4),
    Case(M4, "str r1,[r6]; ldr r2,[r7]; add r3,r3,r4", 5, J4),
    Case(M4, "str r1,[r6,r0]; add r3,r3,r4", 3, J4),
    Case(M4, "ldr r1,[r6],#0; ldr r2,[r6],#0; add r3,r3,r4", 5, f"{J4}: not pipelined"),
    Case(M4, "loop: add r2,r2,r1; sub.w r0,r0,#1; cmp r0,#0; bne loop", 5, BRANCHES),
    Case(M4, ".balign 4; nop; loop: mul r2,r2,r1; sub.w r0,r0,#1; cmp r0,#0; bne loop", 6,
         BRANCHES),
    Case(M4, ".balign 4; nop; add.w r1,r2,r3; add.w r1,r2,r4; add.w r1,r2,r5; nop", 6,
         "compendium.i-0.nl, instruction-alignment (STM32L4): three that cross words",
         "a matter of the flash's interface, as the source says"),
    Case(M7, "eor.w r1,r2,r3; eor.w r4,r5,r8", 1, Q7),
    Case(M7, "adcs.w r1,r2,r1; adcs.w r1,r3,r1", 2, Q7),
    Case(M7, "add.w r1,r1,#1; eor.w r2,r1,r3", 1, f"{J7}: early to late in the same cycle"),
    Case(M7, "eor.w r1,r1,r2; eor.w r1,r1,r3", 2, J7),
    Case(M7, "movw r1,#1; movt r1,#2", 1, J7),
    Case(M7, "uxtb.w r1,r2; uxtb.w r3,r4", 2, J7),
    Case(M7, "add.w r1,r2,r3,ror #4; add.w r4,r5,r8,ror #4", 2, J7),
    Case(M7, "uxtb.w r1,r2; add.w r4,r5,r8,ror #4", 1, J7),
    Case(M7, "bfi r1,r2,#4,#8; add.w r4,r5,r8,ror #4", 2, J7),
    Case(M7, "pkhbt r1,r2,r3,lsl #16; add.w r4,r5,r8,ror #4", 2, J7),
    Case(M7, "rev.w r1,r1", 2, f"{J7}: reads early what is ready late"),
    Case(M7, "ldr.w r1,[r6]; nop.w; eor.w r2,r3,r1,ror #8; nop.w", 3,
         f"{J7}: an early operand waits a cycle more"),
    Case(M7, "smlad r1,r2,r3,r1; str.w r2,[r6]", 2, J7),
    Case(M7, "mul r1,r2,r3; mul r4,r5,r8", 2, J7),
    Case(M7, "mul r1,r1,r2", 2, f"{Q7}: a latency of 2"),
    Case(M7, "smlad r1,r2,r3,r1", 1, f"{J7}: accumulators are chained"),
    Case(M7, "smlal r1,r2,r3,r4", 1, Q7),
    Case(M7, "ldr.w r1,[r6]; add.w r2,r2,r3", 1, Q7),
    Case(M7, "ldr.w r1,[r6]; eor.w r2,r2,r1; eor.w r2,r2,r3; eor.w r2,r2,r4", 3,
         f"{J7}: a word is used in the next cycle"),
    Case(M7, "ldr.w r6,[r6]", 3, f"{Q7}: from data to address"),
    Case(M7, "ldr.w r1,[r6]; ldr.w r2,[r6,#4]", 1, f"{J7}: two banks"),
    Case(M7, "ldr.w r1,[r6]; ldr.w r2,[r6,#8]", 2, f"{J7}: the same bank",
         "banks of addresses are not known"),
    Case(M7, "str.w r1,[r6]; str.w r2,[r6,#4]", 2, J7),
    Case(M7, "ldr.w r1,[r6]; str.w r1,[r7]", 1, J7),
    Case(M7, "ldm r6,{r1-r4}", 2, J7),
    Case(M7, "ldrd r1,r2,[r6]", 1, J7),
    Case(M7, "ldr.w r1,[r6,#1]", 4, f"{J7}: 3 more where it crosses a word"),
    Case(M33, "adds r1,r2,r3; adds r4,r5,r5", 2, J33),
    Case(M33, "adds r1,r2,r3; nop", 1, J33),
    Case(M33, "add.w r1,r2,r3; nop.w", 2, J33),
    Case(M33, "ldr r1,[r6]; add.w r2,r2,r1", 3, f"{J33}: from a load to its use 2"),
    Case(M33, "ldr r1,[r6]; str r1,[r7]", 2, J33),
    Case(M33, "ldr r1,[r6]; smlad r2,r3,r4,r1; nop.w", 3, f"{J33}: an accumulator"),
    Case(M33, "ldm r6,{r1-r4}", 4, J33),
    Case(M33, "ldrd r1,r2,[r6]", 2, J33),
    Case(M33, "muls r1,r2,r1", 2, J33),
    Case(M33, "adds.w r1,r2,#0x1fc0", 2, f"{J33}: a shifted constant that sets flags"),
    Case(M33, "uadd8 r1,r1,r2", 2, f"{J33}: packed arithmetic is used 2 cycles later"),
    Case(M33, "vfma.f32 s0,s1,s2; vfma.f32 s3,s4,s5", 6, f"{J33}: no float follows for 2 cycles"),
    Case(M33, "vmul.f32 s0,s1,s2; vadd.f32 s3,s4,s0", 3, f"{J33}: a latency of 2"),
    Case(M33, "smlad r1,r2,r3,r1", 1, J33),
    Case(M33, "smlad r1,r1,r2,r3", 2, J33),
    Case(M33, "add.w r1,r2,r1,ror #4", 2, J33),
    Case(M33, "adds r1,r2,r3; it eq; moveq r4,r5", 2, J33),
    Case(M33, "adds r3,r4,r4; beq 1f; 1:", 1, f"{J33}: a branch that is not taken"),
    Case(M33, "loop: adds r1,r2,r3; subs r0,#1; bne loop", 4, J33),
    Case(M33, "loop: subs r0,#1; add r1,r1,r2; bne loop", 3, J33),
    Case(M33, "vfma.f32 s0,s1,s0", 3, J33),
)  # fmt: skip

HEAD = ".syntax unified; .text; .global start; .balign 16; start: b .; leaf: bx lr"
PROGRAM = """
 .balign 16
start_{name}:
{setup}
 .balign 16
{body}
end_{name}:
 b .
"""


def platform_of(core: str) -> Platform:
    """A platform without wait states that has the core."""
    return msgspec.structs.replace(load_platform("cortex-m33"), core_name=core)


def setup(platform: Platform, count: int) -> str:
    """What comes before a body: r6 and r7 point to memory, r6 to its own address; r0 counts.

    Args:
        platform: says where the memory is.
        count: in r0.
    """
    ram, isa = platform.ram.start, platform.core.isa
    lines = [f"ldr r3,={ram + 8192}", "mov sp,r3", f"ldr r6,={ram + 4096}", "mov r7,r6"]
    lines += ["str r6,[r6]", "mov r8,r6"]
    if isa.has("fpu"):  # CPACR
        lines += ["ldr r5,=0xe000ed88", "ldr r4,=0xf00000", "str r4,[r5]", "dsb", "isb"]
    if not isa.is_armv6m:
        lines += ["mov r9,#0xf0000000", "mov r10,#1"]
    lines += ["movs r1,#1", "movs r2,#2", "ldr r3,=1000000", "movs r4,#4", "movs r5,#5"]
    return "\n".join([*lines, f"movs r0,#{count}", "b 9f", ".ltorg", "9:"])


def measure(core: str) -> dict[Case, float]:
    """Cycles of all bodies of a core by its timing model."""
    cases = [case for case in CASES if case.core == core]
    platform = platform_of(core)
    parts = [HEAD]
    for number, case in enumerate(cases):
        parts += [_program(platform, case, f"{number}_{times}", times) for times in RUNS]
    content, labels = _assembled(platform, "\n".join(parts).replace(";", "\n") + "\n")
    found = {}
    with VirtualDevice(platform) as device:
        device.write(platform.flash.start, content)
        for number, case in enumerate(cases):
            few, many = (
                device.execute(labels[f"start_{number}_{times}"], labels[f"end_{number}_{times}"])
                for times in RUNS
            )
            found[case] = ((many.cycles or 0) - (few.cycles or 0)) / (RUNS[1] - RUNS[0])
    return found


def _program(platform: Platform, case: Case, name: str, times: int) -> str:
    is_loop = "loop:" in case.body
    body = case.body.replace("loop", f"loop_{name}") if is_loop else "; ".join([case.body] * times)
    return PROGRAM.format(name=name, setup=setup(platform, times if is_loop else 0), body=body)


def _assembled(platform: Platform, text: str) -> tuple[bytes, dict[str, int]]:
    toolchain = get_toolchain("zig", platform.core)
    objects = toolchain.compile([SourceText("cases.S", text)])
    base = platform.flash.start
    script = f"ENTRY(start)\nSECTIONS {{ . = {base:#x}; .text : {{ KEEP(*(.text*)) }} }}\n"
    elf = ELFFile(io.BytesIO(toolchain.link(objects, script).read_bytes()))
    table, code = elf.get_section_by_name(".symtab"), elf.get_section_by_name(".text")
    assert isinstance(table, SymbolTableSection) and code is not None
    labels = {symbol.name: symbol["st_value"] & ~1 for symbol in table.iter_symbols()}
    return code.data(), labels


def is_right(case: Case, cycles: float) -> bool:
    """Whether the cycles are what the document states."""
    least, most = case.cycles if isinstance(case.cycles, tuple) else (case.cycles, case.cycles)
    return least <= cycles <= most


def documented(case: Case) -> str:
    """What the document states, e.g. "2" or "2 to 12"."""
    stated = case.cycles if isinstance(case.cycles, tuple) else (case.cycles,)
    return " to ".join(f"{one:g}" for one in stated)


def rows(cores: list[str]) -> Iterator[dict[str, Any]]:
    """All cases of some cores."""
    for core in cores:
        for case, cycles in measure(core).items():
            yield {
                "core": core,
                "body": case.body,
                "cycles": cycles,
                "documented": documented(case),
                "source": case.source,
                "right": is_right(case, cycles),
                "differs": case.differs,
            }


def main() -> int:
    """Print the table; 1 where a model differs from a document without a reason."""
    known = [M0, M0PLUS, M3, M4, M7, M33]
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cores", nargs="+", default=known, choices=known)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the lines")
    arguments = parser.parse_args()
    done = []
    for row in rows(arguments.cores):
        done.append(row)
        note = "" if row["right"] else f"  DIFFERS: {row['differs']}"
        print(
            f"{row['core']:14} {row['cycles']:5g} {row['documented']:>8}  {row['body']:60} "
            f"{row['source']}{note}",
            flush=True,
        )
    if arguments.json:
        arguments.json.write_text(json.dumps({"rows": done}, indent=1) + "\n", encoding="utf-8")
    return int(any(not row["right"] and not row["differs"] for row in done))


if __name__ == "__main__":
    sys.exit(main())
