"""Timing models against the RTL of their cores: hazards, random programs, wait states."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from covp.calibration.programs import LONG, LoopProgram, assembly, hazard_programs, random_program
from covp.cores import find_core
from covp.device.base import Stop
from covp.device.virtual import VirtualDevice
from covp.platform_file import Platform, WaitStates, load_platform
from covp.rtl.device import RtlDevice
from tests.conftest import load
from tests.rtl.conftest import need_rtl

EXACT = ["cv32e40p", "ibex", "ibex-small"]
CORE = find_core("cv32e40p")
NAMES = list(dict.fromkeys(one.name for one in hazard_programs(CORE)))
SETTINGS = settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


def platform_of(core: str, fetch: int = 0, data: int = 0) -> Platform:
    platform, waits = load_platform(core), WaitStates(fetch, data)
    memory = (msgspec.structs.replace(region, wait_states=waits) for region in platform.memory)
    return msgspec.structs.replace(platform, memory=tuple(memory))


def programs(misaligned: bool) -> st.SearchStrategy[LoopProgram]:
    core = replace(CORE, allows_misaligned=misaligned)
    return st.randoms(use_true_random=False).map(lambda source: random_program(core, source))


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
@given(program=programs(misaligned=True))
def test_random_programs(program):
    need_rtl("cv32e40p")
    ours, theirs = both("cv32e40p", program)
    assert abs(ours - theirs) <= 0.01 * theirs


@pytest.mark.slow
@pytest.mark.parametrize("core", EXACT)
@settings(SETTINGS, max_examples=500)
@given(program=programs(misaligned=True))
def test_many_random_programs(core, program):
    need_rtl(core)
    ours, theirs = both(core, program)
    assert abs(ours - theirs) <= 0.02 * theirs


@pytest.mark.slow
@pytest.mark.parametrize("core", EXACT)
@settings(SETTINGS, max_examples=40)
@given(program=programs(misaligned=False), waits=st.sampled_from([(1, 0), (0, 1), (1, 1), (2, 2)]))
def test_random_programs_with_wait_states(core, program, waits):
    """Bodies full of divisions and branches."""
    need_rtl(core)
    ours, theirs = both(core, program, *waits)
    assert abs(ours - theirs) <= 0.02 * theirs
