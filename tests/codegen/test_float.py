"""float32 convolutions, pools and activations on the cores against numpy in double precision."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from covp.graph.attributes import LeakyRelu
from covp.graph.graph import Op, Tensor
from covp.testing import layers

PLATFORMS = ["riscv32", "cortex-m4", "cortex-m7", "cortex-m0plus"]
FLOAT = np.dtype(np.float32)
LIMITS = {"none": (-np.inf, np.inf), "relu": (0, np.inf), "relu6": (0, 6), "relu_n1_to_1": (-1, 1)}


def tensor(name, value):
    return Tensor(name, value.shape, FLOAT)


def close(result, wanted):
    return np.allclose(result, wanted, rtol=1e-5, atol=1e-5 * max(np.abs(wanted).max(), 1e-3))


def taps(x, geometry, outside):
    """(height, width, batch, tap, channel): the windows of every output pixel."""
    kernel, stride, dilation, pad = geometry
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


CONVOLUTIONS = layers.convolutions(
    dtype="float32",
    max_channels=8,
    max_kernel=4,
    padding=layers.paddings(4),
    activation=layers.ACTIVATIONS,
)


def expected(op, x):
    """The layer in double precision, over the windows that `taps` takes."""
    a, x, weights = op.attributes, x.astype(float), op.input(1).data
    if op.kind == "FULLY_CONNECTED":
        sums = x @ weights.T
    else:
        geometry = weights.shape[1:3], a.stride, a.dilation, a.padding
        seen = taps(x, geometry, 0)
        outputs = op.output.shape[-1]
        if op.kind == "CONV_2D":
            weights = weights.reshape(outputs, -1, x.shape[-1])
            sums = np.einsum("byxtc,otc->byxo", seen, weights)
        else:
            seen = np.repeat(seen, a.depth_multiplier, axis=4)
            sums = np.einsum("byxto,to->byxo", seen, weights.reshape(-1, outputs))
    bias = 0 if op.inputs[2] is None else op.inputs[2].data
    return np.clip(sums + bias, *LIMITS[a.activation])


@pytest.mark.parametrize("platform", PLATFORMS)
@settings(max_examples=15, deadline=None)
@given(layer=CONVOLUTIONS)
def test_convolutions(run_layer, platform, layer):
    op, (x,) = layer.op(), layer.inputs()
    assert close(run_layer(platform, op, x)[0], expected(op, x))


@pytest.mark.parametrize("platform", PLATFORMS)
@settings(max_examples=3, deadline=None)
@given(layer=CONVOLUTIONS)
def test_convolutions_with_gcc(run_layer, platform, layer):
    op, (x,) = layer.op(), layer.inputs()
    assert close(run_layer(platform, op, x, toolchain="gcc")[0], expected(op, x))


@pytest.mark.parametrize("platform", PLATFORMS)
@settings(max_examples=8, deadline=None)
@given(
    layers.pools(
        dtype="float32",
        max_filter=4,
        batch=2,
        padding=layers.paddings(4),
        activation=layers.ACTIVATIONS,
    )
)
def test_pools(run_layer, platform, layer):
    op, (x,) = layer.op(), layer.inputs()
    a = op.attributes
    seen = taps(x.astype(float), (a.filter, a.stride, (1, 1), a.padding), np.nan)
    values = np.nanmean(seen, 3) if layer.kind == "AVERAGE_POOL_2D" else np.nanmax(seen, 3)
    assert close(run_layer(platform, op, x)[0], np.clip(values, *LIMITS[a.activation]))


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
