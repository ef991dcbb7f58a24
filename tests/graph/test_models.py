"""Whole models against LiteRT's reference kernels: the official ones where they are, else ours."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from covp.graph import zoo
from covp.graph.graph import Graph, Op
from covp.graph.models import load_model
from covp.graph.ops import OPS
from covp.graph.ops.convolution import conv2d_accumulate
from covp.graph.passes import run_passes
from covp.graph.reference import run_all, run_reference
from covp.graph.tflite import load_tflite, read_tflite
from covp.graph.typed_convolution import resolve
from covp.graph.zoo.tflite_writer import write_tflite

INPUTS = 20


def rounded_once(op: Op, values: Sequence[Any]) -> list[NDArray[Any]]:
    """FULLY_CONNECTED as LiteRT computes it: one rounding, ties up, where TFLM has two."""
    problem = resolve(op)
    rows = values[0].reshape(problem.batch, 1, 1, problem.in_channels)
    sums = conv2d_accumulate(rows, problem.weights, zero_point=problem.input_zero_point)
    total = 31 - problem.shift.astype(np.int64)
    products = (sums + problem.bias).astype(np.int64) * problem.multiplier
    scaled = (products + (np.int64(1) << (total - 1))) >> total
    result = np.clip(scaled + problem.output_zero_point, *problem.clamp)
    return [result.astype(np.int8).reshape(op.output.shape)]


@pytest.fixture
def as_litert(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one difference from LiteRT's reference kernels set aside, once the model is there."""
    zoo.find(name)  # a synthetic one is calibrated with the kernel that is replaced
    ours = OPS["FULLY_CONNECTED"]
    litert_like = dataclasses.replace(ours, reference=rounded_once)
    monkeypatch.setitem(OPS, "FULLY_CONNECTED", litert_like)


def random_input(graph: Graph, seed: int) -> NDArray[Any]:
    tensor = graph.inputs[0]
    rng = np.random.default_rng(seed)
    if tensor.dtype == np.int8:
        return rng.integers(-128, 128, tensor.shape).astype(np.int8)
    return rng.uniform(-1, 1, tensor.shape).astype(np.float32)


@pytest.mark.parametrize("name", [*zoo.names(), "micro_kws_m", "mnist_lstm", "dtln"])
def test_int8_model_bits(name: str, litert: Any, as_litert: None) -> None:
    content = zoo.find(name).path.read_bytes()
    graph = load_model(name)
    seen = set()
    for seed in range(INPUTS):
        value = random_input(graph, seed)
        ours = run_reference(graph, [value])[0]
        np.testing.assert_array_equal(ours, litert(content, [value])[0])
        seen.add(ours.tobytes())
    assert len(seen) > 1


@pytest.mark.parametrize("name", ["resnet", "kws", "vww", "sww"])
def test_int8_model_is_close(name: str, litert: Any) -> None:
    """With TFLM's two roundings: equal for most inputs, a few steps apart for some."""
    content = zoo.find(name).path.read_bytes()
    graph = load_model(name)
    differences = []
    for seed in range(INPUTS):
        value = random_input(graph, seed)
        ours, theirs = run_reference(graph, [value])[0], litert(content, [value])[0]
        differences.append(int(np.abs(ours.astype(int) - theirs.astype(int)).max()))
    assert max(differences) <= 3
    assert differences.count(0) >= INPUTS // 2


@pytest.mark.parametrize("name", ["resnet_float", "vww_float", "toycar_float"])
def test_float_model(name: str, litert: Any) -> None:
    """Within 1e-5 of the largest output."""
    content = zoo.find(name).path.read_bytes()
    graph = load_model(name)
    for seed in range(INPUTS):
        value = random_input(graph, seed)
        ours, theirs = run_reference(graph, [value])[0], litert(content, [value])[0]
        assert np.abs(ours - theirs).max() <= 1e-5 * np.abs(theirs).max()


def test_kws_float(litert: Any) -> None:
    """The official file has int8 weights: LiteRT quantizes activations on the fly, we do not.

    With the weights written out as float32, LiteRT computes what we compute; as the file is, the
    probabilities are a few per cent apart.
    """
    found = zoo.find("kws_float")
    graph = load_tflite(found.path)
    for seed in range(INPUTS):
        value = random_input(graph, seed)
        ours = run_reference(graph, [value])[0]
        exact = litert(write_tflite(graph), [value])[0]
        assert np.abs(ours - exact).max() <= 1e-5 * np.abs(exact).max()
        assert np.abs(ours - litert(found.path.read_bytes(), [value])[0]).max() < 0.1


@pytest.mark.parametrize("name", [*zoo.names(), *zoo.names("float32")])
def test_passes_keep_the_bits(name: str) -> None:
    graph = load_model(name)
    lowered = run_passes(graph)
    for seed in range(3):
        value = random_input(graph, seed)
        before, after = run_reference(graph, [value])[0], run_reference(lowered, [value])[0]
        if graph.inputs[0].dtype == np.int8:
            np.testing.assert_array_equal(before, after)
        else:
            np.testing.assert_allclose(before, after, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", zoo.names())
def test_written_again_a_model_computes_the_same(name: str, tmp_path: Path) -> None:
    graph = load_model(name)
    value = random_input(graph, 0)
    before = run_all(graph, [value])
    after = run_all(read_tflite(write_tflite(graph)), [value])
    assert before.keys() == after.keys()
    for key, tensor in before.items():
        np.testing.assert_array_equal(tensor, after[key])
