"""Estimates beside what a run took, and what rejected layers would save."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pytest

import covp
from covp.accel_backends.gemm.backend import Gemm
from covp.accelerator import Limit
from covp.evaluation import Evaluation, build, rejected_layers, run, wrong_estimates
from covp.graph.graph import Graph
from covp.graph.pattern import Match, Pattern, constant, conv2d, op, wildcard

FUSED = Pattern("conv_add", op("ADD", conv2d(wildcard(), constant()), wildcard()))
FUSED_CYCLES = 5000


class Scaled(Gemm):
    """Its estimate is wrong by a factor."""

    factor: ClassVar[float] = 1

    def estimate(self, match: Match) -> int | None:
        cycles = super().estimate(match)
        return None if cycles is None else int(cycles * self.factor)


class Narrow(Gemm):
    """It would fuse ADD, were it not for a limit."""

    patterns = (FUSED, *Gemm.patterns)

    def supports(self, match: Match) -> bool | str | Sequence[Limit]:
        return super().supports(match) if len(match.ops) == 1 else [Limit("ports", 3, at_most=2)]

    def estimate(self, match: Match) -> int | None:
        return super().estimate(match) if len(match.ops) == 1 else FUSED_CYCLES


@pytest.fixture(scope="module")
def resnet() -> Graph:
    return covp.load_model("resnet")


def evaluated(graph: Graph, backend: Any) -> Evaluation:
    return run(build(graph, "riscv32", [backend], allow_slower=True))


@pytest.mark.costly
@pytest.mark.parametrize(
    ("by", "reported"), [(1, False), (0.95, False), (0.7, True), (0.1, True), (4, True)]
)
def test_an_estimate_that_is_off_by_more_than_a_tenth_is_reported_once(
    resnet: Graph, by: float, reported: bool
) -> None:
    result = evaluated(resnet, type("Changed", (Scaled,), {"factor": by})())
    warnings = wrong_estimates(result.profile)
    assert len(warnings) == reported
    for warning in warnings:
        assert warning.startswith("accelerator gemm: its estimate is off by more than 10% for ")
        assert warning in result.record().warnings


@pytest.mark.costly
def test_the_saving_of_a_rejected_pattern_counts_all_of_its_operators(resnet: Graph) -> None:
    result = evaluated(resnet, Narrow())
    spent = {entry.layer.name: entry.cycles or 0 for entry in result.profile.layers}
    fused = [e for e in rejected_layers(result) if len(e.refusal.operators) == 2]
    assert len(fused) == 3
    for entry in fused:
        assert entry.refusal.reason == "ports 3; at most 2"
        inside = sum(spent[name] for name in entry.refusal.operators)
        assert entry.potential_saving == inside - FUSED_CYCLES > spent[entry.refusal.layer] - 5000


def test_a_cost_of_the_core_that_is_off_is_reported(resnet: Graph) -> None:
    result = evaluated(resnet, Gemm())
    assert result.warnings == ()
    on_core = [e for e in result.profile.layers if e.layer.target == "cpu"]
    wrong = [replace(e.layer, estimated_cycles=2 * (e.cycles or 0)) for e in on_core]
    entries = [replace(e, layer=layer) for e, layer in zip(on_core, wrong, strict=True)]
    (warning,) = wrong_estimates(replace(result.profile, layers=tuple(entries)))
    assert warning.startswith("the core: its simulated cost is off by more than 10% for 5 layers")


@pytest.mark.costly
@pytest.mark.parametrize("platform", ["riscv32", "cortex-m4", "cortex-m0plus", "stm32f746"])
def test_what_the_core_requantizes_is_estimated_for_that_core(resnet: Graph, platform: str) -> None:
    result = run(build(resnet, platform, ["qconv2d:requantize=false"]))
    assert not any("qconv2d" in warning for warning in wrong_estimates(result.profile))
