"""`covp.firmware.mlperf.sweep`: latency, memory and accuracy of models; LiteRT is the oracle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

from covp.evaluation import evaluate
from covp.evaluation.data.runner_dataset import read_dataset
from covp.evaluation.data.tasks import TASKS
from covp.firmware.mlperf.points import MeasuredPoint
from covp.firmware.mlperf.scoring import Chunk, Scorer
from covp.firmware.mlperf.sweep import sweep
from covp.graph import zoo
from covp.graph.models import load_model
from covp.graph.reference import run_reference

from .samples import (
    Litert,
    as_input,
    as_spectrum,
    pairs_won,
    write_classes,
    write_spectra,
)

MODELS = {"ic01": "resnet", "kws01": "kws", "vww01": "vww"}


def accuracies(rows: list[MeasuredPoint]) -> list[float | None]:
    assert [row.reason for row in rows] == [None] * len(rows)
    return [row.quality.value if row.quality else None for row in rows]


@pytest.mark.costly
@pytest.mark.parametrize("name", MODELS)
def test_classes_are_those_of_litert(name: str, tmp_path: Path, litert: Litert) -> None:
    """Half of the labels are its answers, the others are not."""
    contents = write_classes(tmp_path / name, name, [0] * 6, seed=3)
    content = zoo.find(MODELS[name]).path.read_bytes()
    wanted = [int(litert(content, [as_input(name, file)])[0].argmax()) for file in contents]
    count = {"ic01": 10, "kws01": 12, "vww01": 2}[name]
    labels = [(c + i % 2) % count for i, c in enumerate(wanted)]
    lines = [f"{i:03}.bin,{count},{label}\n" for i, label in enumerate(labels)]
    (tmp_path / name / "y_labels.csv").write_text("".join(lines))
    rows = sweep([MODELS[name]], ["cortex-m4"], [["qconv2d"]], data=tmp_path / name, jobs=2)
    rows += sweep([MODELS[name]], ["riscv32"], data=tmp_path, reference=name != "kws01")
    assert accuracies(rows) == [0.5, 0.5]
    by = [row.quality.computed_by for row in rows if row.quality]
    assert by == ["device", "device" if name == "kws01" else "reference"]
    assert rows[0].result is not None and (rows[0].result.mac_coverage or 0) > 0.5


@pytest.mark.costly
def test_distances_are_those_of_litert(tmp_path: Path, litert: Litert) -> None:
    labels, task = [0, 1, 0, 1, 1], TASKS["ad01"]
    files = write_spectra(tmp_path / "ad01", labels, windows=2)
    model = load_model("toycar")
    source, result = model.inputs[0], model.outputs[0]
    content = zoo.find("toycar").path.read_bytes()

    def distance(values: NDArray[np.float32], infer: Litert) -> float:
        """By its definition: the mean over the windows of the mean squared error."""
        found = []
        for window in (values[:640], values[128:768]):
            given = as_spectrum(window, source.scale, source.zero_point)
            (got,) = infer(content, [given])
            real = result.scale * (got.reshape(-1).astype(float) - result.zero_point)
            found.append(np.mean((real - window) ** 2))
        return float(np.mean(found))

    dataset = read_dataset(tmp_path / "ad01", task)
    found = Scorer()(Chunk(0, model, task, dataset.files)).values
    same = [distance(values, lambda _, inputs: run_reference(model, inputs)) for values in files]
    assert found == pytest.approx(same, rel=1e-5)
    # LiteRT rounds FULLY_CONNECTED once, TFLM twice (docs/accuracy.md): of ten layers in a row
    assert found == pytest.approx([distance(values, litert) for values in files], rel=0.03)
    rows = sweep(["toycar"], ["riscv32"], [(), ["gemm"]], data=tmp_path, jobs=2)
    assert accuracies(rows) == [pytest.approx(pairs_won(found, labels))] * 2
    assert [row.quality and row.quality.inferences for row in rows] == [10] * 2
    assert [row.quality and row.quality.metric for row in rows] == ["AUC"] * 2


@pytest.mark.costly
def test_the_cost_is_that_of_a_run() -> None:
    for row in sweep(["toycar"], ["riscv32", "cortex-m4"], [(), ["gemm"]]):
        point, cost = row.point, row.record()
        alone = evaluate("toycar", point.platform, point.accelerators, check="output")
        assert row.result is not None and row.reason is None and row.is_right
        assert (cost.instructions, cost.cycles) == (
            alone.profile.instructions,
            alone.profile.cycles,
        )
        assert cost.latency_us == pytest.approx((alone.profile.seconds or 0) * 1e6)
        assert row.inferences_per_second == pytest.approx(1e6 / (cost.latency_us or 1))
        memory = alone.memory
        assert (cost.flash_bytes, cost.ram_bytes) == (memory.flash_bytes, memory.ram_bytes)


@pytest.mark.costly
def test_the_wake_word_is_measured_by_frame(tmp_path: Path) -> None:
    """A frame costs a fraction of a window: 30 rows are computed anew in each window."""
    (frame,) = sweep(["sww"], ["cortex-m4"])
    window = evaluate("sww", "cortex-m4", check="none")
    assert frame.record().per == "frame" and frame.result is not None
    assert 5 * (frame.result.profile.instructions or 0) < (window.profile.instructions or 0)


@pytest.mark.costly
def test_the_result_does_not_depend_on_the_number_of_processes(tmp_path: Path) -> None:
    write_spectra(tmp_path / "ad01", [0, 1] * 10, windows=4)
    one, three = (
        sweep(["toycar"], ["riscv32"], data=tmp_path, reference=True, jobs=jobs)[0].record()
        for jobs in (1, 3)
    )
    one, three = (replace(record, accuracy_seconds=None) for record in (one, three))
    assert one == three and 0 < (one.accuracy or 0) < 1
