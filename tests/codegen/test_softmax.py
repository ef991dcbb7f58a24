"""SOFTMAX on the cores: int8 and float32 against the exact function."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covp.graph.attributes import Softmax
from covp.graph.graph import Op, Tensor
from covp.graph.reference import run_reference
from covp.testing import layers

PLATFORMS = ["riscv32", "cortex-m4", "cortex-m0plus"]


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
@settings(max_examples=8, deadline=None)
@given(
    layers.softmaxes(
        dtype="int8",
        depth=st.sampled_from([1, 2, 3, 10, 12, 100]),
        scale=st.floats(0.001, 1.0),
        beta=st.sampled_from([1.0, 0.5]),
    )
)
def test_int8_within_a_step(run_layer, platform, toolchain, layer):
    """The fixed-point exponential is good to well below the output's step of 1/256."""
    op, (x,) = layer.op(), layer.inputs()
    result = run_layer(platform, op, x, toolchain=toolchain)[0]
    exact = softmax(x.astype(float) * op.input(0).scale * layer.beta) * 256 - 128
    assert np.abs(result - np.minimum(exact, 127)).max() <= 0.6


@pytest.mark.parametrize("platform", [*PLATFORMS, "cortex-m7"])
def test_float(run_layer, platform):
    x = np.random.default_rng(1).normal(0, 5, (4, 10)).astype(np.float32)
    tensors = [Tensor(name, x.shape, x.dtype) for name in "xy"]
    op = Op("SOFTMAX", "layer", [tensors[0]], [tensors[1]], Softmax(0.7))
    wanted = softmax(x.astype(np.float64) * 0.7)
    assert np.allclose(run_layer(platform, op, x)[0], wanted, rtol=1e-5, atol=1e-7)


@pytest.mark.costly
@pytest.mark.parametrize("platform", PLATFORMS)
@settings(max_examples=6, deadline=None)
@given(layers.softmaxes(dtype="int8", rows=8, scale=st.floats(0.005, 0.5)))
def test_int8_matches_the_reference_executor(run_layer, platform, layer):
    """The reciprocal is computed on the core; the executor is compared with LiteRT elsewhere."""
    op, (x,) = layer.op(), layer.inputs()
    wanted = run_reference(layer.graph(), [x])[0]
    for tile in ("table", "kept"):
        result = run_layer(platform, op, x, choose=lambda s: next(p for p in s if p.tile == tile))  # noqa: B023
        assert np.array_equal(result[0], wanted)
