"""int4 weights: the same layer as with int8 weights of these values, packed in flash; LiteRT."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from covp.errors import ModelError
from covp.graph.graph import Graph
from covp.graph.reference import run_reference
from covp.graph.tflite import read_tflite
from covp.graph.zoo.tflite_writer import write_tflite
from covp.testing import ConvCase, layers

from .test_convolution import expected

PLATFORMS = ["cortex-m4", "riscv32", "cortex-m0plus"]
bounded = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def packed(layer: ConvCase) -> Graph:
    """The layer with weights from -8 to 7, marked as int4."""
    graph = layer.graph()
    weights = graph.ops[0].input(1)
    rng = np.random.default_rng(layer.seed)
    weights.data = rng.integers(-8, 8, weights.shape).astype(np.int8)
    weights.bits = 4
    return graph


@pytest.mark.parametrize("platform", PLATFORMS)
@bounded
@given(layer=layers.convolutions(dtype="int8", max_kernel=5, weight_limit=7), data=st.data())
def test_every_schedule(run_layer: Any, platform: str, layer: ConvCase, data: Any) -> None:
    (op,), (x,) = packed(layer).ops, layer.inputs()

    def choose(points: Any) -> Any:
        return points[0] if data.draw(st.booleans()) else data.draw(st.sampled_from(points))

    assert np.array_equal(run_layer(platform, op, x, choose=choose)[0], expected(op, x))


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("kind", layers.CONVOLUTIONS)
def test_flash_holds_half_the_bytes(run_layer: Any, platform: str, kind: str) -> None:
    """Constants of the layer's C in bytes, without the table of requantization."""
    layer = ConvCase(kind, size=(8, 8), channels=(64, 64), kernel=(3, 3), bias=True, seed=1)
    graph = packed(layer)
    (op,), (x,) = graph.ops, layer.inputs()
    assert np.array_equal(run_layer(platform, op, x)[0], expected(op, x))
    weights = op.input(1)
    held = _bytes_of_arrays(run_layer.code.source)
    assert held <= 0.56 * weights.size + 64 * 24


def _bytes_of_arrays(source: str) -> int:
    total = 0
    for line in source.splitlines():
        if line.startswith("static const "):
            kind, rest = line.split()[2], line.split("[")[1]
            size = {"int8_t": 1, "uint8_t": 1, "int16_t": 2}.get(kind, 4)
            total += size * int(rest.split("]")[0])
    return total


@pytest.mark.parametrize("kind", layers.CONVOLUTIONS)
@bounded
@given(data=st.data())
def test_files_compute_what_litert_computes(litert: Any, kind: str, data: Any) -> None:
    drawn = layers.convolutions(
        kind, dtype="int8", bias=True, max_channels=9, weight_limit=7,
        per_channel=kind != "FULLY_CONNECTED",
    )  # fmt: skip
    layer = data.draw(drawn)
    graph = packed(layer)
    content = write_tflite(graph)
    read = read_tflite(content)
    weights = read.ops[0].input(1)
    unpacked = graph.ops[0].input(1).data
    assert weights.data is not None and unpacked is not None
    assert weights.bits == 4 and np.array_equal(weights.data, unpacked)
    (x,) = layer.inputs()
    ours, theirs = run_reference(read, [x])[0], litert(content, [x])[0]
    assert np.abs(ours.astype(int) - theirs).max() <= (kind == "FULLY_CONNECTED")


def test_activations_of_int4_are_refused() -> None:
    graph = packed(ConvCase("CONV_2D", bias=True))
    graph.ops[0].inputs[1] = replace(graph.ops[0].input(1), data=None)
    with pytest.raises(ModelError, match="int4 and no constant"):
        read_tflite(write_tflite(graph))
