"""float32 convolutions, pools and activations on the cores against numpy in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covp.graph.attributes import (
    Conv2D,
    DepthwiseConv2D,
    FullyConnected,
    LeakyRelu,
    Padding,
    Pool2D,
)
from covp.graph.graph import Op, Tensor

PLATFORMS = ["riscv32", "stm32l4r5", "stm32f746", "cortex-m0plus"]
FLOAT = np.dtype(np.float32)
LIMITS = {"none": (-np.inf, np.inf), "relu": (0, np.inf), "relu6": (0, 6), "relu_n1_to_1": (-1, 1)}


def tensor(name, value, constant=False):
    return Tensor(name, value.shape, FLOAT, None, value if constant else None)


def close(result, wanted):
    return np.allclose(result, wanted, rtol=1e-5, atol=1e-5 * max(np.abs(wanted).max(), 1e-3))


@st.composite
def geometries(draw):
    """(image size, kernel, stride, dilation, padding)."""
    kernel = draw(st.sampled_from([(1, 1), (3, 3), (2, 3), (1, 4)]))
    stride = draw(st.sampled_from([(1, 1), (2, 2), (1, 3)]))
    dilation = draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (2, 3)]))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    size = [draw(st.integers(r, r + 4)) for r in reach]
    pads = Padding(*(draw(st.integers(0, r - 1)) for r in reach for _ in "ab"))
    return size, kernel, stride, dilation, pads


def taps(x, geometry, outside):
    """(height, width, batch, tap, channel): the windows of every output pixel."""
    _, kernel, stride, dilation, pad = geometry
    rows, columns = (pad.top, pad.bottom), (pad.left, pad.right)
    x = np.pad(x, ((0, 0), rows, columns, (0, 0)), constant_values=outside)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    tops = range(0, x.shape[1] - reach[0] + 1, stride[0])
    lefts = range(0, x.shape[2] - reach[1] + 1, stride[1])
    return np.array(
        [
            [
                [
                    x[:, top + ky * dilation[0], left + kx * dilation[1]]
                    for ky in range(kernel[0])
                    for kx in range(kernel[1])
                ]
                for left in lefts
            ]
            for top in tops
        ]
    ).transpose(3, 0, 1, 2, 4)


@st.composite
def convolutions(draw):
    geometry = draw(geometries())
    size, kernel, stride, dilation, padding = geometry
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"]))
    activation = draw(st.sampled_from(list(LIMITS)))
    batch, channels = draw(st.sampled_from([1, 2])), draw(st.sampled_from([1, 3, 4, 8]))
    outputs = draw(st.sampled_from([1, 2, 5, 8]))
    x = rng.normal(0, 1, (batch, *size, channels)).astype(FLOAT)
    if kind == "FULLY_CONNECTED":
        x = x.reshape(batch, -1)
        w = rng.normal(0, 1, (outputs, x.shape[1])).astype(FLOAT)
        attributes: Any = FullyConnected(activation)
        sums = x.astype(float) @ w.T
    elif kind == "CONV_2D":
        w = rng.normal(0, 1, (outputs, *kernel, channels)).astype(FLOAT)
        attributes = Conv2D(stride, padding, dilation, activation)
        seen = taps(x.astype(float), geometry, 0)
        sums = np.einsum("byxtc,otc->byxo", seen, w.reshape(outputs, -1, channels))
    else:
        factor = draw(st.sampled_from([1, 2, 3]))
        outputs = channels * factor
        w = rng.normal(0, 1, (1, *kernel, outputs)).astype(FLOAT)
        attributes = DepthwiseConv2D(stride, padding, dilation, factor, activation)
        seen = np.repeat(taps(x.astype(float), geometry, 0), factor, axis=4)
        sums = np.einsum("byxto,to->byxo", seen, w.reshape(-1, outputs))
    inputs = [tensor("x", x), tensor("w", w, True), None]
    if draw(st.booleans()):
        bias = rng.normal(0, 1, outputs).astype(FLOAT)
        inputs[2] = tensor("b", bias, True)
        sums = sums + bias
    wanted = np.clip(sums, *LIMITS[activation])
    return Op(kind, "layer", inputs, [tensor("y", wanted)], attributes), x, wanted


@pytest.mark.parametrize("platform", PLATFORMS)
@settings(max_examples=15, deadline=None)
@given(layer=convolutions())
def test_convolutions(run_layer, platform, layer):
    op, x, wanted = layer
    assert close(run_layer(platform, op, x)[0], wanted)


@pytest.mark.parametrize("platform", PLATFORMS)
@settings(max_examples=3, deadline=None)
@given(layer=convolutions())
def test_convolutions_with_gcc(run_layer, platform, layer):
    op, x, wanted = layer
    assert close(run_layer(platform, op, x, toolchain="gcc")[0], wanted)


@pytest.mark.parametrize("platform", PLATFORMS)
@settings(max_examples=8, deadline=None)
@given(
    geometry=geometries().map(lambda g: (*g[:3], (1, 1), Padding()) if g[3] != (1, 1) else g),
    kind=st.sampled_from(["AVERAGE_POOL_2D", "MAX_POOL_2D"]),
    activation=st.sampled_from(list(LIMITS)),
    channels=st.sampled_from([1, 4, 6]),
)
def test_pools(run_layer, platform, geometry, kind, activation, channels):
    size, kernel, stride, _, padding = geometry
    x = np.random.default_rng(channels).normal(0, 2, (2, *size, channels)).astype(FLOAT)
    seen = taps(x.astype(float), geometry, np.nan)
    values = np.nanmean(seen, 3) if kind == "AVERAGE_POOL_2D" else np.nanmax(seen, 3)
    wanted = np.clip(values, *LIMITS[activation])
    attributes = Pool2D(kernel, stride, padding, activation)
    op = Op(kind, "layer", [tensor("x", x)], [tensor("y", wanted)], attributes)
    assert close(run_layer(platform, op, x)[0], wanted)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
@pytest.mark.parametrize(
    ("kind", "function"),
    [
        ("LOGISTIC", lambda x: 1 / (1 + np.exp(-x))),
        ("TANH", np.tanh),
        ("RELU", lambda x: np.maximum(x, 0)),
        ("RELU6", lambda x: np.clip(x, 0, 6)),
        ("LEAKY_RELU", lambda x: np.where(x < 0, 0.3 * x, x)),
    ],
)
def test_activations(run_layer, platform, toolchain, kind, function):
    x = np.array([-200, -20, -5, -1, -0.01, 0, 1e-5, 0.3, 2, 5.99, 7, 30, 150], np.float32)
    attributes = LeakyRelu(0.3) if kind == "LEAKY_RELU" else None
    op = Op(kind, "layer", [tensor("x", x)], [tensor("y", x)], attributes)
    result = run_layer(platform, op, x, toolchain=toolchain)[0]
    assert np.allclose(result, function(x.astype(float)), rtol=1e-5, atol=1e-9)
