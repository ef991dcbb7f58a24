"""build, run and compare: apart from each other, in other processes, and nothing twice."""

import multiprocessing
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import covp
from covp.building.tune.records import Records
from covp.errors import AcceleratorError, UsageError
from covp.evaluation import (
    Build,
    Runner,
    Sample,
    build,
    compare,
    evaluate,
    recorded_schedules,
    run,
)
from covp.evaluation import sample as sample_module
from covp.graph import user_operators
from covp.graph.graph import Graph, Op, Quantization, Tensor
from covp.graph.models import ModelFile

SQUARED_RELU = Path(__file__).parents[2] / "examples" / "squared_relu.py"


@pytest.fixture(scope="module")
def toycar() -> Build:
    return build("toycar", "riscv32")


def figures(build: Build) -> tuple[Any, ...]:
    result = run(build)
    assert result.matches_reference
    return [o.tolist() for o in result.outputs], result.profile.instructions, result.profile.cycles


def test_a_build_knows_its_memory_before_it_runs(toycar: Build) -> None:
    assert toycar.memory() == run(toycar).memory
    assert (toycar.model, toycar.platform.name) == ("toycar", "riscv32")
    assert toycar.source in ("official", "custom", "synthetic")
    assert toycar.planned_coverage == 0


def test_one_runner_runs_many_samples(toycar: Build) -> None:
    samples = [Sample.random(toycar.graph, seed) for seed in range(3)]
    assert not np.array_equal(samples[0].inputs[0], samples[1].inputs[0])
    with Runner(toycar) as runner:
        results = [runner.run(sample) for sample in samples]
    for sample, result in zip(samples, results, strict=True):
        np.testing.assert_array_equal(result.outputs[0], sample.outputs[0])
        assert result.mismatches == 0


def test_mismatches_are_counted(toycar: Build) -> None:
    sample = Sample.random(toycar.graph)
    wrong = sample.outputs[0].copy()
    wrong.reshape(-1)[[3, 5]] ^= 1
    result = run(toycar, Sample(sample.inputs, (wrong,)))
    assert (result.mismatches, result.matches_reference) == (2, False)


def test_a_record_says_where_cycles_come_from(toycar: Build) -> None:
    record = run(toycar).record()
    assert record.cycles_source is not None
    assert record.cycles_source.kind == "estimated" and record.cycles_source.model


@pytest.mark.costly
def test_an_evaluation_is_a_build_that_ran(toycar: Build) -> None:
    schedules = recorded_schedules(toycar.platform)
    tuned = run(build("toycar", "riscv32", schedules=schedules), Sample.random(toycar.graph, 4))
    result = evaluate("toycar", "riscv32", seed=4)
    assert result.profile.instructions == tuned.profile.instructions
    assert result.outputs[0].tolist() == tuned.outputs[0].tolist()


@pytest.fixture(scope="module")
def spawned() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize("accelerators", [[], ["gemm:size=8", "big=gemm:size=16"]])
def test_in_a_spawned_process(spawned: ProcessPoolExecutor, accelerators: list[str]) -> None:
    made = build("kws", "riscv32", accelerators, allow_unused=True)
    there = spawned.submit(run, made).result()
    assert there.matches_reference
    outputs = [output.tolist() for output in there.outputs]
    assert (outputs, there.profile.instructions, there.profile.cycles) == figures(made)
    assert there.record().layers == run(made).record().layers


@pytest.fixture
def squared_relu() -> Iterator[Graph]:
    user_operators.load_operator_file(SQUARED_RELU)
    tensors = []
    for name, scale, zero_point in (("x", 0.05, 3), ("y", 0.04, -110)):
        scaled = Quantization(np.array([scale], np.float32), np.array([zero_point], np.int32))
        tensors.append(Tensor(name, (1, 64), np.dtype(np.int8), scaled))
    x, y = tensors
    yield Graph("squared", [x], [y], [Op("SquaredRelu", "squared_relu_0", [x], [y])])
    user_operators.unregister_operator("SquaredRelu")


@pytest.mark.parametrize("accelerators", [[], [f"{SQUARED_RELU}:Lookup"]], ids=["core", "lookup"])
def test_a_user_s_file_in_a_spawned_process(
    spawned: ProcessPoolExecutor, squared_relu: Graph, accelerators: list[str]
) -> None:
    made = build(squared_relu, "riscv32", accelerators)
    there = spawned.submit(run, made).result()
    assert there.matches_reference
    outputs = [output.tolist() for output in there.outputs]
    assert (outputs, there.profile.instructions, there.profile.cycles) == figures(made)


@pytest.mark.costly
def test_comparing_does_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    done: Counter[str] = Counter()

    def counted(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def count(*arguments: Any) -> Any:
            done[name] += 1
            return original(*arguments)

        monkeypatch.setattr(owner, name, count)

    counted(ModelFile, "load")
    counted(Records, "available")
    counted(sample_module, "run_all")
    platform = covp.load_platform("riscv32")
    schedules = recorded_schedules(platform)
    found = compare("kws", platform, ["qconv2d"], schedules=schedules)
    # one for each of the four inputs of the check
    assert done == {"load": 1, "available": 1, "run_all": 4}
    assert found.matches_reference
    assert found.alone.build.accelerators == () and found.alone.mac_coverage == 0
    assert found.accelerated.build.accelerators == ("qconv2d",)
    before, after = (e.profile for e in (found.alone, found.accelerated))
    assert before.instructions and after.instructions and before.cycles and after.cycles
    assert found.instructions_saved == pytest.approx(1 - after.instructions / before.instructions)
    assert found.speedup == pytest.approx(before.cycles / after.cycles)
    assert found.mac_coverage is not None and 0.5 < found.mac_coverage <= 1


@pytest.mark.costly
def test_offload_that_is_required() -> None:
    made = build("kws", "riscv32", ["qconv2d"], require_offload=["CONV_2D"])
    assert all(layer.target == "qconv2d" for layer in made.program.layers if layer.op == "CONV_2D")
    with pytest.raises(AcceleratorError, match=r"\(FULLY_CONNECTED\) runs on the core: qconv2d: "):
        build("kws", "riscv32", ["qconv2d"], require_offload=["FULLY_CONNECTED"])
    with pytest.raises(UsageError, match="offload of CONV_2X is required: kws has no such"):
        build("kws", "riscv32", ["qconv2d"], require_offload=["CONV_2X"])
