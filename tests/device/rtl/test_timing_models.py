"""Timing models against the RTL of their cores: hazards, random programs, wait states."""

from __future__ import annotations

import random
from dataclasses import replace

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from covp.chip.cores import find_core
from covp.chip.platform_file import Platform, WaitStates, load_platform
from covp.device.rtl.device import RtlDevice
from covp.device.stop import Stop
from covp.device.virtual import VirtualDevice
from covp.evaluation.calibration import riscv
from covp.evaluation.calibration.programs import (
    LONG,
    LoopProgram,
    assembly,
    hazard_programs,
    random_program,
)
from tests.conftest import load
from tests.device.rtl.conftest import need_rtl
from tests.device.rtl.memory_programs import memory_program

EXACT = [  # each Ibex takes half a minute to build
    "cv32e40p",
    *(pytest.param(core, marks=pytest.mark.slow) for core in ("ibex", "ibex-small")),
    "picorv32",
]
CORE = find_core("cv32e40p")
NAMES = list(dict.fromkeys(one.name for one in hazard_programs(CORE)))
SETTINGS = settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


def platform_of(core: str, fetch: int = 0, data: int = 0) -> Platform:
    platform, waits = load_platform(core), WaitStates(fetch, data)
    memory = (msgspec.structs.replace(region, wait_states=waits) for region in platform.memory)
    return msgspec.structs.replace(platform, memory=tuple(memory))


SEEDS = st.integers(0, 1 << 32)


def random_mix(core: str, seed: int, misaligned: bool = True) -> LoopProgram:
    """A program of mixed instructions, with misaligned accesses where the core allows them."""
    own = find_core(core)
    chosen = replace(own, allows_misaligned=misaligned and own.allows_misaligned)
    return random_program(chosen, random.Random(seed))


def both(core: str, program: LoopProgram, fetch: int = 0, data: int = 0) -> tuple[int, int]:
    """Cycles by the timing model and by the RTL of a program; instructions are the same."""
    stops: list[Stop] = []
    text = assembly(find_core(core), program, 0x80002000)
    for make in (VirtualDevice, RtlDevice):
        loaded = load(core, text, device=make(platform_of(core, fetch, data)))  # type: ignore[arg-type]
        with loaded.device as device:
            stops.append(device.execute(loaded.labels["long"], loaded.labels["end"]))
    virtual, rtl = stops
    assert virtual.instructions == rtl.instructions
    assert virtual.cycles is not None and rtl.cycles is not None
    return virtual.cycles, rtl.cycles


def mix_cycles(core: str, seed: int, waits: tuple[int, int]) -> tuple[int, int]:
    """Cycles as of `both`, of mixed instructions."""
    return both(core, random_mix(core, seed), *waits)


def check_hazard(core: str, name: str) -> None:
    for program in hazard_programs(find_core(core)):
        if program.name == name:
            ours, theirs = both(core, program)
            assert abs(ours - theirs) < LONG / 5, (ours, theirs)


