"""Rows of a sweep against single runs of the same designs, and accuracies against plain counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from covp.evaluation import build, evaluate, run
from covp.evaluation.varied import vary_design
from covp.exploration.sweep.evaluate import evaluate_points
from covp.exploration.sweep.points import Point
from covp.exploration.sweep.reader import make_spec
from covp.exploration.sweep.space import expand
from covp.graph.models import load_model
from covp.graph.reference import run_reference
from tests.cli.conftest import small_model


def test_a_row_has_the_figures_of_a_run_and_a_failure_is_a_row():
    points = [Point("toycar", "riscv32"), Point("toycar", "riscv32", ("gemm:size=999",))]
    good, bad = evaluate_points(points)
    run = evaluate("toycar", "riscv32")
    assert good.is_ok and good.matches_reference
    assert good.cycles == run.profile.cycles and good.flash_bytes == run.memory.flash_bytes
    assert bad.status == "failed" and bad.reason is not None and "size=999" in bad.reason
    assert bad.cycles is None


@pytest.fixture
def data(tmp_path: Path) -> tuple[dict[str, Any], float]:
    """A sweep with samples of which some are labelled wrongly, and the share of the others."""
    (tmp_path / "m.tflite").write_bytes(small_model())
    graph = load_model(tmp_path / "m.tflite")
    rng = np.random.default_rng(4)
    samples = rng.integers(-128, 128, (12, 6, 6, 2)).astype(np.int8)
    classes = [int(run_reference(graph, [one[None]])[0].argmax()) for one in samples]
    right = rng.random(12) < 0.7
    labels = np.where(right, classes, [(each + 1) % 4 for each in classes])
    np.save(tmp_path / "x.npy", samples)
    np.save(tmp_path / "y.npy", labels)
    content = {
        "models": ["m.tflite"],
        "platforms": ["riscv32"],
        "accelerators": [[], ["gemm"]],
        "data": {"samples": "x.npy", "labels": {"m.tflite": "y.npy"}},
    }
    return content, float(right.mean())


@pytest.mark.parametrize("on", ["device", "reference"])
def test_the_accuracy_is_the_share_of_samples_that_are_right(tmp_path, data, on):
    content, share = data
    content["data"]["on"] = on
    rows = evaluate_points(expand(make_spec(content, folder=tmp_path)))
    assert [row.accuracy for row in rows] == [share, share]


def test_other_samples_are_another_design(tmp_path, data):
    content, _ = data
    keys = [expand(make_spec(content, folder=tmp_path))[0].key]
    for change in ({"limit": 3}, {"on": "reference"}):
        changed = {**content, "data": {**content["data"], **change}}
        keys.append(expand(make_spec(changed, folder=tmp_path))[0].key)
    labels = np.load(tmp_path / "y.npy")
    np.save(tmp_path / "y.npy", (labels + 1) % 4)
    keys.append(expand(make_spec(content, folder=tmp_path))[0].key)
    assert len(set(keys)) == 4


@pytest.mark.costly
def test_retimed_rows_are_those_of_runs_and_independent_of_their_company(tmp_path):
    (tmp_path / "m.tflite").write_bytes(small_model())
    content = {
        "models": ["m.tflite"],
        "platforms": ["riscv32", "cortex-m4", "nucleo-l4r5zi"],
        "accelerators": [
            [],
            ["gemm:technology=gemmini-22nm", "vector"],
            ["qconv2d:wait=sleep"],
        ],
        "vary": {
            "gemm.size": [4, 32],
            "gemm.bytes_per_cycle": [1, 8],
            "qconv2d.startup_cycles": [500, 0],
            "vector.macs_per_cycle": [2, 16],
            "platform.ram.wait_states": [0, 3],
            "platform.timing": ["unit"],
        },
    }
    points = expand(make_spec(content, folder=tmp_path))
    rows = evaluate_points(points)
    assert {row.reason for row in rows} == {None}
    # what a cache that reads in advance does at another time is not in a trace
    hows = {(row.platform, row.how) for row in rows}
    assert hows == {("riscv32", "retimed"), ("cortex-m4", "retimed"), ("nucleo-l4r5zi", "run")}
    for number in range(0, len(points), 6):
        point, row = points[number], rows[number]
        assert evaluate_points([point]) == [row]
        platform, units = vary_design(point.platform, point.accelerators, point.values)
        made = build(point.model, platform, units, allow_slower=True, allow_unused=True)
        record = run(made, check="output").record()
        offloads = (layer.offload for layer in record.layers)
        assert row.waiting == sum(offload.waiting for offload in offloads if offload)
        for name in ("instructions", "cycles", "seconds", "matches_reference", "mac_coverage"):
            assert getattr(row, name) == getattr(record, name), (name, point)
        energy = record.energy_j
        assert row.energy_j == (energy and pytest.approx(energy, rel=1e-12))
        source = record.cycles_source
        assert source is not None
        assert (row.cycles_model, row.cycles_error) == (source.model, source.error)


def test_a_value_that_is_not_allowed_fails_alone(tmp_path):
    points = [
        Point("toycar", "riscv32", ("gemm",), vary=(("gemm.bytes_per_cycle", value),))
        for value in (1, 4, 0, 8, 5000)
    ]
    rows = evaluate_points(points)
    assert [row.how for row in rows] == ["retimed", "retimed", None, "retimed", None]
    assert ["=0 must be" in str(row.reason) for row in rows] == [False, False, True, False, False]
    assert "=5000 must be" in str(rows[4].reason)


@pytest.mark.costly
def test_layers_are_placed_anew_for_each_design(tmp_path):
    """Of two units that can do a layer the faster one gets it, by the parameters of the design."""
    (tmp_path / "m.tflite").write_bytes(small_model())
    content = {
        "models": ["m.tflite"],
        "platforms": ["esp32-c3"],
        "accelerators": [["a=gemm", "b=qconv2d:wait=sleep"]],
        "vary": {
            "b.macs_per_cycle": [1, 64],
            "a.startup_cycles": [0, 20000],
            "platform.cache.size": ["8K", "16K"],
        },
    }
    points = expand(make_spec(content, folder=tmp_path))
    rows = evaluate_points(points)
    assert {row.how for row in rows} == {"retimed"}
    for point, row in zip(points, rows, strict=True):
        assert evaluate_points([point]) == [row]
        platform, units = vary_design(point.platform, point.accelerators, point.values)
        made = build(point.model, platform, units, allow_slower=True, allow_unused=True)
        profile = run(made, check="output").profile
        assert (row.cycles, row.instructions) == (profile.cycles, profile.instructions)
    assert len({row.cycles for row in rows}) == 3
