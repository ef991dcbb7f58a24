"""A network of int16 activations as a file: LiteRT and emulated cores compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from covp.codegen.generate import generate
from covp.graph.attributes import (
    Conv2D,
    DepthwiseConv2D,
    Elementwise,
    LeakyRelu,
    Padding,
    Pool2D,
    Softmax,
)
from covp.graph.graph import Graph, Tensor
from covp.graph.random_inputs import random_inputs
from covp.graph.reference import run_reference
from covp.graph.tflite import read_tflite
from covp.graph.zoo.builder import GraphBuilder
from covp.graph.zoo.tflite_writer import write_tflite
from covp.runtime.session import Session


def network() -> Graph:
    """From int8 through int16 layers to a SOFTMAX of int16, and to float32."""
    rng, b = np.random.default_rng(0), GraphBuilder("net16")
    around = Padding(1, 1, 1, 1)

    def layer(
        x: Tensor, kind: str, shape: tuple[int, ...], attributes: Any, scale: float
    ) -> Tensor:
        depthwise = kind == "DEPTHWISE_CONV_2D"
        outputs = shape[3] if depthwise else shape[0]
        scales = rng.uniform(0.002, 0.02, outputs).astype(np.float32)
        weights = rng.integers(-127, 128, shape).astype(np.int8)
        bias = rng.integers(-50000, 50000, outputs).astype(np.int64)
        operands = (
            b.constant(weights, scales, axis=3 if depthwise else 0),
            b.constant(bias, scales * np.float32(x.scale)),
        )
        return b.add(kind, x, *operands, attributes=attributes, scale=scale)

    x = b.add("QUANTIZE", b.input((1, 8, 8, 3), scale=0.2), dtype=np.int16, scale=0.001)
    y = layer(x, "CONV_2D", (8, 3, 3, 3), Conv2D((1, 1), around, activation="relu"), 0.003)
    z = layer(y, "DEPTHWISE_CONV_2D", (1, 3, 3, 8), DepthwiseConv2D((1, 1), around), 0.01)
    z = b.add("LEAKY_RELU", z, attributes=LeakyRelu(0.1), scale=0.012)
    z = b.add("ADD", y, z, attributes=Elementwise(), scale=0.02)
    z = b.add("AVERAGE_POOL_2D", z, attributes=Pool2D((8, 8), (8, 8), Padding()))
    z = layer(z, "CONV_2D", (10, 1, 1, 8), Conv2D((1, 1), Padding()), 0.01)
    z = b.add("SOFTMAX", z, attributes=Softmax(0.02), scale=1 / 32768)
    return b.graph(z, b.add("DEQUANTIZE", z, dtype=np.float32))


@pytest.mark.process
@pytest.mark.parametrize("platform", ["cortex-m4", "riscv32", "cortex-m0plus"])
def test_litert_and_cores_agree(litert: Any, platform: str) -> None:
    data = write_tflite(network())
    graph = read_tflite(data)
    inputs = random_inputs(graph.inputs, 3)
    wanted = litert(data, inputs)
    with Session(platform) as session:
        found = session.load(generate(graph, platform)).run(*inputs)
    assert len(np.unique(wanted[0])) > 5
    for ours, cores, theirs in zip(run_reference(graph, inputs), found, wanted, strict=True):
        assert np.array_equal(ours, theirs)
        assert np.array_equal(cores, theirs)
