"""Layers that say they may run in place compute the same there."""

from __future__ import annotations

import numpy as np
import pytest

from covp.graph.attributes import Elementwise, LeakyRelu, Softmax
from covp.graph.graph import Op
from covp.testing.tensors import int8, plain

PLATFORMS = ["riscv32", "cortex-m4", "cortex-m0plus"]
ATTRIBUTES = {
    "ADD": Elementwise(),
    "SUB": Elementwise("relu"),
    "MUL": Elementwise(),
    "SOFTMAX": Softmax(),
    "LEAKY_RELU": LeakyRelu(0.1),
    "TANH": None,
    "RESHAPE": None,
    "QUANTIZE": None,
}


def tensor(name, shape, dtype):
    return int8(name, shape, 0.05, -4) if dtype == "int8" else plain(name, shape)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("kind", ATTRIBUTES)
def test_in_place(run_layer, platform, dtype, kind):
    if (kind, dtype) == ("QUANTIZE", "float32"):
        pytest.skip("its output is smaller than its input")
    rng = np.random.default_rng(1)
    shapes = [(3, 1, 5, 4), (5, 4)] if kind in ("ADD", "SUB", "MUL") else [(3, 1, 5, 4)]
    values = [rng.integers(-128, 128, shape).astype(dtype) for shape in shapes]
    inputs = [tensor(f"x{i}", shape, dtype) for i, shape in enumerate(shapes)]
    out = tensor("y", shapes[0], dtype)
    op = Op(kind, "layer", list(inputs), [out], ATTRIBUTES[kind])
    apart = run_layer(platform, op, *values)[0]
    assert np.array_equal(run_layer(platform, op, *values, in_place=True)[0], apart)
