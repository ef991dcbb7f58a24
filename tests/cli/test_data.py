"""covp run --data: samples with labels from files, in the report and in the document."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from covp.evaluation.data.quality import DataRecord
from covp.evaluation.documents import Run
from covp.graph.models import read_model
from covp.graph.reference import run_reference

from .conftest import Call
from .documents import run_of

COMPARED = ("cpu", "accelerated")


@pytest.fixture
def samples(tmp_path: Path) -> tuple[Path, Path]:
    """24 samples of the small model and labels."""
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.normal(0, 3, (24, 6, 6, 2)).astype(np.float32))
    np.save(tmp_path / "y.npy", rng.integers(0, 4, 24))
    return tmp_path / "x.npy", tmp_path / "y.npy"


def document(call: Call, *arguments: object) -> Run:
    outcome = call("run", *arguments, "--json")
    assert outcome.status == 0, outcome.err
    return run_of(outcome.document)


@pytest.mark.costly
def test_document(call: Call, small: Path, samples: tuple[Path, Path]) -> None:
    x, y = samples
    graph = read_model(small)
    run = document(call, small, "-p", "riscv32", "--data", x, "--labels", y)
    assert isinstance(run.data, DataRecord) and run.data.top5 is None
    steps = np.load(x).astype(np.float64) / 0.05
    stored = np.clip(np.floor(np.abs(steps) + 0.5) * np.sign(steps) - 3, -128, 127)
    answers = [run_reference(graph, [row[None].astype(np.int8)])[0] for row in stored]
    right = [np.argmax(answer) for answer in answers] == np.load(y)
    assert run.data.top1 == pytest.approx(np.mean(right))
    assert (run.data.samples, run.data.on, run.data.steps) == (24, "device", 1)
    cycles = run.data.cycles
    assert cycles is not None and run.cycles is not None
    assert 0 < cycles.min <= run.cycles <= cycles.max  # the run is of the first sample
    (output,) = run.outputs
    assert output.data == answers[0].reshape(-1).tolist()
    assert (output.scale, output.zero_point) == (1 / 256, -128)
    assert output.values == [(value + 128) / 256 for value in output.data]
    plain = document(call, small, "-p", "riscv32")
    assert plain.data is None


def test_report(call: Call, small: Path, samples: tuple[Path, Path]) -> None:
    x, y = samples
    command = ("run", small, "-p", "riscv32", "--data", x, "--labels", y)
    outcome = call(*command)
    assert outcome.status == 0 and "24 samples on the device: top-1 " in outcome.out
    outcome = call(*command, "--data-on", "reference", "--data-limit", 7)
    assert "7 samples by the bit-exact reference, not on the device: top-1 " in outcome.out
    help_text = call("run", "--help").out
    assert "Samples:" in help_text and "--data-limit" in help_text


def test_wrong_calls(call: Call, small: Path, samples: tuple[Path, Path]) -> None:
    x, y = samples
    refusal = call("run", small, "-p", "riscv32", "--labels", y).refusal
    assert "--labels belongs to samples: name them with --data" in refusal
    refusal = call("run", small, "-p", "riscv32", "--data", y).refusal
    assert "y.npy: has the shape (24,)" in refusal and "input_0 takes int8" in refusal
    refusal = call("run", small, "-p", "riscv32", "--data", x, "--labels", x).refusal
    assert "72 values for each sample" in refusal


def test_compare(call: Call, small: Path, samples: tuple[Path, Path]) -> None:
    x, y = samples
    command = ("compare", small, "-p", "riscv32", "-a", "qconv2d", "--data", x, "--labels", y)
    rows = call(*command, "--json").document["rows"]
    alone, accelerated = (run_of(rows[0][name]).data for name in COMPARED)
    assert alone is not None and accelerated is not None
    assert alone.top1 == accelerated.top1 is not None
    assert alone.cycles is not None and accelerated.cycles is not None
    assert alone.cycles.max != accelerated.cycles.max
    assert alone.litert is not None or alone.litert_reason is not None
    text = call(*command).out
    assert "small alone: 24 samples on the device: top-1" in text
    assert "small with qconv2d: 24 samples on the device: top-1" in text
    text = call(*command, "--data-on", "reference").out
    assert "small alone: 24 samples by the bit-exact reference" in text
    assert "small with qconv2d: 24" not in text


def test_a_comparison_of_samples_that_do_not_fit_runs_nothing(
    call: Call, small: Path, samples: tuple[Path, Path]
) -> None:
    x, y = samples
    command = ("compare", small, "toycar", "-p", "riscv32", "-a", "qconv2d")
    refusal = call(*command, "--data", x, "--labels", y).refusal
    assert "x.npy: has the shape (24, 6, 6, 2)" in refusal and "(samples, 1, 640)" in refusal


def test_several_platforms(call: Call, small: Path, samples: tuple[Path, Path]) -> None:
    x, y = samples
    platforms = ("-p", "riscv32", "-p", "cortex-m4")
    command = ("compare", small, *platforms, "--data", x, "--labels", y)
    document = call(*command, "--json").document
    found = [run_of(row["run"]).data for row in document["rows"]]
    assert len({data.top1 for data in found if data}) == 1
    assert len({data.cycles.mean for data in found if data and data.cycles}) == 2
    text = call(*command).out
    assert "small on cortex-m4: 24 samples on the device" in text and "accuracy" in text
