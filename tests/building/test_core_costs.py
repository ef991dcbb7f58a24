"""The cycles that placement counts for the core are those that layers take in the program."""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path

import pytest

import covp
from covp.building import core_costs
from covp.building.core_costs import simulated_cycles
from covp.codegen.generate import generate
from covp.codegen.program import Program
from covp.compilers.toolchain import Toolchain
from covp.evaluation import build, run
from covp.graph.graph import Graph

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
PLATFORMS = (
    "cortex-m0plus", "nucleo-l4r5zi", "disco-f746ng", "stm32h743", "riscv32", "serv",
    "vexriscv-full", "ibex",
)  # fmt: skip


@pytest.mark.costly
@pytest.mark.parametrize(
    ("model", "unit"),
    [("toycar", "gemm"), *product(("kws", "resnet"), ("gemm", "qconv2d:depthwise=false"))],
)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_costs_of_the_core_are_those_in_the_program(platform: str, model: str, unit: str) -> None:
    from core_costs import HIGH, LOW, ratios  # of the benchmarks

    alone = run(build(model, platform), check="none")
    made = build(model, platform, [unit], allow_slower=True)
    beside = run(made, check="none")
    found = list(ratios(beside, alone))
    assert len(found) >= len(alone.profile.layers) - 1
    own = [entry for entry in beside.profile.layers if entry.layer.target == "cpu"]
    low, high = LOW, HIGH
    if made.platform.cached_ram and own:
        # a layer behind a unit finds its input in no cache, and tensors that lie elsewhere take
        # other lines from each other: resnet's sums took 156 or 347 thousand cycles
        counted = sum(entry.layer.estimated_cycles or 0 for entry in own)
        found, low, high = [("all", counted / sum(entry.cycles or 0 for entry in own))], 0.8, 1.25
    assert [(name, ratio) for name, ratio in found if not low <= ratio <= high] == []


@pytest.fixture
def kws() -> Graph:
    return covp.load_model("kws")


@pytest.mark.costly
def test_costs_come_from_the_cache_and_objects_are_those_of_the_build(
    kws: Graph, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COVP_CACHE_DIR", str(tmp_path / "cache"))
    compiled: list[str] = []
    compile_one = Toolchain._compile_one

    def noted(self: Toolchain, source: object, *others: object) -> object:
        compiled.append(source.name)  # type: ignore[attr-defined]
        return compile_one(self, source, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(Toolchain, "_compile_one", noted)
    made = build(kws, "riscv32", ["gemm"])
    known = {*compiled}
    compiled.clear()
    made.memory()
    on_core = {f"{layer.function}.c" for layer in made.program.layers if layer.target == "cpu"}
    assert on_core <= known and not on_core.intersection(compiled)
    monkeypatch.setattr(core_costs, "_simulate", lambda *_: pytest.fail("simulated twice"))
    again = build(kws, "riscv32", ["gemm"])
    assert [layer.estimated_cycles for layer in again.program.layers] == [
        layer.estimated_cycles for layer in made.program.layers
    ]


@pytest.mark.costly
def test_a_slower_core_or_memory_has_costs_of_its_own(kws: Graph) -> None:
    found = {
        name: sum(layer.cycles or 0 for layer in program.alternatives if layer.target == "cpu")
        for name in ("riscv32", "serv", "nucleo-l4r5zi", "cortex-m4")
        for program in [covp.compile(kws, name, ["gemm"])]
    }
    assert found["serv"] > 100 * found["riscv32"]
    assert found["nucleo-l4r5zi"] > 1.2 * found["cortex-m4"]


@pytest.mark.costly
def test_what_does_not_fit_as_a_whole_is_measured_in_parts(kws: Graph) -> None:
    runs: list[int] = []

    def small(program: Program) -> tuple[int, ...] | None:
        runs.append(len(program.layers))
        return None if len(program.layers) > 4 else simulated_cycles(program)

    wanted = build(kws, "riscv32", ["gemm"], schedules=None).program
    found = generate(kws, "riscv32", ["gemm"], measure=small)
    # a RESHAPE takes no cycles
    assert max(runs) == 12 and runs.count(12) == 1 and len(runs) > 4
    for got, whole in zip(found.alternatives, wanted.alternatives, strict=True):
        assert (got.operators, got.target) == (whole.operators, whole.target)
        assert got.cycles == pytest.approx(whole.cycles, rel=0.02)


def test_a_layer_that_cannot_run_on_the_core_costs_nothing_known(kws: Graph) -> None:
    program = generate(kws, "riscv32", ["gemm"], measure=lambda program: None)
    assert {a.cycles for a in program.alternatives if a.target == "cpu"} == {None}
    assert program.warnings == ()


@pytest.mark.costly
def test_a_program_that_does_not_fit_has_no_cycles(kws: Graph) -> None:
    assert simulated_cycles(generate(kws, "hifive1")) is None
