"""Models that are planted are found again: the numbers, or at least the times of other programs."""

from __future__ import annotations

import random
from contextlib import ExitStack
from typing import Any

import msgspec
import numpy as np
import pytest

from covp.chip.platform_file import load_platform
from covp.device.rtl.device import RtlDevice
from covp.device.timing.model import TimingFile, load_file, load_timing, make_model
from covp.device.timing.trace import cost
from covp.evaluation.calibration.calibrate import calibrate
from covp.evaluation.calibration.costs import Costs, PreparedProgram, classifier
from covp.evaluation.calibration.fit import fit
from covp.evaluation.calibration.measure import (
    NO_TARGETS,
    Measured,
    Traces,
    link,
    targets_of,
)
from covp.evaluation.calibration.programs import hazard_programs, random_program
from tests.device.rtl.conftest import need_rtl

LEFT_OUT = 8


def measured(platform_name: str, truth: TimingFile, count: int) -> list[Measured]:
    """Programs as a core would take them that the model is true of; the last are left out."""
    platform, source = load_platform(platform_name), random.Random(1)
    programs = hazard_programs(platform.core)
    programs += [random_program(platform.core, source) for _ in range(count + LEFT_OUT)]
    image, model = link(platform, programs), make_model("truth", truth)
    found = []
    for program, entries in zip(programs, image.entries, strict=True):
        traces = Traces(platform, image, entries)
        few, many = traces[targets_of(truth)]
        found.append(Measured(program, traces, cost(many, model) - cost(few, model)))
    return found


def errors(programs: list[Measured], model: TimingFile) -> np.ndarray[Any, Any]:
    costs = Costs([PreparedProgram(one, classifier(model)) for one in programs])
    found: np.ndarray[Any, Any] = np.abs(costs.time(model).cycles / costs.measured - 1)
    return found


@pytest.mark.costly
def test_costs_are_those_of_the_trace():
    """Also of a candidate of which only the blocks with some classes are timed again."""
    truth = load_file("cv32e40p")
    programs = measured("cv32e40p", truth, 0)[::7]
    assert errors(programs, truth).max() == 0
    costs = Costs([PreparedProgram(one, classifier(truth)) for one in programs])
    base, ibex = costs.time(truth), load_file("ibex")
    pairs = [one.traces[NO_TARGETS] for one in programs]
    assert list(costs.change(base, ibex, None).cycles) == [
        cost(many, load_timing("ibex")) - cost(few, load_timing("ibex")) for few, many in pairs
    ]
    slower = msgspec.structs.replace(truth, cycles={**truth.cycles, "mulh": 9, "load": 3})
    some = costs.change(base, slower, frozenset({"mulh", "load"}))
    assert list(some.cycles) == list(costs.time(slower).cycles) != list(base.cycles)


RISCV = {
    "cycles": {"jump": 3, "jump_register": 4, "relink": 4, "mul": 3, "mulh": 7, "div": 12,
               "csr": 2, "store": 2, "shift": 2},
    "latency": {"load": 2, "mul": 1},
    "taken": {"branch": 3},
    "operands": {"div": {"quotient_bits": 1, "zero_divisor": -4}},
}  # fmt: skip


@pytest.mark.slow
def test_a_core_that_is_unlike_the_start():
    truth = msgspec.convert({"source": "planted", "instructions": "rv32", **RISCV}, TimingFile)
    programs = measured("riscv32", truth, 6)
    found = fit(programs[:-LEFT_OUT], [load_file("rv32")]).model
    assert errors(programs[-LEFT_OUT:], found).max() == 0
    for key in ("cycles", "latency", "taken", "operands"):
        ours = {name: value for name, value in getattr(found, key).items() if name != "fdiv"}
        assert ours == getattr(truth, key), key


M4 = {
    "cycles": {"load": 3, "load_narrow": 3, "pair": 4, "pop_pc": 5, "jump": 3, "jump_register": 4,
               "call": 4, "div": 5, "vdiv": 20, "vmla": 2, "mla": 2, "mull": 3, "system": 2},
    "latency": {"vadd": 1, "mul": 1},
    "taken": {"branch": 2},
    "pipelined_accesses": False,
    "after_store": 0,
    "operands": {},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("platform", "core", "changes", "start"),
    [
        ("cortex-m4", "m4", M4, "m4"),
        ("cv32e40p", "cv32e40p", {}, "rv32"),
        ("ibex", "ibex", {"taken": {"branch": 3}, "latency": {"load": 2}}, "rv32"),
        ("riscv32", "picorv32", {}, "rv32"),
        ("ibex", "ibex", {"taken": {"branch": 3}, "targets": 1, "targets_later": True}, "rv32"),
    ],
)
def test_cores_that_are_known(platform, core, changes, start):
    truth = msgspec.structs.replace(load_file(core), **changes)
    programs = measured(platform, truth, 16)
    found = fit(programs[:-LEFT_OUT], [load_file(start)]).model
    assert errors(programs[-LEFT_OUT:], found).max() <= 0.005


@pytest.mark.slow
@pytest.mark.parametrize(
    ("core", "worst"), [("ibex", 0.02), ("ibex-small", 0.02), ("picorv32", 0.02)]
)
def test_rtl_from_a_generic_start(core, worst):
    need_rtl(core)
    platform = load_platform(core)
    with RtlDevice(platform) as device:
        found = calibrate(platform, device, "rv32")
    assert found.worst_error <= worst, (found.mean_error, found.worst)


@pytest.mark.slow
@pytest.mark.parametrize("core", ["ibex", "cv32e40p", "picorv32"])
def test_rtl_with_wait_states_from_a_generic_start(core):
    """Fetches, waits for data and jumps are found that the start knows nothing of."""
    need_rtl(core)
    platform = load_platform(core)
    assert load_file("rv32").fetch is None
    with ExitStack() as stack:
        others = [
            (one, stack.enter_context(RtlDevice(one)))
            for one in (platform.with_waits(*waits) for waits in ((1, 0), (3, 0), (0, 1), (2, 2)))
        ]
        device = stack.enter_context(RtlDevice(platform))
        found = calibrate(platform, device, "rv32", others=others)
    assert found.worst_error <= 0.001
    assert len(found.by_memory) == 4 and max(found.by_memory.values()) <= 0.005
    assert found.model.fetch == load_file(core).fetch or core == "cv32e40p"  # which lingers
    stated = make_model("found", found.model).errors
    assert stated.keys() == {"zero wait states", *found.by_memory}