@pytest.mark.parametrize("name", NAMES)
def test_hazards(name, cv32e40p):
    check_hazard(cv32e40p, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("core", EXACT[1:])
def test_hazards_of_other_cores(core, name):
    need_rtl(core)
    check_hazard(core, name)


@SETTINGS
@given(seed=SEEDS)
def test_random_programs(seed):
    need_rtl("cv32e40p")
    ours, theirs = both("cv32e40p", random_mix("cv32e40p", seed))
    assert abs(ours - theirs) <= 0.01 * theirs


@pytest.mark.slow
@pytest.mark.parametrize("core", EXACT)
@settings(SETTINGS, max_examples=500)
@given(seed=SEEDS)
def test_many_random_programs(core, seed):
    need_rtl(core)
    ours, theirs = both(core, random_mix(core, seed))
    assert abs(ours - theirs) <= 0.02 * theirs


@pytest.mark.slow
@pytest.mark.parametrize("core", EXACT)
@settings(SETTINGS, max_examples=40)
@given(seed=SEEDS, waits=st.sampled_from([(1, 0), (0, 1), (1, 1), (2, 2)]))
def test_random_programs_with_wait_states(core, seed, waits):
    """Bodies full of divisions and branches."""
    need_rtl(core)
    ours, theirs = both(core, random_mix(core, seed, misaligned=False), *waits)
    assert abs(ours - theirs) <= 0.02 * theirs


WAITS = ((0, 0), (1, 1), (2, 2))


def memory_cycles(
    core: str, seed: int, waits: tuple[int, int], everywhere: bool | None = None
) -> tuple[int, int]:
    """Cycles as of `both`, of look-ups in tables and misaligned accesses.

    ``everywhere``: RAM has the wait states, too, not only flash; None: with even seeds.
    """
    platform = platform_of(core, *waits)
    if not (seed % 2 == 0 if everywhere is None else everywhere):
        memory = (
            msgspec.structs.replace(one, wait_states=WaitStates(0, 0)) if one.kind == "ram" else one
            for one in platform.memory
        )
        platform = msgspec.structs.replace(platform, memory=tuple(memory))
    source, cycles = random.Random(seed), []
    text = memory_program(find_core(core), source, platform.ram.start)
    for make in (VirtualDevice, RtlDevice):
        loaded = load(core, text, device=make(platform))  # type: ignore[arg-type]
        with loaded.device as device:
            cycles.append(device.execute(loaded.labels["start"], loaded.labels["end"]).cycles)
    ours, theirs = (one or 0 for one in cycles)
    return ours, theirs


@pytest.mark.costly
@pytest.mark.parametrize("core", ["cv32e40p", "picorv32"])
@settings(SETTINGS, max_examples=10)
@given(seed=SEEDS, waits=st.sampled_from(WAITS), everywhere=st.booleans())
def test_tables_and_misaligned_accesses(core, seed, waits, everywhere):
    need_rtl(core)
    ours, theirs = memory_cycles(core, seed, waits, everywhere)
    assert abs(ours - theirs) <= 0.001 * theirs


@pytest.mark.slow
@pytest.mark.parametrize("core", EXACT)
@settings(SETTINGS, max_examples=100)
@given(seed=SEEDS, waits=st.sampled_from(WAITS), everywhere=st.booleans())
def test_many_tables_and_misaligned_accesses(core, seed, waits, everywhere):
    need_rtl(core)
    ours, theirs = memory_cycles(core, seed, waits, everywhere)
    assert abs(ours - theirs) <= 0.001 * theirs


CROSSINGS = {
    "load_jump": "lw a1,0(s1); j 1f; nop; 1:; nop",
    "store_jump_load": "sw a1,0(s1); j 1f; nop; 1:; lw a1,0(s1)",
    "store_return": "jal ra,2f; j 3f; 2:; sw a1,0(s1); ret; 3:",
    "load_taken": "lw a1,0(s1); beq x0,x0,1f; nop; 1:; lw a2,0(s1)",
    "load_untaken": "lw a1,0(s1); bne x0,x0,1f; lw a2,0(s1); 1:; nop",
    "loads_stores": "lw a1,0(s1); lw a2,0(s1); sw a1,0(s1); sw a2,0(s1); lw a1,0(s1)",
    "load_chain": "sw s1,0(s1); lw t3,0(s1); lw t3,0(t3); lw t3,0(t3)",
    "mulh_jump": "mulh a1,a2,a3; j 1f; 1:; nop",
    "mulh_call": "mulh a1,a2,a3; jal ra,leaf@",
    "load_mulh": "lw a2,0(s1); mulh a1,a2,a3; lw a1,0(s1)",
    "div_jump": "li a2,7; div a3,a1,a2; j 1f; 1:",
    "div_overflow": "li a1,-2147483648; li a2,-1; div a3,a1,a2; rem a3,a1,a2",
    "misaligned": "lw a1,1(s1); lw a2,6(s1); sw a1,11(s1); sh a1,3(s1)",
    "inner_loop": "li t3,5; 1:; lb a1,0(s1); lb a2,4(s1); mul a1,a1,a2; add a4,a4,a1; "
    "addi t3,t3,-1; bnez t3,1b",
    "short_and_wide": "c.add a1,a2; add a1,a2,a3; c.add a1,a2; c.add a4,a2; add a3,a2,a1; c.nop",
    "jump_table": "la t1,1f; andi t3,s0,1; slli t3,t3,1; add t1,t1,t3; jr t1; 1:; c.nop; c.nop",
    "taken_to_short": "beq x0,x0,1f; c.nop; add a1,a2,a3; 1:; c.nop",
    "taken_to_long": "beq x0,x0,1f; c.nop; add a1,a2,a3; 1:; add a1,a2,a3; c.nop",
    "to_zero": "lw x0,0(s1); add a1,x0,x0; lw a1,0(s1); sw a1,4(s1)",
}
"""What goes on across a jump, and what fetches meanwhile hide."""


@pytest.mark.parametrize("name", CROSSINGS)
def test_hazards_with_wait_states(name, cv32e40p):
    check_waits(cv32e40p, name)


@pytest.mark.parametrize("name", ["taken_to_short", "taken_to_long"])
def test_mistaken_fetches(name):
    """The word after a branch, whose second half is taken for the target's first."""
    need_rtl("picorv32")
    check_waits("picorv32", name)


@pytest.mark.parametrize("last", ["beq x0, x0, end", "jal x0, end", "la t1, end; jr t1"])
@pytest.mark.parametrize("core", EXACT)
def test_what_leads_to_the_stop(core, last):
    """The jump to the stop takes its time, and the wait for its target: what the entry's is not."""
    need_rtl(core)
    lines = last.replace("; ", "\n ")
    text = f"start:\n nop\n nop\n {lines}\n nop\n nop\n.balign 8\nend:\n j end\n"
    for waits in WAITS:
        platform, cycles = platform_of(core, *waits), []
        for make in (VirtualDevice, RtlDevice):
            loaded = load(core, text, device=make(platform))  # type: ignore[arg-type]
            with loaded.device as device:
                stop = device.execute(loaded.labels["start"], loaded.labels["end"])
                cycles.append((stop.instructions, stop.cycles))
        assert cycles[0] == cycles[1], waits


@pytest.mark.slow
@pytest.mark.parametrize("name", CROSSINGS)
@pytest.mark.parametrize("core", EXACT[1:])
def test_hazards_with_wait_states_of_other_cores(core, name):
    need_rtl(core)
    if name == "misaligned" and not find_core(core).allows_misaligned:
        return
    check_waits(core, name)


def check_waits(core: str, name: str) -> None:
    """Within half a cycle a round."""
    body = tuple(CROSSINGS[name].split("; "))
    for is_skewed in (False, True):
        program = LoopProgram(name, body, riscv.VALUES, is_skewed)
        for waits in ((0, 0), (1, 0), (0, 1), (1, 1), (2, 2)):
            ours, theirs = both(core, program, *waits)
            assert abs(ours - theirs) < LONG / 2, (waits, is_skewed, ours, theirs)
