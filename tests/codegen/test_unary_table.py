"""int8 operators of one input: every byte on the cores against the function they approximate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from covp.graph.attributes import LeakyRelu
from covp.graph.graph import Op
from covp.graph.ops.unary import Gelu
from covp.graph.reference import run_reference
from covp.graph.tflite import read_tflite
from covp.graph.zoo.builder import single_op_graph
from covp.graph.zoo.tflite_writer import write_tflite
from covp.testing.tensors import int8

PLATFORMS = ["riscv32", "cortex-m4", "cortex-m0plus"]
CASES: dict[str, Any] = {
    # kind: (output scale, output zero point, attributes, function)
    "LOGISTIC": (1 / 256, -128, None, lambda x: 1 / (1 + np.exp(-x))),
    "TANH": (1 / 128, 0, None, np.tanh),
    "RELU": (0.04, -128, None, lambda x: np.maximum(x, 0)),
    "RELU6": (6 / 255, -128, None, lambda x: np.clip(x, 0, 6)),
    "GELU": (0.03, -100, Gelu(), lambda x: x * np.vectorize(math.erf)(x / 2**0.5) / 2 + x / 2),
    "LEAKY_RELU": (0.05, -10, LeakyRelu(0.2), lambda x: np.where(x < 0, 0.2 * x, x)),
}


@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("kind", CASES)
def test_every_byte(run_layer, platform, kind, toolchain):
    """TFLM rounds twice: to a quarter of a step or finer, then to a step."""
    scale, zero_point, attributes, function = CASES[kind]
    x = np.arange(-128, 128, dtype=np.int8).reshape(2, 128)
    source = int8("x", x.shape, 0.06, 7)
    op = Op(kind, "layer", [source], [int8("y", x.shape, scale, zero_point)], attributes)
    result = run_layer(platform, op, x, toolchain=toolchain)[0]
    real = function((x.astype(float) - 7) * float(np.float32(0.06)))
    stored = np.clip(real / float(np.float32(scale)) + zero_point, -128, 127)
    assert np.abs(result - stored).max() <= 0.5 + 0.125 + 0.01


@pytest.mark.parametrize("size", [1, 3, 12, 35])
def test_every_size(run_layer, size):
    x = np.random.default_rng(size).integers(-128, 128, size).astype(np.int8)
    op = Op("RELU", "layer", [int8("x", x.shape, 0.5, 0)], [int8("y", x.shape, 0.5, 0)])
    assert np.array_equal(run_layer("riscv32", op, x)[0], np.maximum(x, 0))


@pytest.mark.parametrize("approximate", [False, True])
@pytest.mark.parametrize(
    ("scale", "result"), [(0.02, 0.015), (0.06, 0.05), (1.0, 0.7), (0.004, 0.9)]
)
def test_gelu_is_litert(litert, approximate, scale, result):
    x = np.arange(-128, 128, dtype=np.int8).reshape(1, 256)
    graph = single_op_graph(
        "GELU",
        int8("x", x.shape, scale, 7),
        attributes=Gelu(approximate),
        scale=result,
        zero_point=-9,
    )
    data = write_tflite(graph)
    wanted = litert(data, [x])[0]
    assert np.array_equal(run_reference(read_tflite(data), [x])[0], wanted)
