"""SERV: its timing model takes the RTL's cycles exactly, in programs and in a small network.

Models such as toycar take it minutes in simulation: a multiplication is a function there.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

import covp
from covp.chip.cores import find_core
from covp.evaluation.calibration.programs import LoopProgram, hazard_programs, random_program
from tests.accelerator.test_offload import network
from tests.device.rtl.conftest import need_rtl
from tests.device.rtl.test_timing_models import both

CORE = find_core("serv")
# FENCE loads from somewhere: this SERV takes it for a load
HAZARDS = [program for program in hazard_programs(CORE) if program.name != "fence"]


def chance(number: int) -> LoopProgram:
    return random_program(CORE, random.Random(number))


def check(program: LoopProgram, fetch: int = 0, data: int = 0) -> None:
    need_rtl("serv")
    ours, theirs = both("serv", program, fetch, data)
    assert ours == theirs


@pytest.mark.slow
@pytest.mark.parametrize("program", HAZARDS, ids=lambda program: program.name)
def test_hazards(program):
    check(program)


@pytest.mark.slow
@pytest.mark.parametrize("waits", [(0, 0), (1, 0), (0, 1), (2, 2)])
def test_random_programs(waits):
    for number in range(3):
        check(chance(number), *waits)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(100))
def test_many_random_programs(number):
    check(chance(number))


@pytest.mark.slow
def test_a_network():
    need_rtl("serv")
    program = covp.compile(network(), "serv")
    x = np.random.default_rng(0).integers(-128, 128, (1, 8, 6, 3)).astype(np.int8)
    counts = []
    for device in ("rtl", "virtual"):
        with covp.Session("serv", device=device) as session:
            np.testing.assert_array_equal(session.load(program).run(x), program.reference([x])[0])
            profile = session.profile()
            layers = [(entry.instructions, entry.cycles) for entry in profile.layers]
            counts.append((profile.instructions, profile.cycles, layers))
    assert counts[0] == counts[1]
