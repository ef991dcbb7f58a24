"""An estimate of a layer is the time of the jobs that the hardware model then runs for it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from covp.accelerator import AcceleratorBackend
from covp.accelerator.partition import partition
from covp.accelerator.registry import find_backend
from covp.codegen.offload import split_graph
from covp.errors import AcceleratorError
from covp.graph.models import load_model
from covp.graph.passes import run_passes
from covp.graph.pattern import Match, Pattern, op
from covp.hardware.job_timing import Traffic
from covp.hardware.job_unit import JobRecord, JobUnit
from covp.peripherals.qconv2d import QConv2d
from covp.testing.convolution_case import ConvCase
from covp.testing.verify.bench import Conditions
from covp.testing.verify.driver_bench import DriverBench
from covp.testing.verify.stages import strategies_of

PAIRS = [
    ("qconv2d", "macs_per_cycle=3"),
    ("qconv2d:requantize=false,bytes_per_cycle=1", "macs_per_cycle=100"),
    ("qconv2d:wait=sleep", "contention=0.7,startup_cycles=7"),
    ("gemm:size=4,scratchpad=256,accumulators=256", "bytes_per_cycle=1"),
    ("gemm", "startup_cycles=0,contention=2"),
    ("vector:buffer=16", "macs_per_cycle=1"),
    ("vector", "bytes_per_cycle=1"),
    ("vanilla", "macs_per_cycle=2"),
    ("dma", "bytes_per_cycle=3"),
]
"""An accelerator, and parameters that change the time of its jobs but not which there are."""


class Timed:
    """A bench whose unit keeps its jobs."""

    def __init__(self, bench: DriverBench) -> None:
        self.bench = bench
        assert isinstance(bench.unit, JobUnit)
        self.unit = bench.unit

    def run(self, case: Any) -> list[JobRecord]:
        self.unit.reset()
        self.unit.forget_jobs()
        self.bench.run(case.graph(), case.inputs(), Conditions(case.gap))
        return list(self.bench.jobs)

    def estimate(self, case: Any) -> int:
        backend = self.bench.backend
        _, split = split_graph(run_passes(case.graph()), [backend])
        found = [backend.estimate(p.match) for p in split.placements if p.match is not None]
        return sum(cycles for cycles in found if cycles is not None)


@pytest.mark.parametrize(("spec", "other"), PAIRS)
def test_estimates_and_new_times_of_recorded_jobs(spec: str, other: str) -> None:
    changed = f"{spec}{',' if ':' in spec else ':'}{other}"
    with ExitStack() as stack:
        here, there = (
            Timed(stack.enter_context(DriverBench(find_backend(text), "riscv32")))
            for text in (spec, changed)
        )
        jobs = 0

        @hypothesis.settings(max_examples=25, deadline=None, derandomize=True, database=None)
        @hypothesis.given(st.one_of(*strategies_of(here.bench.backend).values()))
        def law(case: Any) -> None:
            nonlocal jobs
            records, live = here.run(case), there.run(case)
            jobs += len(records)
            assert here.estimate(case) == sum(job.timing.cycles for job in records)
            assert [there.unit.retime(job) for job in records] == [job.timing for job in live]

        law()
    assert jobs > 0


def test_a_record_has_the_numbers_and_bytes_of_its_job() -> None:
    case = ConvCase(kind="FULLY_CONNECTED", batch=2, channels=(5, 3))
    with DriverBench(find_backend("gemm"), "riscv32") as bench:
        records = Timed(bench).run(case)
    for record in records:
        assert (record.numbers["IN_CHANNELS"], record.numbers["OUT_CHANNELS"]) == (5, 3)
        # inputs, weights; bias, multiplier and shift of 4 bytes each
        assert record.traffic == Traffic(read=5 + 3 * 5 + 3 * 12, written=3)
    assert len(records) == 2


def test_the_sums_of_the_paper_s_unit_have_no_scales_to_load() -> None:
    graph = load_model("resnet")
    first = graph.ops[0]
    for requantize, scales, width in (("true", 8, 1), ("false", 0, 4)):
        backend = find_backend(f"qconv2d:requantize={requantize},bytes_per_cycle=1")
        match = backend.patterns[0].match(graph, first)
        assert match is not None
        moved = 32 * 32 * 3 + 16 * (27 + 4 + scales) + 32 * 32 * 16 * width
        assert backend.estimate(match) == 32 + max(moved, 32 * 32 * 16 * 27 // 16)


class Broken(AcceleratorBackend):
    """Its estimate is wrong."""

    name = "broken"
    patterns = (Pattern("convolution", op("CONV_2D")),)
    peripheral = QConv2d

    def supports(self, match: Match) -> bool:
        return True

    def lower(self, match: Match) -> Any:
        raise NotImplementedError

    def driver(self, base: int) -> dict[str, str]:
        return {}


def test_a_mistake_in_a_timing_model_is_not_hidden() -> None:
    wrong = type("Wrong", (find_backend("gemm").__class__,), {"jobs": lambda *_: 1 // 0})
    with pytest.raises(AcceleratorError, match=r"gemm, layer .*: estimate\(\) raised ZeroDivision"):
        partition(ConvCase(kind="CONV_2D").graph(), [wrong(), find_backend("qconv2d")])


def test_a_model_s_parameters_are_the_accelerator_s() -> None:
    with pytest.raises(AcceleratorError, match=r"broken: QConv2d\(\) takes 'macs_per_cycle'"):
        Broken().make_peripheral()
