"""Rows of a sweep against single runs of the same designs, and accuracies against plain counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from covp.evaluation import evaluate
from covp.graph.reference import run_reference
from covp.models import load_model
from covp.sweep.evaluate import evaluate_points
from covp.sweep.points import Point
from covp.sweep.reader import make_spec
from covp.sweep.space import expand
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
