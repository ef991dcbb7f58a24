"""A folder in the layout of MLPerf Tiny's runner gives what `covp mlperf` finds with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from covp.errors import UsageError
from covp.evaluation import build
from covp.evaluation.data import Data, accuracy_of
from covp.firmware.mlperf.sweep import sweep
from tests.firmware.mlperf.samples import write_classes, write_spectra


@pytest.mark.parametrize(("model", "name"), [("kws", "kws01"), ("toycar", "ad01")])
def test_as_covp_mlperf(model: str, name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    if name == "ad01":
        write_spectra(tmp_path / name, [0, 1, 1, 0, 1])
    else:
        write_classes(tmp_path / name, name, rng.integers(0, 12, 12).tolist())
    (row,) = sweep([model], ["riscv32"], data=tmp_path)
    assert row.quality is not None
    made = build(model, "riscv32")
    for data in (Data(tmp_path / name), Data(tmp_path, on="reference")):
        found = accuracy_of(made, data)
        assert (found.accuracy, found.samples) == (row.quality.value, row.quality.samples)
    limited = accuracy_of(made, Data(tmp_path, limit=3, on="reference"))
    assert limited.samples == 3


def test_labels_of_the_runner_are_checked(tmp_path: Path) -> None:
    write_classes(tmp_path / "kws01", "kws01", [1, 2])
    labels = tmp_path / "kws01" / "y_labels.csv"
    labels.write_text(labels.read_text().replace(",2\n", ",12\n"))
    with pytest.raises(UsageError, match=r"y_labels.csv:2: class 12 of 12"):
        accuracy_of(build("kws", "riscv32"), Data(tmp_path))
