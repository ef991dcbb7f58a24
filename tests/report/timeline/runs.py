"""Runs whose timelines are looked at, and what is known of them without one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from covp.evaluation import Evaluation, Sample, build
from covp.hardware.job_unit import JobRecord, JobUnit
from covp.runtime.profile import Profile
from covp.runtime.session import Session
from tests.report.timeline.chrome_reader import ReadSlice, ReadTrace, read_trace

RUNS = [
    ("sww", "riscv32", "gemm"),
    ("kws", "cortex-m4"),
    ("resnet", "cortex-m4", "qconv2d"),
    ("toycar", "disco-f746ng"),  # with caches
]
runs = pytest.mark.parametrize("names", RUNS, ids="-".join)
runs_with_jobs = pytest.mark.parametrize("names", [RUNS[0], RUNS[2]], ids="-".join)


@dataclass(frozen=True)
class Traced:
    plain: Evaluation
    found: Evaluation
    path: Path

    @cached_property
    def trace(self) -> ReadTrace:
        return read_trace(self.path)

    def layers(self) -> list[ReadSlice]:
        slices = self.trace.tracks["core", "layers"]
        return [one for one in slices if one.name != "between layers"]


def function_cycles(profile: Profile) -> Counter[str]:
    """What the counter says that each function spent, in layers and between them."""
    found: Counter[str] = Counter()
    counts = [*profile.between.functions, *(f for entry in profile.layers for f in entry.functions)]
    for function in counts:
        found[function.name or "(no function)"] += function.cycles
    return +found


def records_of(names: tuple[str, ...]) -> list[JobRecord]:
    """The jobs of a run of which no timeline is made."""
    made = build(names[0], names[1], names[2:])
    with Session(made.platform) as session:
        module = session.load(made.program)
        module.run(*Sample.random(made.graph).inputs)
        hardware = session.device.abilities.hardware
        assert hardware is not None
        _, unit = hardware.peripherals[names[2]]
        assert isinstance(unit, JobUnit)
        return unit.jobs
