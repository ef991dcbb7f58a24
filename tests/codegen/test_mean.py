"""MEAN on every core against TFLM's arithmetic in plain integers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covp.graph.attributes import Mean
from covp.graph.graph import Op, Quantization, Tensor

PLATFORMS = ["riscv32", "stm32l4r5", "cortex-m0plus"]


def int8(name, shape, scale, zero_point):
    quantization = Quantization(np.array([scale], np.float32), np.array([zero_point], np.int32))
    return Tensor(name, shape, np.dtype(np.int8), quantization)


@st.composite
def reductions(draw):
    shape = draw(st.lists(st.sampled_from([1, 2, 3, 5, 8]), min_size=1, max_size=4))
    axes = draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return rng.integers(-128, 128, shape).astype(np.int8), tuple(sorted(axes)), draw(st.booleans())


def quantized_mean(total, count, source, out):
    """reference_ops::QuantizedMeanOrSum with EvalIntegerMean's factor."""
    mantissa, shift = math.frexp(float(np.float32(source[0])) / float(np.float32(out[0])))
    multiplier = math.floor(mantissa * 2**31 + 0.5)
    if multiplier == 2**31:
        multiplier, shift = 2**30, shift + 1
    extra = min(count.bit_length() - 1, 32, 31 + shift)
    multiplier, shift = (multiplier << extra) // count, shift - extra
    value = (total - source[1] * count) << max(shift, 0)
    high = (value * multiplier + (1 << 30)) >> 31
    right = max(-shift, 0)
    rest, threshold = high & ((1 << right) - 1), ((1 << right) - 1) >> 1
    rounded = (high >> right) + (rest > threshold + (high < 0))
    return min(max(rounded + out[1], -128), 127)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
@settings(max_examples=10, deadline=None)
@given(
    reduction=reductions(),
    source=st.tuples(st.floats(0.01, 0.1), st.integers(-128, 127)),
    out=st.none() | st.tuples(st.floats(0.01, 0.1), st.integers(-128, 127)),
    data=st.data(),
)
def test_int8_bits_with_every_schedule(
    run_layer, platform, toolchain, reduction, source, out, data
):
    x, axes, keep = reduction
    out = out or source
    totals = x.astype(np.int64).sum(axes, keepdims=keep)
    count = x.size // totals.size
    wanted = [quantized_mean(int(total), count, source, out) for total in totals.reshape(-1)]
    op = Op(
        "MEAN",
        "layer",
        [int8("x", x.shape, *source)],
        [int8("y", totals.shape, *out)],
        Mean(axes, keep),
    )
    result = run_layer(
        platform, op, x, toolchain=toolchain, choose=lambda s: data.draw(st.sampled_from(s))
    )[0]
    assert result.reshape(-1).tolist() == wanted


@pytest.mark.parametrize("platform", [*PLATFORMS, "stm32f746"])
@pytest.mark.parametrize("axes", [(1, 2), (3,), (0, 1, 2, 3), (1, 3)])
def test_float(run_layer, platform, axes):
    x = np.random.default_rng(1).normal(1, 3, (2, 5, 4, 8)).astype(np.float32)
    wanted = x.astype(np.float64).mean(axes, keepdims=True)
    tensors = [Tensor(n, s, x.dtype) for n, s in (("x", x.shape), ("y", wanted.shape))]
    op = Op("MEAN", "layer", [tensors[0]], [tensors[1]], Mean(axes, True))
    assert np.allclose(run_layer(platform, op, x)[0], wanted, rtol=1e-5, atol=1e-6)
