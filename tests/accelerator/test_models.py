"""Whole models under every accelerator and every pair of them: the bits of the reference."""

from __future__ import annotations

import itertools

import pytest

from covp.evaluation import Evaluation, evaluate

ACCELERATORS = ("cfu", "dma", "gemm", "qconv2d", "vanilla", "vector")
INT8 = ("toycar", "kws", "resnet", "vww", "sww")
FLOAT = ("toycar_float", "kws_float", "resnet_float", "vww_float")
PAIRS = list(itertools.combinations(ACCELERATORS, 2))
SOME = [("kws", ("gemm", "vector")), ("toycar", ("cfu", "gemm")), ("kws", ("cfu", "qconv2d"))]
ALL = [(m, a) for m in INT8 for a in [(name,) for name in ACCELERATORS] + PAIRS]


def run(model: str, accelerators: tuple[str, ...], platform: str = "riscv32") -> Evaluation:
    result = evaluate(model, platform, accelerators, allow_unused=True)
    assert result.matches_reference, f"{result.mismatches} elements differ"
    # every layer that is said to be offloaded was really sent there
    for accelerator in accelerators:
        name = accelerator.partition(":")[0]
        offloaded = [layer for layer in result.program.layers if layer.target == name]
        assert (result.profile.jobs.get(name, 0) > 0) == bool(offloaded)
    return result


@pytest.mark.costly
@pytest.mark.parametrize(("model", "accelerators"), SOME)
def test_some_models_under_some_pairs(model: str, accelerators: tuple[str, ...]) -> None:
    run(model, accelerators)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "accelerators"), ALL)
def test_int8_models_under_all(model: str, accelerators: tuple[str, ...]) -> None:
    run(model, accelerators)


@pytest.mark.slow
@pytest.mark.parametrize("model", FLOAT)
def test_float_models_under_vanilla(model: str) -> None:
    run(model, ("vanilla",), "riscv32f")


@pytest.mark.slow
@pytest.mark.parametrize("model", INT8)
@pytest.mark.parametrize("platform", ["cortex-m7", "cortex-m0plus"])
def test_int8_models_on_arm_sleeping(model: str, platform: str) -> None:
    run(model, ("gemm:wait=sleep", "vector:wait=sleep"), platform)


@pytest.mark.costly
def test_the_cheaper_accelerator_gets_a_layer() -> None:
    slow = run("kws", ("qconv2d:macs_per_cycle=1", "gemm"))
    fast = run("kws", ("qconv2d:macs_per_cycle=1024", "gemm"))
    assert slow.program.layers[2].target == "gemm"
    assert fast.program.layers[2].target == "qconv2d"
    reasons = {r.reason for r in fast.program.refusals if r.accelerator == "gemm"}
    assert any(reason.startswith("qconv2d needs fewer cycles") for reason in reasons)


@pytest.mark.costly
def test_the_split_of_an_offloaded_layer_adds_up() -> None:
    result = run("kws", ("qconv2d:requantize=false",))
    offloaded = [entry for entry in result.profile.layers if entry.offload is not None]
    assert len(offloaded) == 9
    for entry in offloaded:
        split = entry.offload
        assert split is not None and entry.cycles is not None
        assert split.jobs == 1
        busy = split.startup + max(split.compute, split.memory)
        # the driver polls, so that the core stands still from its first look until the end
        assert busy - 20 <= split.waiting <= busy
        assert split.setup + busy + split.rest == pytest.approx(entry.cycles, abs=2)
        assert split.setup < 100
        assert split.rest > 1000, "the core requantizes"
    assert result.profile.jobs == {"qconv2d": 9}
