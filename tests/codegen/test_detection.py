"""DETECTION_POSTPROCESS: the reference against LiteRT, the kernel against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from covp.errors import ModelError
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.ops import definition
from covp.graph.ops.detection import DetectionPostprocess, detection_shapes
from covp.graph.reference import run_reference
from covp.graph.tflite import read_tflite
from covp.graph.zoo.builder import quantization
from covp.graph.zoo.tflite_writer import write_tflite

COUNT, CLASSES, MOST = 60, 5, 8


def network(dtype: str, seed: int, background: int = 1, score: float = 0.3) -> Graph:
    """Boxes around random anchors, many of which overlap."""
    rng = np.random.default_rng(seed)
    float32 = dtype == "float32"
    shapes = {"encoded": (1, COUNT, 4), "scores": (1, COUNT, CLASSES + background)}
    scales = {"encoded": (0.05, 120), "scores": (1 / 256, 0)}
    inputs = [
        Tensor(name, shape, np.dtype(dtype), None if float32 else quantization(*scales[name]))
        for name, shape in shapes.items()
    ]
    if float32:
        anchors = rng.uniform(0.2, 0.8, (COUNT, 4)).astype(np.float32)
        own = None
    else:
        anchors = rng.integers(50, 200, (COUNT, 4)).astype(np.uint8)
        own = quantization(1 / 250, 3)
    constant = Tensor("anchors", anchors.shape, anchors.dtype, own, anchors)
    outputs = [
        Tensor(name, shape, np.dtype(np.float32))
        for name, shape in zip(
            ("boxes", "classes", "best", "found"), detection_shapes(MOST), strict=True
        )
    ]
    attributes = DetectionPostprocess(MOST, CLASSES, score, 0.5, (10.0, 10.0, 5.0, 5.0))
    op = Op("DETECTION_POSTPROCESS", "detection_0", [*inputs, constant], outputs, attributes)
    return Graph("detection", inputs, outputs, [op])


def values(graph: Graph, seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    encoded, scores = graph.inputs
    if encoded.dtype == np.uint8:
        return [rng.integers(0, 256, t.shape).astype(np.uint8) for t in graph.inputs]
    return [
        rng.normal(0, 2, encoded.shape).astype(np.float32),
        rng.uniform(0, 1, scores.shape).astype(np.float32),
    ]


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
@pytest.mark.parametrize(("background", "score"), [(1, 0.3), (0, 0.9)])
def test_equals_litert(litert: Any, dtype: str, background: int, score: float) -> None:
    for seed in range(5):
        data = write_tflite(network(dtype, seed, background, score))
        graph = read_tflite(data)
        inputs = values(graph, seed + 100)
        wanted = litert(data, inputs)
        found = run_reference(graph, inputs)
        count = int(wanted[3][0])
        assert 1 < count == found[3][0]
        for ours, theirs in zip(found[:3], wanted[:3], strict=True):
            np.testing.assert_allclose(ours[:, :count], theirs[:, :count], rtol=1e-5, atol=1e-6)


@pytest.mark.costly
@pytest.mark.parametrize("platform", ["riscv32", "cortex-m4"])
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_kernel_equals_reference(run_layer: Any, platform: str, dtype: str) -> None:
    for score in (0.3, 0.97):
        graph = network(dtype, 3, score=score)
        op = graph.ops[0]
        inputs = values(graph, 4)
        wanted = definition(op.kind).reference(op, [*inputs, op.input(2).data])
        for ours, theirs in zip(run_layer(platform, op, *inputs), wanted, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
        assert 0 < wanted[3][0] <= MOST


def test_a_file_may_state_any_output_shapes() -> None:
    graph = network("uint8", 0)
    for tensor in graph.outputs:
        tensor.shape = ()
    read = read_tflite(write_tflite(graph))
    assert [t.shape for t in read.outputs] == [(1, MOST, 4), (1, MOST), (1, MOST), (1,)]
    graph.ops[0].input(1).shape = (1, COUNT, CLASSES + 2)
    with pytest.raises(ModelError, match=rf"{CLASSES + 2} scores a box do not fit {CLASSES}"):
        read_tflite(write_tflite(graph))
