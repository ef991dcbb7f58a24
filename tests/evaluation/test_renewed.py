"""A schedule that this compiler makes slower than the kernel's own choice is not kept."""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path

import pytest

import covp
from covp.building.tune.measure import ScheduleBench
from covp.building.tune.records import Records, ScheduleTrial, read_trials
from covp.codegen.layer import KernelRequest, schedules
from covp.compilers.toolchain import get_toolchain
from covp.evaluation import Evaluation, build, compare, run, survey
from covp.graph.graph import Graph, Op
from tests.building.tune.test_single_operators import convolution

PLATFORM = covp.load_platform("riscv32")
CORE = PLATFORM.core


@pytest.fixture(scope="module")
def trials() -> tuple[Graph, ScheduleTrial, ScheduleTrial]:
    """A model of one layer; trials of its default schedule and of the slowest of some."""
    graph = convolution()
    (op,) = graph.ops
    bench = ScheduleBench(PLATFORM, "zig")
    points = schedules(KernelRequest(op, CORE, "layer"))
    found = [trial for s in points[:: len(points) // 6] if (trial := bench.measure(op, s))]
    bench.close()
    slow = max(found, key=lambda trial: trial.score())
    assert slow.spent() > 1.1 * found[0].spent() and found[0].schedule == str(points[0])
    return graph, found[0], slow


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Records:
    """The records of this process, none of them yet."""
    records = Records([])
    monkeypatch.setattr("covp.building.tune.records._open_records", lambda own: records)
    monkeypatch.setattr("covp.building.tune.records.own_folder", lambda: tmp_path)
    return records


def plant(records: Records, slow: ScheduleTrial, compiler: str, instructions: int | None) -> None:
    """As if it had been the best elsewhere."""
    share = (instructions or 0) / (slow.instructions or 1)
    cycles = round(share * (slow.cycles or 0))
    records.add(
        dataclasses.replace(slow, compiler=compiler, instructions=instructions, cycles=cycles)
    )


def alone(how: str, graph: Graph) -> Evaluation:
    if how == "run":
        return run(build(graph, PLATFORM))
    if how == "compare":
        return compare(graph, PLATFORM, ["gemm"]).alone
    (found,) = survey(graph, [PLATFORM])
    assert found.result is not None
    return found.result


@pytest.mark.costly
@pytest.mark.parametrize("how", ["run", "compare", "survey"])
def test_the_default_is_taken_where_a_schedule_became_slower(
    how: str,
    own: Records,
    trials: tuple[Graph, ScheduleTrial, ScheduleTrial],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph, default, slow = trials
    plant(own, slow, "zig 0.1.0", (default.instructions or 0) // 2)
    assert build(graph, PLATFORM).program.layers[0].schedule == slow.schedule
    found = alone(how, graph)
    assert found.program.layers[0].schedule == default.schedule and found.matches_reference
    assert found.check.level == "layers"
    (note,) = found.warnings
    assert f"{slow.schedule}, tuned with zig 0.1.0, costs more now" in note
    assert f"; {default.schedule} is taken" in note
    assert pickle.loads(pickle.dumps(found.build)).notes == (note,)
    # it is known from now on
    (file,) = tmp_path.glob("*.jsonl")
    assert {trial.schedule for trial in read_trials(file)} == {default.schedule, slow.schedule}
    monkeypatch.setattr(ScheduleBench, "measure", None)
    again = alone(how, graph)
    assert again.program.layers[0].schedule == default.schedule and again.warnings == ()


@pytest.mark.costly
@pytest.mark.parametrize("slower", [0.0, -0.01])
@pytest.mark.parametrize("compiler", ["zig 0.1.0", get_toolchain("zig", CORE).version])
def test_nothing_is_measured_where_a_record_holds(
    compiler: str,
    slower: float,
    own: Records,
    trials: tuple[Graph, ScheduleTrial, ScheduleTrial],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph, _, slow = trials
    plant(own, slow, compiler, int((slow.instructions or 0) * (1 + slower)))
    monkeypatch.setattr(ScheduleBench, "measure", None)
    found = run(build(graph, PLATFORM))
    assert found.program.layers[0].schedule == slow.schedule and found.warnings == ()


def test_of_another_compiler_every_schedule_is_measured(
    own: Records, trials: tuple[Graph, ScheduleTrial, ScheduleTrial]
) -> None:
    graph, default, slow = trials
    plant(own, slow, "gcc 12.2.0", slow.instructions)
    assert run(build(graph, PLATFORM)).program.layers[0].schedule == default.schedule


def test_a_record_that_the_kernels_outgrew_is_measured_and_so_is_what_comes_next(
    own: Records, trials: tuple[Graph, ScheduleTrial, ScheduleTrial]
) -> None:
    graph, default, slow = trials
    plant(own, default, default.compiler, default.instructions)
    plant(own, slow, slow.compiler, (default.instructions or 0) // 2)
    found = run(build(graph, PLATFORM))
    assert found.program.layers[0].schedule == default.schedule
    assert own.trials(slow.layer, CORE.name, slow.compiler) == [default, slow]
    assert len(found.warnings) == 1


def test_choices_of_ones_own_stay(
    own: Records, trials: tuple[Graph, ScheduleTrial, ScheduleTrial]
) -> None:
    graph, _, slow = trials
    points = {str(s): s for s in schedules(KernelRequest(graph.ops[0], CORE, "layer"))}

    def choice(op: Op) -> covp.codegen.schedule.Schedule:
        return points[slow.schedule]

    assert run(build(graph, PLATFORM, schedules=choice)).program.layers[0].schedule == slow.schedule
