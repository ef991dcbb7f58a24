"""The CODAI'22 paper's network as ONNX, quantized ONNX and TFLite, on cores with an FPU."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import covp
from covp.errors import ModelError
from covp.graph.onnx import read_onnx
from covp.graph.reference import run_reference
from covp.graph.tflite import read_tflite
from covp.graph.zoo.tflite_writer import write_tflite

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))
import codai22

PLATFORMS = ["cortex-m4", "riscv32f"]


def wanted(model, x):
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, {"x": x})[0]


def test_parameters():
    assert sum(values.size for values in codai22.weights().values()) == 1525


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("quantized", [False, True])
def test_on_cores_it_is_onnxruntimes(platform, quantized):
    model, x = codai22.build_onnx(quantized), codai22.samples(128)
    program = covp.compile(read_onnx(model, shapes={"x": x.shape}), platform)
    with covp.Session(platform) as session:
        found = session.load(program).run(x)
    np.testing.assert_allclose(found, wanted(model, x), rtol=1e-5, atol=2e-6)


def test_what_int8_costs_in_accuracy():
    """The largest class stays, and no probability moves by more than 0.05."""
    exact, rounded = codai22.build_onnx(), codai22.build_onnx(True)
    for seed in range(8):
        x = codai22.samples(128, seed)
        real, stored = wanted(exact, x), wanted(rounded, x)
        assert np.argmax(real) == np.argmax(stored)
        assert np.abs(real - stored).max() < 0.05


def test_the_number_of_samples_is_given_by_the_user():
    model = codai22.build_onnx()
    with pytest.raises(ModelError, match="--shape x=1,"):
        read_onnx(model)
    for time in (25, 64):
        x = codai22.samples(time)
        found = run_reference(read_onnx(model, shapes={"x": x.shape}), [x])[0]
        np.testing.assert_allclose(found, wanted(model, x), rtol=1e-5, atol=1e-6)


def test_unrolled_it_is_the_same_network(litert):
    x = codai22.samples(29)
    data = write_tflite(codai22.build_graph(29))
    real = wanted(codai22.build_onnx(), x)
    np.testing.assert_allclose(litert(data, [x])[0], real, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(run_reference(read_tflite(data), [x])[0], real, rtol=1e-5, atol=1e-6)
