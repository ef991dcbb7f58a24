"""Kernels for outputs of one pixel, as streams have them: folded bytes, and depthwise by pixels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covp.chip.platform_file import load_platform
from covp.codegen.layer import KernelRequest, schedules
from covp.graph.attributes import Conv2D, DepthwiseConv2D, FullyConnected, Padding
from covp.graph.graph import Op
from covp.graph.zoo.builder import quantization
from covp.testing.tensors import int8

from .test_convolution import expected


def weighted(kind, shape, weights, attributes, out, scale):
    """An operator on int8 tensors with the given weights and a random bias."""
    rng = np.random.default_rng(4)
    channels = weights.shape[3] if kind == "DEPTHWISE_CONV_2D" else weights.shape[0]
    axis = 3 if kind == "DEPTHWISE_CONV_2D" else 0
    scales = np.full(1 if kind == "FULLY_CONNECTED" else channels, 0.02, np.float32)
    filters = int8("w", weights.shape, 0.02, 0, weights)
    filters.quantization = quantization(scales, 0, axis)
    bias = int8("b", (channels,), 0.001, 0)
    bias.dtype, bias.data = np.dtype(np.int32), rng.integers(-999, 999, channels).astype(np.int32)
    bias.quantization = quantization(scales * np.float32(0.05))
    x, y = int8("x", shape, 0.05, -128), int8("y", out, scale, -3)
    return Op(kind, "layer", [x, filters, bias], [y], attributes)


def tiles(op, platform, tile):
    found = schedules(KernelRequest(op, load_platform(platform).core, "layer"))
    return [schedule for schedule in found if schedule.tile == tile]


@pytest.mark.parametrize("platform", ["cortex-m4", "cortex-m33"])
@settings(deadline=None, max_examples=12)
@given(
    depth=st.sampled_from([4, 8, 20, 64, 128]),
    channels=st.integers(2, 9),
    extreme=st.booleans(),
    form=st.sampled_from(["dense", "pixel", "column"]),
    data=st.data(),
)
def test_folded_bytes(run_layer, platform, depth, channels, extreme, form, data):
    rng = np.random.default_rng(depth * channels)
    weights = rng.integers(-127, 128, (channels, depth)).astype(np.int8)
    values = rng.integers(-128, 128, (3, depth)).astype(np.int8)
    if extreme:
        weights = np.where(weights < 0, -127, 127).astype(np.int8)
        values = np.where(values < 0, -128, 127).astype(np.int8)
        values[0, 0::2], values[0, 1::2] = -128, 127  # the least z, and the most
        values[1, 0::2], values[1, 1::2] = 127, -128
    scale = 0.02 * 0.05 * 60 * np.sqrt(depth)
    if form == "dense":
        op = weighted(
            "FULLY_CONNECTED", (3, depth), weights, FullyConnected(), (3, channels), scale
        )
        x = values
    else:
        shape = (1, 1, 1, depth) if form == "pixel" else (1, 4, 1, depth // 4)
        filters = weights.reshape(channels, *shape[1:])
        how = Conv2D((1, 1), Padding())
        op = weighted("CONV_2D", shape, filters, how, (1, 1, 1, channels), scale)
        x = values[data.draw(st.integers(0, 2))].reshape(shape)
    found = tiles(op, platform, "folded_bytes")
    chosen = data.draw(st.sampled_from(found))
    assert np.array_equal(run_layer(platform, op, x, choose=lambda _: chosen)[0], expected(op, x))


def test_folded_bytes_are_for_sums_that_fit() -> None:
    """640 weights of 127 leave 32 bits; so does another core's lack of DSP."""
    ones = np.ones((4, 640), np.int8)
    for weights, platform, fits in (
        (127 * ones, "cortex-m4", False), (ones, "cortex-m4", True), (ones, "riscv32", False)
    ):  # fmt: skip
        op = weighted("FULLY_CONNECTED", (1, 640), weights, FullyConnected(), (1, 4), 9.0)
        assert bool(tiles(op, platform, "folded_bytes")) == fits
    assert not tiles(
        weighted("FULLY_CONNECTED", (1, 6), ones[:, :6].copy(), FullyConnected(), (1, 4), 0.1),
        "cortex-m4",
        "folded_bytes",
    )


@pytest.mark.parametrize("platform", ["cortex-m4", "riscv32", "cortex-m0plus"])
@settings(deadline=None, max_examples=8)
@given(
    kernel=st.tuples(st.integers(1, 5), st.integers(1, 3)),
    stride=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    dilation=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    more=st.tuples(st.integers(0, 3), st.integers(0, 2)),
    channels=st.sampled_from([1, 3, 4, 8, 12]),
    batch=st.integers(1, 2),
)
def test_depthwise_by_pixels(run_layer, platform, kernel, stride, dilation, more, channels, batch):
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    size = [r + m for r, m in zip(reach, more, strict=True)]
    out = [m // s + 1 for m, s in zip(more, stride, strict=True)]
    rng = np.random.default_rng(channels)
    weights = rng.integers(-127, 128, (1, *kernel, channels)).astype(np.int8)
    how = DepthwiseConv2D(stride, Padding(), dilation)
    op = weighted(
        "DEPTHWISE_CONV_2D", (batch, *size, channels), weights, how, (batch, *out, channels), 0.2
    )
    x = rng.integers(-128, 128, (batch, *size, channels)).astype(np.int8)
    (chosen,) = tiles(op, platform, "pixel")
    assert np.array_equal(run_layer(platform, op, x, choose=lambda _: chosen)[0], expected(op, x))
