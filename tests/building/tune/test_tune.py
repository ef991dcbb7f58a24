"""The tuner on a small model: what it tries, what it keeps, what later builds make of it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import covp
from covp.base.request import BuildOptions, Objective
from covp.building.tune.records import (
    VERSION,
    Records,
    ScheduleTrial,
    append_trials,
    best_of,
    layer_key,
    pareto_front,
    read_trials,
)
from covp.building.tune.search import make_search
from covp.building.tune.tuner import Options, Progress, tune
from covp.chip.cores import all_cores, find_core
from covp.codegen.layer import KernelRequest, schedules
from covp.codegen.schedule import Schedule
from covp.errors import UsageError
from covp.evaluation import recorded_schedules
from covp.graph.graph import Graph
from covp.graph.passes import run_passes


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COVP_CACHE_DIR", str(tmp_path / "cache"))
    # synthetic models: of the official ones, trials come with covp
    monkeypatch.delenv("COVP_MODEL_DIR", raising=False)
    return tmp_path


def trial(
    schedule: str, instructions: int, flash: int = 1000, exact: bool = True, scratch: int = 0
) -> ScheduleTrial:
    return ScheduleTrial(
        "layer", "rv32imc", "zig 1", VERSION, schedule, instructions, None, flash, scratch, exact
    )


def test_trials_survive_a_file_and_a_cut_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trials.jsonl"
    append_trials(path, [trial("mac a=1", 10), trial("mac a=2", 20)])
    with path.open("a") as stream:
        stream.write('{"layer": "la')
    assert [t.instructions for t in read_trials(path)] == [10, 20]
    assert capsys.readouterr().err == ""
    append_trials(path, [trial("mac a=3", 30)])
    assert [t.instructions for t in read_trials(path)] == [10, 20, 30]
    said = capsys.readouterr().err
    assert said.startswith(f"covp: {path}:3: one line is damaged") and said.count("\n") == 1


def test_damaged_lines_are_skipped_counted_and_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trials.jsonl"
    append_trials(path, [trial(f"mac a={number}", number) for number in range(40)])
    lines = path.read_bytes().splitlines()
    junk = (b"", b"\xff\0", lines[5][:30], b"[" * 10_000, b'{"layer": 1}', lines[0] * 2)
    for place, text in enumerate(junk):
        lines[3 + 5 * place] = text
    path.write_bytes(b"\n".join(lines))
    spoilt = {3 + 5 * place for place in range(len(junk))}
    assert [t.instructions for t in read_trials(path)] == [n for n in range(40) if n not in spoilt]
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"covp: {path}:4: 6 of 40 lines are damaged and skipped")
    (folder := tmp_path / "folder.jsonl").mkdir()
    assert read_trials(folder) == []
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"covp: {folder} cannot be read")


def test_the_best_is_exact_and_depends_on_the_objective(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    rows = [
        trial("mac a=1", 98_000, flash=1000),
        trial("mac a=2", 90_000, flash=4000),
        trial("mac a=3", 10_000, exact=False),
    ]
    append_trials(path, rows)
    records = Records([path])

    def best(objective: Objective) -> str:
        known = records.trials("layer", "rv32imc", "zig 1")
        found = best_of(known, BuildOptions(optimize=objective))
        assert found is not None
        return found.schedule

    assert (best("cycles"), best("balanced"), best("size")) == ("mac a=2", "mac a=1", "mac a=1")
    assert records.trials("layer", "rv32imc", "gcc 12") == []


def test_the_best_keeps_within_its_scratch_memory() -> None:
    records = Records([])
    for row in (trial("mac a=1", 100, scratch=64), trial("mac a=2", 90, scratch=65)):
        records.add(row)

    def best(most: int | None) -> ScheduleTrial | None:
        known = records.trials("layer", "rv32imc", "zig 1")
        return best_of(known, BuildOptions(max_scratch=most))

    assert [t.schedule if (t := best(most)) else None for most in (None, 65, 64, 63)] == [
        "mac a=2",
        "mac a=2",
        "mac a=1",
        None,
    ]


def test_a_search_with_a_limit_of_scratch_memory_finds_what_is_within(own_cache: Path) -> None:
    (op, *_) = (op for op in run_passes(covp.load_model("kws")).ops if op.kind == "SOFTMAX")
    graph = Graph("one", [op.input(0)], [op.output], [op])
    platform = covp.load_platform("riscv32")
    (free,) = tune(graph, platform, records=Records([]))
    assert free.best is not None and free.best.scratch_bytes > 0
    (limited,) = tune(graph, platform, options=Options(build=BuildOptions(max_scratch=0)))
    assert limited.tried == free.tried and limited.best == limited.best_for("cycles")
    assert limited.best is not None and limited.best.scratch_bytes == 0
    choose = recorded_schedules(platform, max_scratch=0)
    assert str(choose(op)) == limited.best.schedule


def test_a_core_without_trials_takes_those_of_the_one_it_is_like(own_cache: Path) -> None:
    (op, *_) = run_passes(covp.load_model("toycar")).ops
    records, key = Records([]), layer_key(op)

    def chosen(core: str) -> str | None:
        found = records.find(op, find_core(core), "zig 1")
        return None if found is None else found.schedule

    records.add(dataclasses.replace(trial("mac a=1", 1), layer=key))
    assert [chosen(c) for c in ("rv32imac", "rv32imafc")] == ["mac a=1"] * 2
    assert [chosen(c) for c in ("cortex-m33", "cortex-m0plus")] == [None] * 2
    records.add(dataclasses.replace(trial("mac a=2", 9), layer=key, core="rv32imac"))
    assert chosen("rv32imac") == "mac a=2"


def test_like_cores_are_offered_the_same_schedules() -> None:
    """So that any of them fits."""
    similar = [core for core in all_cores() if core.like]
    assert similar
    for op in run_passes(covp.load_model("kws")).ops:
        for core in similar:
            ours, theirs = (
                set(schedules(KernelRequest(op, c, "layer")))
                for c in (core, find_core(core.like[-1]))
            )
            assert ours == theirs


def test_the_front_drops_what_is_beaten_twice() -> None:
    rows = [
        trial("mac a=1", 100, flash=1000),
        trial("mac a=2", 90, flash=4000),
        trial("mac a=3", 95, flash=4000),
        trial("mac a=4", 120, flash=900),
        trial("mac a=5", 1, flash=1, exact=False),
    ]
    assert [t.schedule for t in pareto_front(rows)] == ["mac a=2", "mac a=1", "mac a=4"]


def test_trials_of_other_versions_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    append_trials(path, [dataclasses.replace(trial("mac a=1", 1), version=VERSION - 1)])
    assert Records([path]).trials("layer", "rv32imc", "zig 1") == []


@pytest.mark.parametrize("strategy", ["model", "random", "exhaustive"])
def test_a_search_proposes_every_point_once_and_the_default_first(strategy: str) -> None:
    points = [Schedule("mac", {"a": a, "b": b}) for a in (1, 2, 3) for b in (1, 2, 4, 8)]
    search = make_search(strategy, points)  # type: ignore[arg-type]
    seen = []
    while proposed := search.propose(3):
        for point in proposed:
            search.learn(point, 100 / point["a"] + point["b"])
        seen += proposed
    assert seen[0] == points[0]
    assert sorted(map(str, seen)) == sorted(map(str, points))


def test_the_model_finds_a_smooth_minimum_before_random_does() -> None:
    points = [Schedule("mac", {"a": a, "b": b}) for a in range(1, 17) for b in range(1, 17)]

    def score(point: Schedule) -> float:
        return float(10 + (np.log2(point["a"]) - 3) ** 2 + (np.log2(point["b"]) - 2) ** 2)

    def trials_to_best(strategy: str) -> int:
        search = make_search(strategy, points, seed=1)  # type: ignore[arg-type]
        for count in range(1, len(points) + 1):
            (point,) = search.propose(1)
            search.learn(point, score(point))
            if (point["a"], point["b"]) == (8, 4):
                return count
        raise AssertionError("never proposed")

    assert trials_to_best("model") < 40 < trials_to_best("random")


@pytest.mark.costly
def test_tuning_keeps_trials_resumes_and_is_used(own_cache: Path) -> None:
    graph, platform = covp.load_model("toycar"), covp.load_platform("riscv32")
    reported: list[Progress] = []
    first = tune(graph, platform, options=Options(trials=1), report=reported.append)
    assert len(reported) == sum(result.tried for result in first) == len(first)
    assert {progress.total for progress in reported} == {len(reported)}
    assert all(result.best is not None and result.best.exact for result in first)
    again = tune(graph, platform, options=Options(trials=1))
    assert all(result.tried == 2 for result in again)

    choose = recorded_schedules(platform)
    program = covp.compile(graph, platform, schedules=choose)
    by_index = {result.op.index: result.best for result in again}
    assert {layer.index: layer.schedule for layer in program.layers} == {
        index: best.schedule for index, best in by_index.items() if best is not None
    }


@pytest.mark.costly
def test_each_layer_gets_its_share_of_the_time(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a clock that a trial moves by a second."""
    now = 0.0

    def report(progress: Progress) -> None:
        nonlocal now
        now += 1.0

    monkeypatch.setattr("covp.building.tune.tuner.monotonic", lambda: now)
    graph, platform = covp.load_model("toycar"), covp.load_platform("riscv32")
    layers = len(tune(graph, platform, options=Options(seconds=0)))
    assert now == 0
    options = Options(seconds=layers, strategy="random")
    results = tune(graph, platform, options=options, report=report)
    assert [result.tried for result in results] == [1] * layers


def test_a_layer_key_is_the_content(own_cache: Path) -> None:
    graph = covp.load_model("toycar")
    ops = run_passes(graph).ops
    again = run_passes(covp.load_model("toycar")).ops
    assert [layer_key(op) for op in ops] == [layer_key(op) for op in again]
    assert len({layer_key(op) for op in ops}) == len(ops)


def test_a_schedule_that_does_not_fit_is_refused() -> None:
    graph = run_passes(covp.load_model("toycar"))
    wrong = Schedule("smlad", {"pixels": 1, "channels": 1, "unroll": 1, "weights": 8})
    with pytest.raises(UsageError, match="does not fit"):
        covp.compile(graph, "riscv32", schedules=lambda op: wrong)
    with pytest.raises(UsageError, match="not a schedule"):
        Schedule.parse("mac pixels")


def test_the_default_is_among_the_schedules() -> None:
    platform = covp.load_platform("cortex-m4")
    for op in run_passes(covp.load_model("kws")).ops:
        points = schedules(KernelRequest(op, platform.core, "layer"))
        assert len(points) == len(set(points))
