"""The cycles of what compilers make are those of the cores' RTL."""

from __future__ import annotations

import random

import pytest

from covp.chip.platform_file import load_platform
from covp.device.rtl.device import RtlDevice
from covp.device.virtual import VirtualDevice
from tests.conftest import load
from tests.device.rtl.compiled_programs import compiled_program
from tests.device.rtl.conftest import need_rtl
from tests.device.rtl.test_timing_models import EXACT, platform_of

WAITS = ((0, 0), (1, 0), (0, 1), (1, 1), (2, 2))
WORST = 0.001
PROGRAMS, MANY_PROGRAMS = 12, 100


def cycles_of(core: str, text: str, waits: tuple[int, int]) -> tuple[int, int]:
    """Cycles by the timing model and by the RTL of a program from ``start`` to ``end``."""
    platform, stops = platform_of(core, *waits), []
    for make in (VirtualDevice, RtlDevice):
        loaded = load(core, text, device=make(platform))  # type: ignore[arg-type]
        with loaded.device as device:
            stops.append(device.execute(loaded.labels["start"], loaded.labels["end"]))
    virtual, rtl = stops
    assert virtual.instructions == rtl.instructions
    assert virtual.cycles is not None and rtl.cycles is not None
    return virtual.cycles, rtl.cycles


def compiled_cycles(core: str, seed: int, waits: tuple[int, int]) -> tuple[int, int]:
    """Cycles as of `cycles_of`, of what compilers make."""
    platform = load_platform(core)
    text = compiled_program(random.Random(seed), platform.ram.start, platform.core.isa.has("c"))
    return cycles_of(core, text, waits)


@pytest.mark.slow
@pytest.mark.parametrize("core", EXACT)
@pytest.mark.parametrize("waits", WAITS)
def test_what_compilers_make(core, waits):
    check_compiled(core, waits, range(PROGRAMS))


@pytest.mark.slow
@pytest.mark.parametrize("core", EXACT)
@pytest.mark.parametrize("waits", WAITS)
def test_much_of_what_compilers_make(core, waits):
    check_compiled(core, waits, range(PROGRAMS, MANY_PROGRAMS))


def check_compiled(core: str, waits: tuple[int, int], seeds: range) -> None:
    need_rtl(core)
    for seed in seeds:
        ours, theirs = compiled_cycles(core, seed, waits)
        assert abs(ours - theirs) <= WORST * theirs, (seed, ours, theirs)


TWO_ENDS = """
start:
 li s0, 500
 li a0, 77
 li a1, 0x80002000
 sw a1, 0(a1)
 mv a3, a1
 mv a5, a1
 .balign 16
 {enter}
{skew}
top:
 c.lw a5, 0(a3)
 c.beqz a5, end
mid:
 c.lw a4, 8(a5)
 .option push
 .option norvc
 beq a4, a0, end
 addi s0, s0, -1
 bne s0, x0, top
 .option pop
 .balign 8
end:
 j end
"""


@pytest.mark.parametrize("core", [core for core in EXACT if core != "picorv32"])
@pytest.mark.parametrize("enter", ["j mid", ".option norvc; nop; .option rvc"])
@pytest.mark.parametrize("skew", ["", "c.nop"])
def test_a_past_of_each_entry(core, enter, skew):
    """A block in a loop is first met after a jump into the middle, or after what falls into it."""
    need_rtl(core)
    text = TWO_ENDS.format(enter=enter, skew=skew)
    ours, theirs = cycles_of(core, text, (1, 0))
    assert abs(ours - theirs) <= 1


SELF_LOADS = {
    "short": "c.lw a5, 0(a5); c.nop; c.addi a4, 1; c.nop",
    "long": "c.nop; .option norvc; lw a5, 0(a5); .option rvc; c.addi a4, 1; c.nop",
    "narrow": "c.mv a4, a5; lbu a4, 0(a4); c.nop",
    "call": "c.nop; .option norvc; la ra, leaf; jalr ra, 0(ra); .option rvc; c.nop; leaf:",
}
"""Of them the next instruction may come so late that they stay in the decoder, and wait there for
their own results."""
SELF_LOAD = """
start:
 li a5, {data}
 li s0, 500
 sw a5, 0(a5)
 .balign 16
{skew}
top:
 {body}
 .option norvc
 addi s0, s0, -1
 bne s0, x0, top
 .option rvc
 .balign 8
end:
 j end
"""


@pytest.mark.parametrize("name", SELF_LOADS)
@pytest.mark.parametrize("skew", ["", "c.nop"])
def test_loads_into_their_own_base(cv32e40p, name, skew):
    lines = SELF_LOADS[name].replace("; ", "\n ").replace(" leaf:", "leaf:")
    data = load_platform(cv32e40p).ram.start
    text = SELF_LOAD.format(body=lines, skew=skew, data=data)
    for waits in WAITS:
        ours, theirs = cycles_of(cv32e40p, text, waits)
        assert abs(ours - theirs) <= 2, waits


