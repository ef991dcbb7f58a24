"""The int8 convolution kernels on every core against the specification in plain integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from covp.codegen.schedule import Schedule
from covp.graph.graph import Op
from covp.testing import ConvCase, layers

from .tflm import quantized_multiplier, scaled

Array = NDArray[Any]
PLATFORMS = ["riscv32", "cortex-m4", "cortex-m7", "cortex-m0plus", "cortex-m33"]


def convolutions() -> st.SearchStrategy[ConvCase]:
    """int8 layers of all kinds: any padding, weights of any magnitude, many zeros or none."""
    return layers.convolutions(
        dtype="int8",
        max_channels=16,
        max_kernel=5,
        padding=layers.paddings(5),
        weight_limit=st.sampled_from([2, 20, 60, 127]),
        zeros=st.sampled_from([0.0, 0.7]),
        output_scale=st.sampled_from([0.01, 0.3, 1.0, 3.0]),
    )


def expected(op: Op, x: Array) -> Array:
    """The layer in plain loops over taps, with Python's exact integers for requantization."""
    acc = _sums(op, x.astype(np.int64) - op.input(0).zero_point)
    output, weights = op.output, op.input(1)
    assert weights.quantization is not None and output.quantization is not None
    scales = np.broadcast_to(weights.quantization.scale, (acc.shape[-1],))
    low, high = -128, 127
    if op.attributes.activation in ("relu", "relu6"):
        low = max(low, output.zero_point)
    if op.attributes.activation == "relu6":
        step = np.float32(6.0) / np.float32(output.scale)
        high = min(high, output.zero_point + int(np.floor(step + np.float32(0.5))))
    result = np.empty(acc.shape, np.int8)
    for channel, scale in enumerate(scales):
        single = op.kind == "FULLY_CONNECTED"
        product = float(np.float32(op.input(0).scale) * scale) if single else None
        exact = product if product is not None else op.input(0).scale * float(scale)
        multiplier, shift = quantized_multiplier(exact / output.scale)
        for index in np.ndindex(acc.shape[:-1]):
            where = (*index, channel)
            value = scaled(int(acc[where]), multiplier, shift)
            result[where] = min(max(value + output.zero_point, low), high)
    return result


def _sums(op: Op, x: Array) -> Array:
    weights = op.input(1).data
    assert weights is not None
    w = weights.astype(np.int64)
    bias = op.inputs[2].data if op.inputs[2] is not None else np.zeros(1, np.int64)
    assert bias is not None
    if op.kind == "FULLY_CONNECTED":
        return np.asarray(x @ w.T + bias)
    a, (batch, out_h, out_w, channels) = op.attributes, op.output.shape
    pad = a.padding
    x = np.pad(x, ((0, 0), (pad.top, pad.bottom), (pad.left, pad.right), (0, 0)))
    acc: Array = np.zeros((batch, out_h, out_w, channels), np.int64) + bias
    per_channel = op.kind == "DEPTHWISE_CONV_2D"
    kernel = w.shape[1:3]
    for ky, kx in np.ndindex(*kernel):
        top, left = ky * a.dilation[0], kx * a.dilation[1]
        seen = x[
            :,
            top : top + (out_h - 1) * a.stride[0] + 1 : a.stride[0],
            left : left + (out_w - 1) * a.stride[1] + 1 : a.stride[1],
        ]
        if per_channel:
            acc = acc + np.repeat(seen, a.depth_multiplier, axis=3) * w[0, ky, kx]
        else:
            acc = acc + seen @ w[:, ky, kx].T
    return acc


@pytest.mark.parametrize("platform", PLATFORMS)
@settings(max_examples=12, deadline=None)
@given(layer=convolutions())
def test_outputs_are_as_specified(run_layer, platform, layer):
    op, (x,) = layer.op(), layer.inputs()
    assert np.array_equal(run_layer(platform, op, x)[0], expected(op, x))


@pytest.mark.parametrize("platform", ["riscv32", "cortex-m4", "cortex-m0plus"])
@settings(max_examples=15, deadline=None)
@given(layer=convolutions(), data=st.data())
def test_every_schedule_matches(run_layer, platform, layer, data):
    op, (x,) = layer.op(), layer.inputs()

    def choose(points):
        assert len(points) == len(set(points)) > 0
        schedule = data.draw(st.sampled_from(points))
        assert Schedule.parse(str(schedule)) == schedule
        return schedule

    assert np.array_equal(run_layer(platform, op, x, choose=choose)[0], expected(op, x))


@pytest.mark.parametrize("platform", ["riscv32", "cortex-m4", "cortex-m0plus"])
@settings(max_examples=6, deadline=None)
@given(layer=convolutions())
def test_gcc_matches(run_layer, platform, layer):
    op, (x,) = layer.op(), layer.inputs()
    assert np.array_equal(run_layer(platform, op, x, toolchain="gcc")[0], expected(op, x))
