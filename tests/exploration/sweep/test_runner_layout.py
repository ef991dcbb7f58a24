"""Samples of a sweep in the layout of MLPerf Tiny's runner."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from covp.errors import UsageError
from covp.evaluation import build
from covp.evaluation.data import Data, accuracy_of
from covp.exploration.sweep.evaluate import evaluate_points
from covp.exploration.sweep.reader import make_spec
from covp.exploration.sweep.space import expand
from tests.firmware.mlperf.samples import write_classes, write_spectra


@pytest.mark.costly
def test_each_model_has_its_own(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    write_classes(tmp_path / "sets" / "kws01", "kws01", rng.integers(0, 12, 6).tolist())
    write_spectra(tmp_path / "sets" / "ad01", [0, 1, 1], windows=2)
    content = {
        "models": ["kws", "toycar"],
        "platforms": ["riscv32"],
        "data": {"samples": "sets", "on": "reference"},
    }
    points = expand(make_spec(content, folder=tmp_path))
    rows = evaluate_points(points)
    assert all(row.is_ok for row in rows)
    for row in rows:
        made = build(row.model, "riscv32")
        assert row.accuracy == accuracy_of(made, Data(tmp_path / "sets")).accuracy
    (tmp_path / "sets" / "kws01" / "000.bin").write_bytes(rng.bytes(490))
    again = expand(make_spec(content, folder=tmp_path))
    assert {point.key for point in points}.isdisjoint(point.key for point in again)


def test_a_folder_without_labels_needs_the_key(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    np.save(tmp_path / "plain" / "0.npy", np.zeros((49, 10), np.int8))
    content = {"models": ["kws"], "platforms": ["riscv32"], "data": {"samples": "plain"}}
    with pytest.raises(UsageError, match=r"data: kws: .*plain: has no labels of its own"):
        expand(make_spec(content, folder=tmp_path))
