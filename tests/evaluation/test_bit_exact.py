"""The check against the reference: every layer, several inputs, and what a wrong one is told."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from covp.accel_backends.qconv2d.backend import QConv2dBackend
from covp.evaluation import Evaluation, Sample, build, check_layers, compare, run
from covp.graph.equality import relative_error
from covp.graph.models import load_model
from covp.graph.passes import run_passes
from covp.graph.random_inputs import probing_inputs
from covp.graph.reference import run_all, run_changed_graph
from covp.hardware.arithmetic import requantize
from covp.hardware.job_unit import AcceptedJob
from covp.peripherals.qconv2d import QConv2d, compute, decode, load


class NeverWaits(QConv2dBackend):
    """Its driver returns at once."""

    def driver(self, base: int) -> Mapping[str, str]:
        files = dict(super().driver(base))
        source = files[f"{self.name}.c"]
        kept = [line for line in source.splitlines() if "covp_job_wait" not in line]
        assert len(kept) == len(source.splitlines()) - 1
        return files | {f"{self.name}.c": "\n".join(kept)}


class _SingleRounding(QConv2d):
    def accept(self) -> AcceptedJob:
        job = decode(self.values)
        accepted, operands = super().accept(), load(job, self.bus)
        sums = compute(replace(job, requantize=False), operands).reshape(-1, job.out_channels)
        shift = 31 - operands["shift"].astype(np.int64)
        scaled = sums.astype(np.int64) * operands["multiplier"] + (np.int64(1) << shift - 1)
        result = np.clip((scaled >> shift) + job.out_zero_point, *job.clamp).astype(np.int8)
        return replace(accepted, result=result.reshape(-1))


class SingleRounding(QConv2dBackend):
    """Its unit rounds once where TFLM rounds twice."""

    def make_peripheral(self) -> QConv2d:
        return _SingleRounding()


class _NarrowBias(QConv2d):
    def accept(self) -> AcceptedJob:
        job = decode(self.values)
        operands = load(job, self.bus)
        operands["bias"] = operands["bias"] << 20 >> 20
        return replace(super().accept(), result=compute(job, operands))


class NarrowBias(QConv2dBackend):
    """Its unit has a bias path with fewer bits than the biases."""

    def make_peripheral(self) -> QConv2d:
        return _NarrowBias()


@pytest.mark.parametrize("planted", [NeverWaits, SingleRounding, NarrowBias])
@pytest.mark.parametrize("model", ["kws", "vww"])
def test_a_defect_that_saturation_hides_is_found(model: str, planted: type[QConv2dBackend]) -> None:
    result = run(build(model, "riscv32", [planted()]))
    assert not result.matches_reference
    found = result.check.mismatch
    assert found is not None and found.target == "qconv2d" and 0 < found.wrong <= found.elements


def test_the_correct_twin_is_bit_exact() -> None:
    result = run(build("kws", "riscv32", ["qconv2d"]))
    assert result.matches_reference
    assert (result.check.layers, result.check.inputs) == (len(result.program.layers), 4)
    assert result.verdict == f"bit-exact: {len(result.program.layers)} layers x 4 inputs"


def test_requantize_of_the_planted_unit_differs_by_its_rounding_alone() -> None:
    sums = np.arange(-5000, 5000, 7, dtype=np.int32)[:, None]
    multiplier, shift = np.array([1_500_000_000], np.int32), np.array([-7], np.int32)
    twice = requantize(sums, multiplier, shift, 0, -128, 127).reshape(-1).astype(int)
    scaled = sums.astype(np.int64) * multiplier + (np.int64(1) << 37)
    once = np.clip(scaled >> 38, -128, 127).reshape(-1)
    assert 0 < np.count_nonzero(once != twice) < 20 and np.abs(once - twice).max() == 1


def test_the_first_wrong_layer_and_element_are_named() -> None:
    made = build("toycar", "riscv32")
    layer = made.program.layers[4]
    (tensor,) = layer.outputs
    samples = Sample.random(made.graph).and_probes(made.graph)
    # the reference is changed instead of the program: the third input, one element, one layer
    wrong = {**samples[2].tensors}
    original = wrong[tensor.name]
    element = tuple(extent - 1 for extent in original.shape)
    wrong[tensor.name] = original.copy()
    wrong[tensor.name][element] ^= 1
    samples[2] = replace(samples[2], tensors=wrong)
    found = check_layers(made, samples)
    assert found.inputs == 3 and found.mismatch is not None
    assert (found.mismatch.layer, found.mismatch.tensor) == (layer.name, tensor.name)
    assert (found.mismatch.element, found.mismatch.wrong) == (element, 1)
    assert found.mismatch.got == original[element]
    assert found.mismatch.wanted == wrong[tensor.name][element]
    assert (found.mismatch.input, found.mismatch.input_name) == (3, samples[2].name)
    assert f"element {list(element)} is {original[element]}" in str(found.mismatch)


@pytest.mark.costly
@pytest.mark.parametrize(
    ("model", "platform", "accelerators"),
    [
        ("resnet", "cortex-m7", []),
        ("resnet", "riscv32", ["gemm", "vector"]),
        ("kws", "riscv32", ["cfu"]),
        ("cifar10", "cortex-m0plus", []),
        ("toycar", "host", []),
    ],
)
def test_every_layer_of_the_zoo_is_compared(
    model: str, platform: str, accelerators: list[str]
) -> None:
    device = "host" if platform == "host" else "virtual"
    result = run(build(model, platform, accelerators), device=device)
    assert result.matches_reference, result.check.mismatch
    assert (result.check.layers, result.check.inputs) == (len(result.program.layers), 4)


@pytest.mark.costly
def test_floats_have_a_worst_error() -> None:
    result = run(build("toycar_float", "riscv32f"))
    assert result.matches_reference, result.check.mismatch
    assert result.check.worst_error is not None and 0 <= result.check.worst_error <= 1e-5
    assert result.verdict.startswith("within 1e-05: 10 layers x 4 inputs, worst error ")
    assert result.record().check.tolerance == 1e-5


def test_relative_error_of_what_is_not_finite() -> None:
    wanted = np.array([np.nan, np.inf, 2.0], np.float32)
    assert relative_error(np.array([np.nan, np.inf, 1.5], np.float32), wanted) == 0.25


def test_levels() -> None:
    made = build("toycar", "riscv32")
    sample = Sample.random(made.graph)
    wrong = (sample.outputs[0] ^ 1,)
    assert run(made, Sample(sample.inputs, wrong), check="none").verdict == "not checked"
    only = run(made, sample, check="output")
    assert (only.check.layers, only.check.inputs) == (0, 1)
    assert only.verdict == "bit-exact: outputs x 1 input"
    found = run(made, Sample(sample.inputs, wrong), check="output").check.mismatch
    assert found is not None and found.layer is None and found.element == (0, 0)


def figures(result: Evaluation) -> tuple[Any, ...]:
    return result.profile.instructions, result.profile.cycles, result.record().layers


def test_the_measured_inference_is_the_same_with_and_without_the_check() -> None:
    made = build("kws", "riscv32", ["qconv2d"])
    with_check, without = (run(made, check=level) for level in ("layers", "none"))
    assert figures(with_check) == figures(without)


def test_the_inputs_are_what_they_are_called() -> None:
    graph = load_model("kws")
    (tensor,) = graph.inputs
    found = probing_inputs(graph.inputs, 3)
    (near,), (ends,), (turns,) = found.values()
    assert list(found) == ["near the zero point", "lowest, highest", "alternating"]
    assert np.abs(near.astype(int) - tensor.zero_point).max() == 3
    half = (ends.size + 1) // 2
    assert set(ends.reshape(-1)[:half]) == {-128} and set(ends.reshape(-1)[half:]) == {127}
    assert set(turns.reshape(-1)[::2]) == {-128} and set(turns.reshape(-1)[1::2]) == {127}
    np.testing.assert_array_equal(near, probing_inputs(graph.inputs, 3)["near the zero point"][0])


@pytest.mark.parametrize("model", ["resnet", "kws", "vww", "kws_float", "sww"])
def test_a_lowered_graph_gives_what_it_gives_from_scratch(model: str) -> None:
    graph = load_model(model)
    lowered = run_passes(graph)
    sample = Sample.random(graph)
    fast = run_changed_graph(lowered, sample.inputs, graph, sample.tensors)
    slow = run_all(lowered, sample.inputs)
    assert fast.keys() == slow.keys()
    for name, value in slow.items():
        np.testing.assert_array_equal(fast[name], value, name)


def test_a_comparison_checks_both_runs() -> None:
    found = compare("kws", "riscv32", [NeverWaits()])
    assert found.alone.matches_reference and not found.accelerated.matches_reference
    assert not found.matches_reference
