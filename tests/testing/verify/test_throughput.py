"""Counts and times that no unit as declared can have are failures; to skip zeros is none."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest

from covp.accelerator import Job, number
from covp.graph.ops import definition
from covp.hardware.job_timing import JobTiming, Traffic
from covp.testing import ConvCase, MatMulCase
from covp.testing.verify import verify as verify_in_full
from covp.testing.verify.throughput import needed_macs
from tests.testing.verify.units import Dense

pytestmark = pytest.mark.usefixtures("counted_time")

search = partial(verify_in_full, models=(), seconds=30)
"""It ends where something is found."""


class Doubled(Dense):
    """Counts a multiplication and an addition as two."""

    def macs(self, job: Any) -> int:
        return 2 * super().macs(job)

    def timing(self, job: Any, nbytes: int) -> JobTiming:
        return self.unit_timing().job(super().macs(job), nbytes)


class OneMore(Doubled):
    """Counts the biases as well."""

    def macs(self, job: Any) -> int:
        return Dense.macs(self, job) + int(job.OUT_CHANNELS)


class Fast(Dense):
    """Takes half the time for its operations."""

    def timing(self, job: Any, nbytes: int) -> JobTiming:
        return self.unit_timing().job(self.macs(job) // 2, nbytes)


class Instant(Dense):
    """All in a cycle."""

    def timing(self, job: Any, nbytes: int) -> JobTiming:
        return JobTiming(1, 0)


class Undeclared(Instant):
    """It says neither how many multipliers it has, nor which bytes it moves."""

    def traffic(self, job: Any, declared: Traffic) -> Traffic:
        return Traffic(1, 1)

    def hardware_size(self) -> None:
        return None


class Silent(Undeclared):
    """It does not count, either."""

    def macs(self, job: Any) -> int:
        return 0


class ThinPort(Dense):
    """Moves four times the bytes that its port is wide."""

    def timing(self, job: Any, nbytes: int) -> JobTiming:
        return self.unit_timing().job(self.macs(job), nbytes // 4)


@pytest.mark.costly
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("unit", "said"),
    [
        (Doubled, "its jobs report 2 MACs, and the layer has 1; lanes that idle"),
        (OneMore, "its jobs report 2 MACs, and the layer has 1; lanes that idle"),
        (Fast, "a cycle, it declares 16: see its timing() and hardware_size()"),
        (Instant, "MACs in 1 cycles are "),
        (Undeclared, "a cycle, no unit of this kind does more than 2048: see its timing()"),
        (Silent, "a cycle, no unit of this kind does more than 2048: see its timing()"),
        (ThinPort, "cycles of the memory port are "),
    ],
)
def test_what_is_impossible_is_said_in_a_line(unit: type[Dense], said: str, seed: int) -> None:
    failure = search(unit(), seed=seed).failure
    assert failure is not None and said in failure and "\n" not in failure


class Skipping(Dense):
    """Leaves out weights that are zero, and says so in a register; it counts them all the same."""

    job = Job(*Dense.job.operands, *Dense.job.numbers, number("NONZERO", 0, 1 << 20))

    def registers(self, layer: Any) -> Mapping[str, Any]:
        nonzero = int(np.count_nonzero(layer.weights))
        return {**super().registers(layer), "NONZERO": nonzero}

    def timing(self, job: Any, nbytes: int) -> JobTiming:
        return self.unit_timing().job(int(job.BATCH * job.NONZERO), nbytes)

    def traffic(self, job: Any, declared: Traffic) -> Traffic:
        return Traffic(job.NONZERO + job.IN_CHANNELS, declared.written)


class Honest(Skipping):
    """Counts what it does."""

    def macs(self, job: Any) -> int:
        return int(job.BATCH * job.NONZERO)


class Quick(Skipping):
    """Leaves out a part of the others as well."""

    def timing(self, job: Any, nbytes: int) -> JobTiming:
        return self.unit_timing().job(int(job.BATCH * job.NONZERO) * 3 // 4, nbytes)


class Slow(Dense):
    """A clock of two and a half cycles of the core."""

    def __init__(self) -> None:
        super().__init__({"clock_ratio": 2.5, "macs_per_cycle": 4096, "bytes_per_cycle": 64})


@pytest.mark.costly
@pytest.mark.parametrize("unit", [Dense, Skipping, Honest, Slow])
def test_what_is_possible_passes(unit: type[Dense]) -> None:
    verdict = search(unit(), seconds=2)
    assert verdict.failure is None, verdict.test


@pytest.mark.slow
def test_a_unit_that_skips_more_than_the_zeros_is_found() -> None:
    assert "it declares 16" in str(search(Quick()).failure)


@pytest.mark.parametrize(
    "case",
    [
        ConvCase(size=(4, 5), channels=(3, 2), kernel=(3, 3), same=True, zeros=0.5, seed=1),
        ConvCase(size=(5, 5), channels=(2, 3), kernel=(3, 2), stride=(2, 1), bias=True),
        ConvCase("DEPTHWISE_CONV_2D", size=(4, 4), channels=(3, 3), kernel=(3, 3), same=True),
        ConvCase("FULLY_CONNECTED", channels=(9, 4), batch=3, zeros=0.4, activation="relu"),
        ConvCase("FULLY_CONNECTED", channels=(9, 4), dtype="float32"),
        MatMulCase(rows=3, depth=4, columns=5, zero_points=(3, -2, 0)),
    ],
    ids=lambda case: case.kind,
)
def test_needed_macs_have_no_zero(case: Any) -> None:
    """Those that change the sum of absolute products, each of them one after another."""
    graph = case.graph()
    op, inputs = graph.ops[0], [value.copy() for value in case.inputs()]
    first = inputs[0].reshape(-1)
    first[: first.size // 2] = op.input(0).zero_point if op.input(0).quantization else 0
    values = {id(t): v for t, v in zip(graph.inputs, inputs, strict=True)}
    values |= {id(t): t.data for t in graph.tensors() if t.data is not None}
    needed = needed_macs([op], values)
    dense = needed_macs([op], {**values, id(op.input(0)): np.full_like(inputs[0], 77)})
    assert 0 < needed < dense <= definition(op.kind).macs(op)
