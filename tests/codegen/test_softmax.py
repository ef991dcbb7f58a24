"""SOFTMAX on the cores: int8 and float32 against the exact function."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covp.graph.attributes import Softmax
from covp.graph.graph import Op, Quantization, Tensor
from covp.graph.ops import definition

PLATFORMS = ["riscv32", "stm32l4r5", "cortex-m0plus"]


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def int8(name, shape, scale, zero_point):
    quantization = Quantization(np.array([scale], np.float32), np.array([zero_point], np.int32))
    return Tensor(name, shape, np.dtype(np.int8), quantization)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
@settings(max_examples=8, deadline=None)
@given(
    depth=st.sampled_from([1, 2, 3, 10, 12, 100]),
    scale=st.floats(0.001, 1.0),
    beta=st.sampled_from([1.0, 0.5]),
    seed=st.integers(0, 2**32 - 1),
)
def test_int8_within_a_step(run_layer, platform, toolchain, depth, scale, beta, seed):
    """The fixed-point exponential is good to well below the output's step of 1/256."""
    x = np.random.default_rng(seed).integers(-128, 128, (3, depth)).astype(np.int8)
    tensors = int8("x", x.shape, scale, 3), int8("y", x.shape, 1 / 256, -128)
    op = Op("SOFTMAX", "layer", [tensors[0]], [tensors[1]], Softmax(beta))
    result = run_layer(platform, op, x, toolchain=toolchain)[0]
    exact = softmax(x.astype(float) * float(np.float32(scale)) * beta) * 256 - 128
    assert np.abs(result - np.minimum(exact, 127)).max() <= 0.6


@pytest.mark.parametrize("platform", [*PLATFORMS, "stm32f746"])
def test_float(run_layer, platform):
    x = np.random.default_rng(1).normal(0, 5, (4, 10)).astype(np.float32)
    tensors = [Tensor(name, x.shape, x.dtype) for name in "xy"]
    op = Op("SOFTMAX", "layer", [tensors[0]], [tensors[1]], Softmax(0.7))
    wanted = softmax(x.astype(np.float64) * 0.7)
    assert np.allclose(run_layer(platform, op, x)[0], wanted, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("platform", PLATFORMS)
@settings(max_examples=6, deadline=None)
@given(depth=st.integers(1, 40), scale=st.floats(0.005, 0.5), seed=st.integers(0, 2**32 - 1))
def test_int8_bits_of_the_reference_executor(run_layer, platform, depth, scale, seed):
    """The reciprocal is computed on the core; the executor is held against LiteRT elsewhere."""
    x = np.random.default_rng(seed).integers(-128, 128, (8, depth)).astype(np.int8)
    tensors = int8("x", x.shape, scale, 3), int8("y", x.shape, 1 / 256, -128)
    op = Op("SOFTMAX", "layer", [tensors[0]], [tensors[1]], Softmax(1.0))
    wanted = definition("SOFTMAX").reference(op, [x])[0]
    for tile in ("table", "kept"):
        result = run_layer(platform, op, x, choose=lambda s: next(p for p in s if p.tile == tile))  # noqa: B023
        assert np.array_equal(result[0], wanted)
