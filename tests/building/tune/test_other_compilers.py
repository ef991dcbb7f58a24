"""Which records a layer takes: a schedule stays valid under another compiler and other weights."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import covp
from covp.building.tune.records import (
    VERSION,
    Records,
    ScheduleTrial,
    append_trials,
    by_distance,
    layer_key,
    read_trials,
    structure_key,
    trial_file,
)
from covp.building.tune.tuner import Options, remeasure_candidates, tune
from covp.chip.cores import Core, find_core
from covp.codegen.layer import KernelRequest, schedules
from covp.codegen.schedule import Schedule
from covp.compilers.toolchain import get_toolchain
from covp.evaluation import ScheduleSource, build, recorded_schedules
from covp.graph.graph import Graph, Op
from covp.graph.passes import run_passes

CORE = find_core("rv32imc")


@pytest.fixture
def op(monkeypatch: pytest.MonkeyPatch) -> Op:
    monkeypatch.delenv("COVP_MODEL_DIR", raising=False)
    return run_passes(covp.load_model("toycar")).ops[0]


def with_other_weights(op: Op) -> Op:
    inputs = [
        t
        if t is None or t.data is None or t.data.dtype != np.int8
        else dataclasses.replace(t, data=t.data[::-1].copy())
        for t in op.inputs
    ]
    return dataclasses.replace(op, inputs=inputs)


def trial(
    op: Op, schedule: str, compiler: str, instructions: int = 10, core: Core = CORE
) -> ScheduleTrial:
    return ScheduleTrial(
        layer_key(op), core.name, compiler, VERSION, schedule, instructions, None, 100, 0, True,
        structure=structure_key(op),
    )  # fmt: skip


def chosen(records: Records, op: Op, core: Core = CORE, compiler: str = "zig 0.17.1") -> str | None:
    found = records.find(op, core, compiler)
    return None if found is None else found.schedule


def test_compilers_by_distance() -> None:
    known = ["gcc 12.2.0", "gcc 13.1", "zig 0.13.0", "zig 0.16.0", "zig 0.17.0", "zig 0.17.3"]
    nearest = ["zig 0.17.3", "zig 0.17.0", "zig 0.16.0", "zig 0.13.0", "gcc 13.1", "gcc 12.2.0"]
    assert by_distance("zig 0.17.2", known) == nearest
    assert by_distance("zig 0.17.0", known)[0] == "zig 0.17.0"
    assert by_distance("zig", known)[-2:] == ["gcc 13.1", "gcc 12.2.0"]
    assert by_distance("gcc 14.0", known)[0] == "gcc 13.1"
    assert by_distance("zig 0.18.0-dev.12+ab1", known)[0] == "zig 0.17.3"


def test_the_order_of_what_counts(op: Op) -> None:
    """Each addition counts more than all before it, however many instructions it says."""
    valid = [str(point) for point in schedules(KernelRequest(op, find_core("rv32imac"), "layer"))]
    other, core = with_other_weights(op), find_core("rv32imac")
    records, cost = Records([]), 10
    assert chosen(records, op, core) is None
    order = [
        (other, "gcc 12.2.0", CORE),
        (other, "zig 0.17.0", CORE),
        (other, "zig 0.17.0", core),
        (op, "gcc 12.2.0", CORE),
        (op, "zig 0.16.0", CORE),
        (op, "zig 0.17.0", CORE),
        (op, "gcc 12.2.0", core),
        (op, "zig 0.16.0", core),
        (op, "zig 0.17.0", core),
        (op, "zig 0.17.1", core),
    ]
    for schedule, (layer, compiler, where) in zip(valid, order, strict=False):
        records.add(trial(layer, schedule, compiler, cost, where))
        assert chosen(records, op, core) == schedule
        cost *= 10
    assert len(valid) >= len(order)


def test_other_weights_get_no_schedule_that_their_layer_cannot_take(op: Op) -> None:
    other, records = with_other_weights(op), Records([])
    assert structure_key(op) == structure_key(other) and layer_key(op) != layer_key(other)
    valid = [str(point) for point in schedules(KernelRequest(op, CORE, "layer"))]
    records.add(trial(other, "mac no_such_knob=1", "zig 0.17.0", 1))
    assert chosen(records, op) is None
    records.add(trial(other, valid[3], "zig 0.17.0", 5))
    assert chosen(records, op) == valid[3]


def test_a_structure_is_kind_attributes_shapes_and_types(op: Op) -> None:
    ops = run_passes(covp.load_model("toycar")).ops
    assert len({structure_key(each) for each in ops}) < len({layer_key(each) for each in ops})
    x = dataclasses.replace(op.input(0), dtype=np.dtype(np.float32))
    float32 = dataclasses.replace(op, inputs=[x, *op.inputs[1:]])
    assert structure_key(float32) != structure_key(op)


def test_lines_of_older_files_are_read(op: Op, tmp_path: Path) -> None:
    schedule, path = str(schedules(KernelRequest(op, CORE, "layer"))[1]), tmp_path / "a"
    old = dataclasses.replace(trial(op, schedule, "zig 0.17.1"), structure="")
    append_trials(path, [old])
    path.write_text(path.read_text().replace(', "structure": ""', ""))
    assert "structure" not in path.read_text() and read_trials(path) == [old]
    assert chosen(Records([path]), op) == schedule


def test_what_comes_with_covp_has_every_structure() -> None:
    records = Records.available()
    for layer, core, compiler in records.layers():
        assert all(t.structure for t in records.trials(layer, core, compiler) if "gcc" in compiler)


def test_files_of_other_cores_stay_unread(
    op: Op, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cortex-m4f-mine.jsonl").write_text("damaged\nand more\n")
    (tmp_path / "mine.jsonl").write_text("")
    schedule = str(schedules(KernelRequest(op, CORE, "layer"))[1])
    append_trials(tmp_path / "rv32imc-mine.jsonl", [trial(op, schedule, "zig 0.17.1")])
    records = Records(sorted(tmp_path.glob("*")))
    assert chosen(records, op) == schedule
    assert capsys.readouterr().err == ""
    chosen(records, op, find_core("cortex-m4f"))
    assert "cortex-m4f-mine.jsonl:1: 2 of 2 lines are damaged" in capsys.readouterr().err


def test_a_schedule_that_does_not_fit_is_skipped_and_said_once(
    op: Op, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line of a file that was changed is a trial, and cheaper than all others."""
    fast, slow = [str(point) for point in schedules(KernelRequest(op, CORE, "layer"))[1:3]]
    path = tmp_path / "own.jsonl"
    junk = ["mac pixels=99", "nonsense", "", "mac =", f"{fast} x=1"]
    rows = [trial(op, slow, "zig 0.17.1", 200), trial(op, fast, "zig 0.17.1", 100)]
    append_trials(path, [*rows, *(trial(op, text, "zig 0.17.1", 1) for text in junk)])
    records = Records([path])
    assert [chosen(records, op) for _ in range(3)] == [fast] * 3
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and f"{path}: 5 schedules" in said and op.name in said
    append_trials(path, [trial(op, junk[0], "zig 0.17.2", 1)])
    other = Records([path])
    assert chosen(other, op, compiler="zig 0.17.2") == fast
    assert remeasure_candidates(other, op, CORE, "zig 0.17.2")[0] == Schedule.parse(fast)


