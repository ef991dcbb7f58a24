"""MEAN on every core against TFLM's arithmetic in plain integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covp.graph.attributes import Mean
from covp.graph.graph import Op, Tensor
from covp.testing import layers

from .tflm import quantized_multiplier, scaled

PLATFORMS = ["riscv32", "cortex-m4", "cortex-m0plus"]


def quantized_mean(total, count, source, out):
    """reference_ops::QuantizedMeanOrSum with EvalIntegerMean's factor."""
    ratio = float(np.float32(source[0])) / float(np.float32(out[0]))
    multiplier, shift = quantized_multiplier(ratio)
    extra = min(count.bit_length() - 1, 32, 31 + shift)
    multiplier, shift = (multiplier << extra) // count, shift - extra
    value = scaled(total - source[1] * count, multiplier, shift)
    return min(max(value + out[1], -128), 127)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
@settings(max_examples=10, deadline=None)
@given(layer=layers.means(dtype="int8"), data=st.data())
def test_int8_with_every_schedule(run_layer, platform, toolchain, layer, data):
    op, (x,) = layer.op(), layer.inputs()
    totals = x.astype(np.int64).sum(layer.attributes.axes, keepdims=True)
    count = x.size // totals.size
    source, out = ((t.scale, t.zero_point) for t in (op.input(0), op.output))
    wanted = [quantized_mean(int(total), count, source, out) for total in totals.reshape(-1)]
    result = run_layer(
        platform, op, x, toolchain=toolchain, choose=lambda s: data.draw(st.sampled_from(s))
    )[0]
    assert result.reshape(-1).tolist() == wanted


@pytest.mark.parametrize("platform", [*PLATFORMS, "cortex-m7"])
@pytest.mark.parametrize("axes", [(1, 2), (3,), (0, 1, 2, 3), (1, 3)])
def test_float(run_layer, platform, axes):
    x = np.random.default_rng(1).normal(1, 3, (2, 5, 4, 8)).astype(np.float32)
    wanted = x.astype(np.float64).mean(axes, keepdims=True)
    tensors = [Tensor(n, s, x.dtype) for n, s in (("x", x.shape), ("y", wanted.shape))]
    op = Op("MEAN", "layer", [tensors[0]], [tensors[1]], Mean(axes, True))
    assert np.allclose(run_layer(platform, op, x)[0], wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("platform", PLATFORMS)
@settings(max_examples=8, deadline=None)
@given(layer=layers.layers("REDUCE_MAX"), data=st.data())
def test_the_largest_with_every_schedule(run_layer, platform, layer, data):
    op, (x,) = layer.op(), layer.inputs()
    result = run_layer(platform, op, x, choose=lambda s: data.draw(st.sampled_from(s)))[0]
    assert np.array_equal(result.reshape(-1), x.max(layer.attributes.axes).reshape(-1))
