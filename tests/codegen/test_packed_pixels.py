"""Two activations in one register, and three in two, whose sums just fit their bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covp.codegen.kernels.convolution.packed_pixels import LONGEST_SUM
from covp.graph.attributes import Conv2D, Padding
from covp.graph.graph import Op
from covp.graph.ops import definition
from covp.testing.tensors import int8, plain


def convolution(weights: np.ndarray, pixels: int, bias: np.ndarray | None = None) -> Op:
    """1x1, whose outputs keep the sign and size of the sums."""

    outputs, depth = weights.shape
    filters = weights.reshape(outputs, 1, 1, depth)
    most = max(1, int(np.abs(weights.astype(int)).sum(axis=1).max()))
    source, result = (1, 1, pixels, depth), (1, 1, pixels, outputs)
    return Op(
        "CONV_2D",
        "layer",
        [
            int8("x", source, 0.02),
            int8("w", filters.shape, 0.5, data=filters),
            None if bias is None else plain("b", (outputs,), np.int32, bias),
        ],
        [int8("y", result, 0.01 * most)],
        Conv2D((1, 1), Padding(), activation="none"),
    )


@st.composite
def weights(draw: st.DrawFn) -> np.ndarray:
    """Of one sign or mixed, with magnitudes that add up to the bound, or to one more."""
    depth, outputs = draw(st.integers(5, 40)), draw(st.integers(1, 5))
    magnitude = draw(st.sampled_from([1, 3, 5, 15, 16, 17, 51, 52, 64, 85, 86, 127]))
    values = np.full((outputs, depth), magnitude)
    if draw(st.booleans()):
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        values *= rng.choice([-1, 1], values.shape)
        values[:, 0] = LONGEST_SUM % magnitude
    return values.astype(np.int8)


@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
@pytest.mark.parametrize("platform", ["riscv32", "cortex-m0plus"])
@settings(max_examples=15, deadline=None)
@given(weights=weights(), pixels=st.integers(2, 9), data=st.data())
def test_extreme_activations(run_layer, platform, toolchain, weights, pixels, data):
    op = convolution(weights, pixels)
    low, high = np.full((pixels, 1), -128), np.full((pixels, 1), 127)
    # the largest sums of either sign that these weights allow, next to each other
    towards = np.where(weights[0] > 0, low, high), np.where(weights[0] > 0, high, low)
    x = towards[0]
    if data.draw(st.booleans()):
        x = x.copy()
        x[::2] = towards[1][::2]
    x = x.astype(np.int8).reshape(op.input(0).shape)
    wanted = definition(op.kind).reference(op, [x, op.input(1).data, None])[0]

    def choose(points):
        return data.draw(st.sampled_from([p for p in points if p.tile == "packed"] or points))

    (got,) = run_layer(platform, op, x, toolchain=toolchain, choose=choose)
    assert np.array_equal(got, wanted)


@st.composite
def layers_of_threes(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Weights and biases whose largest sums are about 2**20, where more has to be moved out."""
    depth, outputs = draw(st.integers(60, 70)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = rng.choice([-127, 127], (outputs, depth))
    if depth > 64:
        values[:, 64] = rng.choice([-63, 63, -64, 64], outputs)
    largest = 128 * np.abs(values).sum(axis=1)
    reach = rng.integers(-2, 3, outputs)  # of the bias beyond what 21 bits hold
    limit = draw(st.sampled_from([2**20, 2**31, 2 * largest.min()]))
    bias = np.maximum(limit - largest + reach, 0) * rng.choice([-1, 1], outputs)
    return values.astype(np.int8), np.clip(bias, -(2**31), 2**31 - 1).astype(np.int32)


@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
@pytest.mark.parametrize("platform", ["riscv32", "cortex-m0plus"])
@settings(max_examples=15, deadline=None)
@given(layer=layers_of_threes(), pixels=st.integers(3, 9), data=st.data())
def test_three_extreme_sums_in_two_words(run_layer, platform, toolchain, layer, pixels, data):
    weights, bias = layer
    op = convolution(weights, pixels, bias)
    rows = []
    for _ in range(pixels):  # the largest sums of either sign, or one that is a little less
        low, high = data.draw(st.permutations([-128, 127]))
        row = np.where(weights[data.draw(st.integers(0, len(weights) - 1))] > 0, low, high)
        row[0] += data.draw(st.integers(0, 1)) * (1 if row[0] < 0 else -1)
        rows.append(row)
    x = np.array(rows, np.int8).reshape(op.input(0).shape)
    wanted = definition(op.kind).reference(op, [x, op.input(1).data, bias])[0]

    def choose(points):
        return data.draw(st.sampled_from([p for p in points if p.tile == "packed_threes"]))

    (got,) = run_layer(platform, op, x, toolchain=toolchain, choose=choose)
    assert np.array_equal(got, wanted)


def test_blocks_of_fewer_channels_begin_at_a_word(run_layer):
    """Where a block's weights are no whole words, the last one's bytes are not loaded as words."""
    weights = np.random.default_rng(0).integers(-3, 4, (19, 14)).astype(np.int8)
    op = convolution(weights, 4)
    x = np.random.default_rng(1).integers(-128, 128, op.input(0).shape).astype(np.int8)
    wanted = definition(op.kind).reference(op, [x, op.input(1).data, None])[0]
    tried = []

    def choose(points):
        threes = [p for p in points if p.tile == "packed_threes" and p["channels"] == 5]
        tried.append(next(p for p in threes if p["unroll"] == 9))
        return tried[0]

    (got,) = run_layer("cortex-m0plus", op, x, choose=choose)
    assert tried and np.array_equal(got, wanted)