def test_records_do_not_change_under_a_process(
    op: Op, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `covp tune` in another process would, between the two runs of a comparison."""
    monkeypatch.setattr("covp.building.tune.records.own_folder", lambda: tmp_path)
    platform = covp.load_platform("riscv32")
    choose = recorded_schedules(platform)
    compiler = get_toolchain("zig", CORE).version
    valid = schedules(KernelRequest(op, CORE, "layer"))
    for schedule in valid[:3]:
        append_trials(trial_file(CORE, compiler), [trial(op, str(schedule), compiler, 1)])
        assert recorded_schedules(platform)(op) == choose(op)


def test_python_and_the_command_line_take_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("covp.building.tune.records.own_folder", lambda: tmp_path)
    graph, platform = covp.load_model("kws"), covp.load_platform("riscv32")
    recorded = [layer.schedule for layer in covp.compile(graph, platform).layers]
    by_name = covp.compile(graph, platform, schedules=recorded_schedules(platform))
    assert recorded == [layer.schedule for layer in by_name.layers]
    plain = [layer.schedule for layer in covp.compile(graph, platform, schedules=None).layers]
    assert recorded != plain
    assert build(graph, platform).schedules.layers > 0
    assert str(build(graph, platform, schedules=None).schedules) == "no tuned schedules"


def test_the_line_that_says_where_schedules_come_from(op: Op) -> None:
    other, own = with_other_weights(op), trial(op, "mac a=1", "zig 0.17.0")
    assert str(ScheduleSource.of([(op, own)])) == "schedules tuned with zig 0.17.0"
    mixed = ScheduleSource.of([(op, own), (other, dataclasses.replace(own, compiler="gcc 12.2"))])
    text = "schedules tuned with gcc 12.2, zig 0.17.0 (for other weights: 1 of 2)"
    assert str(mixed) == text
    assert str(mixed + ScheduleSource()) == text


def test_a_search_measures_again_what_it_takes_over(
    op: Op, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("covp.building.tune.records.own_folder", lambda: tmp_path)
    compiler = get_toolchain("zig", CORE).version
    points = schedules(KernelRequest(op, CORE, "layer"))
    records = Records([])
    records.add(trial(op, str(points[-1]), "zig 0.1.0", 1))
    graph = Graph("one", [op.input(0)], [op.output], [op])
    platform = covp.load_platform("riscv32")
    (result,) = tune(graph, platform, options=Options(trials=2), records=records)
    assert [t.schedule for t in result.trials] == [str(points[-1]), str(points[0])]
    assert {t.compiler for t in result.trials} == {compiler}
    assert all(t.instructions != 1 for t in result.trials) and result.default is not None


def test_a_schedule_that_became_slower_than_the_default_gives_way_to_it(
    op: Op, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After two trials: what builds took over, and the default."""
    monkeypatch.setattr("covp.building.tune.records.own_folder", lambda: tmp_path)
    default, slow = schedules(KernelRequest(op, CORE, "layer"))[:2]
    compiler = get_toolchain("zig", CORE).version
    records = Records([])
    records.add(trial(op, str(slow), "zig 0.1.0", 1))
    assert chosen(records, op, compiler=compiler) == str(slow)
    graph = Graph("one", [op.input(0)], [op.output], [op])
    platform = covp.load_platform("riscv32")
    (result,) = tune(graph, platform, options=Options(trials=2), records=records)
    assert result.best == result.default
    assert chosen(records, op, compiler=compiler) == str(default)
