"""A float model and LiteRT beside the emulated core, on the same samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from covp.errors import UsageError
from covp.evaluation import build
from covp.evaluation.data import Beside, Data, accuracy_of
from covp.graph.reference import run_reference
from covp.graph.zoo.tflite_writer import write_tflite

from .networks import classifier, dense, floats, summing


@pytest.fixture
def data(tmp_path: Path) -> Data:
    np.save(tmp_path / "x.npy", floats((50, 6, 6, 2)))
    np.save(tmp_path / "y.npy", np.random.default_rng(1).integers(0, 12, 50))
    return Data(tmp_path / "x.npy", tmp_path / "y.npy", "reference")


def test_the_float_model_gets_the_floats(data: Data) -> None:
    graph, twin = classifier(), classifier(dtype="float32")
    assert data.labels is not None
    x, labels = np.load(data.samples), np.load(data.labels)
    classes = np.array([np.argmax(run_reference(twin, [sample[None]])[0]) for sample in x])
    found = accuracy_of(build(graph, "riscv32"), data, float_model=twin)
    own = found.float_model
    assert own is not None and own.other_bytes is None
    assert own.scores.top1 == pytest.approx(np.mean(classes == labels))
    stored = np.clip(np.round(x.astype(np.float64) / 0.05) - 3, -128, 127).astype(np.int8)
    ours = np.array([np.argmax(run_reference(graph, [s[None]])[0]) for s in stored])
    assert own.other_classes == int(np.sum(ours != classes))
    # values that are stored already mean what they are dequantized to
    np.save(data.samples, stored)
    meant = ((stored + 3.0) * np.float32(0.05)).astype(np.float32)
    again = [np.argmax(run_reference(twin, [sample[None]])[0]) for sample in meant]
    found = accuracy_of(build(graph, "riscv32"), data, float_model=twin)
    assert found.float_model is not None
    assert found.float_model.scores.top1 == pytest.approx(np.mean(np.array(again) == labels))


def test_another_network_is_refused(data: Data) -> None:
    made = build(classifier(), "riscv32")
    with pytest.raises(UsageError, match="dense maps 8 to 8 values, classifier 72 to 12: it is no"):
        accuracy_of(made, data, float_model=dense(8, 8))


def test_agreement_with_litert(data: Data, tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert.interpreter")
    path = tmp_path / "model.tflite"
    path.write_bytes(write_tflite(classifier()))
    found = accuracy_of(build(classifier(), "riscv32"), data, litert=path).litert
    assert isinstance(found, Beside)
    assert found.what.startswith("LiteRT ")
    assert (found.other_classes, found.other_bytes) == (0, 0)
    # another model in its place is found out
    other = classifier()
    weights = other.ops[0].input(1).data
    assert weights is not None
    other.ops[0].input(1).data = -weights
    path.write_bytes(write_tflite(other))
    found = accuracy_of(build(classifier(), "riscv32"), data, litert=path).litert
    assert isinstance(found, Beside)
    assert (found.other_bytes or 0) >= (found.other_classes or 0) > 0


def test_where_litert_cannot_run(
    data: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, path = build(classifier(), "riscv32"), tmp_path / "model.tflite"
    path.write_bytes(write_tflite(classifier()))
    monkeypatch.setattr("covp.evaluation.data.beside._MODULE", "no_such_module")
    reason = accuracy_of(made, data, litert=path).litert
    assert reason == "not installed: pip install ai-edge-litert"
    (tmp_path / "model.onnx").write_bytes(b"")
    assert accuracy_of(made, data, litert=tmp_path / "model.onnx").litert is None
    np.save(tmp_path / "steps.npy", np.zeros((2, 4, 3), np.int8))
    sums = accuracy_of(build(summing(), "riscv32"), Data(tmp_path / "steps.npy"), litert=path)
    assert "keeps states" in str(sums.litert)


def test_an_autoencoder_names_no_classes(tmp_path: Path) -> None:
    graph = dense(8, 8)
    np.save(tmp_path / "x.npy", floats((4, 8)))
    found = accuracy_of(build(graph, "riscv32"), Data(tmp_path / "x.npy"), float_model=graph)
    assert found.float_model is not None and found.float_model.other_classes is None
