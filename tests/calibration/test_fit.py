"""Models that are planted are found again: the numbers, or at least the times of other programs."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import numpy as np

from covp.calibration.costs import Costs, Prepared, classifier
from covp.calibration.fit import fit
from covp.calibration.image import link
from covp.calibration.measure import Measured, record
from covp.calibration.programs import hazard_programs, random_program
from covp.platform_file import load_platform
from covp.timing.model import ModelFile, load_file, load_timing, make_model
from covp.timing.trace import cost

LEFT_OUT = 8


def measured(platform_name: str, truth: ModelFile, count: int) -> list[Measured]:
    """Programs as a core would take them that the model is true of; the last are left out."""
    platform, source = load_platform(platform_name), random.Random(1)
    programs = hazard_programs(platform.core)
    programs += [random_program(platform.core, source) for _ in range(count + LEFT_OUT)]
    image, model = link(platform, programs), make_model("truth", truth)
    found = []
    for program, entries in zip(programs, image.entries, strict=True):
        few, many = record(platform, image, entries)
        found.append(Measured(program, few, many, cost(many, model) - cost(few, model)))
    return found


def errors(programs: list[Measured], model: ModelFile) -> np.ndarray[Any, Any]:
    costs = Costs([Prepared.of(one, classifier(model)) for one in programs])
    return np.abs(costs.time(model).cycles / costs.measured - 1)


def test_costs_are_those_of_the_trace():
    """Also of a candidate of which only the blocks with some classes are timed again."""
    truth = load_file("cv32e40p")
    programs = measured("cv32e40p", truth, 0)[::7]
    assert errors(programs, truth).max() == 0
    costs = Costs([Prepared.of(one, classifier(truth)) for one in programs])
    base, ibex = costs.time(truth), load_file("ibex")
    assert list(costs.change(base, ibex, None).cycles) == [
        cost(one.many, load_timing("ibex")) - cost(one.few, load_timing("ibex")) for one in programs
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


def test_a_core_that_is_unlike_the_start():
    truth = msgspec.convert({"source": "planted", "instructions": "rv32", **RISCV}, ModelFile)
    programs = measured("riscv32", truth, 6)
    found = fit(programs[:-LEFT_OUT], load_file("rv32")).model
    assert errors(programs[-LEFT_OUT:], found).max() == 0
    for key in ("cycles", "latency", "taken", "operands"):
        ours = {name: value for name, value in getattr(found, key).items() if name != "fdiv"}
        assert ours == getattr(truth, key), key