ACROSS_JUMPS = {
    "mulh": "mulh a1, a2, a3; jal ra, leaf; jal ra, leaf",
    "divisions": "jal ra, slow; jal ra, leaf; jal ra, leaf",
    "loads": "jal ra, loads; jal ra, longer",
    "self_load": "c.bnez a4, 1f; c.mv a0, s1; c.lw a0, 56(a0); mulh a1, a2, a3; j 1f; 1:",
    "self_load_long": "mv a4, s1; lw a4, 28(a4); mulh a4, a2, a3; jal ra, leaf",
    "two_branches": "c.lw a3, 0(s1); bne a4, x0, 1f; c.lw a5, 4(s1); bne a5, x0, 1f; c.nop; 1:",
}
"""What still executes when the target of a jump is there, which may be a jump itself."""
ACROSS = """
start:
 li s1, {data}
 li s0, 300
 li a3, 5
 j top
 .balign 16
{skew}
top:
 {body}
 addi s0, s0, -1
 bnez s0, top
 j end
slow:
 rem a4, a5, a3
 divu a5, a4, a3
leaf:
 ret
longer:
 c.nop
 c.nop
 ret
loads:
 lw a5, 8(s1)
 lh a0, 26(s1)
 ret
 .balign 8
end:
 j end
"""


@pytest.mark.parametrize("name", ACROSS_JUMPS)
@pytest.mark.parametrize("skew", ["", "c.nop"])
def test_what_goes_on_across_a_jump(cv32e40p, name, skew):
    body, data = ACROSS_JUMPS[name].replace("; ", "\n "), load_platform(cv32e40p).ram.start
    for waits in WAITS:
        ours, theirs = cycles_of(cv32e40p, ACROSS.format(body=body, skew=skew, data=data), waits)
        assert abs(ours - theirs) <= 3, waits


TO_NEXT = {
    "taken": "beq x0, x0, 1f; 1:",
    "long_taken": ".option norvc; bge x0, x0, 1f; 1: .option rvc",
    "untaken": "bltu a3, x0, 1f; 1:",
    "every_second": "andi a4, s0, 1; c.bnez a4, 1f; 1: c.nop",
    "row": "beq x0, x0, 1f; 1: bne a3, x0, 1f; 1: blt a3, x0, 1f; 1: bgeu a3, x0, 1f; 1:",
}


@pytest.mark.parametrize("name", TO_NEXT)
@pytest.mark.parametrize("core", EXACT)
def test_branches_to_the_next_instruction(core, name):
    need_rtl(core)
    body = TO_NEXT[name].replace("; ", "\n ").replace(": ", ":\n ")
    data = load_platform(core).ram.start
    for waits in WAITS:
        ours, theirs = cycles_of(core, ACROSS.format(body=body, skew="", data=data), waits)
        assert abs(ours - theirs) <= 4, waits


VEXRISCV = [
    "vexriscv-lite",
    *(
        pytest.param(core, marks=pytest.mark.slow)  # each takes 20 seconds to build
        for core in ("vexriscv-full", "vexriscv-cfu", "vexriscv-imac")
    ),
]
STANDING = {
    "stored": "sh a3, 4(s1); lh a4, 4(s1); addi a5, a5, 1; addi a5, a5, 1",
    "stored_before": "sw a3, 4(s1); addi a5, a5, 1; lw a4, 4(s1); addi a5, a5, 1",
    "stored_long_before": "sw a3, 4(s1); addi a5, a5, 1; addi a5, a5, 1; lw a4, 4(s1)",
    "other_stored": "sb a3, 4(s1); lb a4, 5(s1); addi a5, a5, 1; addi a5, a5, 1",
    "stored_and_waits": "sw a3, 4(s1); lw a4, 4(s1); addi a5, a5, 1; lw a0, 8(s1); addi a0, a0, 1",
    "stored_in_a_leaf": "jal ra, leaf",
    "late_redirect": "beq x0, x0, 1f; lw a4, 8(s1); addi a4, a4, 1; 1: nop",
    "load_multiply": "lw a5, 8(s1); mul a4, a2, a3; sw a5, 12(s1); addi a5, a5, 1",
    "loads": "lw a5, 8(s1); lw a4, 4(s1); add a5, a5, a4; sw a5, 12(s1); sw a5, 16(s1)",
    "overwritten": "lw a5, 8(s1); addi a5, a3, 1; addi a4, a5, 1",
}
"""What is done again, or waits, in a pipeline whose stages stand still together."""
STANDS = """
start:
 li s1, {data}
 li s0, 300
 li a2, 77
 li a3, 5
 j top
leaf:
 sw a3, 4(s1)
 lw a4, 4(s1)
 ret
 lw a4, 8(s1)
 addi a4, a4, 1
 .balign 32
top:
 {body}
 addi s0, s0, -1
 bnez s0, top
 j end
 .balign 32
end:
 j end
"""


@pytest.mark.costly
@pytest.mark.parametrize("name", STANDING)
@pytest.mark.parametrize("core", VEXRISCV)
def test_what_stands_still(core, name):
    """To the cycle, but for the first fetches of lines, some of which wait with something else."""
    need_rtl(core)
    body, data = (
        STANDING[name].replace("; ", "\n ").replace("1: ", "1:\n "),
        load_platform(core).ram.start,
    )
    waits = WAITS if core == "vexriscv-lite" else WAITS[:1]
    for fetch, data_waits in waits:
        ours, theirs = cycles_of(core, STANDS.format(body=body, data=data), (fetch, data_waits))
        assert abs(ours - theirs) <= 40 * (1 + fetch + data_waits), (
            fetch,
            data_waits,
            ours,
            theirs,
        )
