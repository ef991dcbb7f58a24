"""Operators that move values, on every core against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covp.graph.attributes import ResizeNearest
from covp.testing import OperatorCase, layers

PLATFORMS = ["riscv32", "cortex-m4", "cortex-m0plus"]
EXTENTS = st.sampled_from([1, 2, 3, 4, 8])
MOVES = layers.moves(
    max_extent=8, dtype=st.sampled_from(["int8", "int8", "float32", "int32", "int16"])
)


def numbers(seed, shape, dtype):
    values = np.random.default_rng(seed).integers(-128, 128, shape)
    return np.asarray(values, dtype)


def expected(layer, x):
    """The outputs by numpy's own function for the operator."""
    a = layer.attributes
    if layer.kind == "RESHAPE":
        return [x.reshape(layer.reshaped)]
    if layer.kind == "TRANSPOSE":
        return [x.transpose(a.permutation)]
    if layer.kind == "STRIDED_SLICE":
        return [x[tuple(slice(*s) for s in a.slices)].squeeze(a.shrink)]
    if layer.kind == "SPLIT":
        return np.split(x, layer.outputs, a.axis)
    return [np.pad(x, a.paddings, constant_values=a.value)]


@pytest.mark.parametrize("platform", PLATFORMS)
@settings(max_examples=40, deadline=None)
@given(layer=MOVES)
def test_moves(run_layer, platform, layer):
    op, (x,) = layer.op(), layer.inputs()
    results = run_layer(platform, op, x)
    for result, wanted in zip(results, expected(layer, x), strict=True):
        assert np.array_equal(result.reshape(wanted.shape), wanted)


@pytest.mark.parametrize("platform", PLATFORMS)
@settings(max_examples=6, deadline=None)
@given(layer=MOVES)
def test_moves_with_gcc(run_layer, platform, layer):
    op, (x,) = layer.op(), layer.inputs()
    results = run_layer(platform, op, x, toolchain="gcc")
    for result, wanted in zip(results, expected(layer, x), strict=True):
        assert np.array_equal(result.reshape(wanted.shape), wanted)


@pytest.mark.parametrize("platform", PLATFORMS)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_concatenation(run_layer, platform, data):
    """Parts of another quantization are rescaled; constants are parts too."""
    lengths = data.draw(st.lists(EXTENTS, min_size=1, max_size=3).map(tuple))
    constants = st.none() | st.integers(0, len(lengths) - 1) if len(lengths) > 1 else st.none()
    # the scales' ratios are powers of two, so that rescaling needs no fixed-point arithmetic
    layer = data.draw(
        layers.concatenations(
            dtype=st.sampled_from(["int8", "int8", "float32"]),
            lengths=lengths,
            shape=st.tuples(EXTENTS, EXTENTS, EXTENTS),
            scales=st.tuples(*[st.sampled_from([0.1, 0.1, 0.2, 0.4])] * len(lengths)),
            constant=constants,
        )
    )
    op, passed = layer.op(), layer.inputs()
    rest = iter(passed)
    parts = [next(rest) if t.data is None else t.data for t in op.inputs]
    if layer.dtype == "int8":
        factors = [round(scale / 0.1) for scale in layer.scales]
        parts = [
            np.clip((v.astype(int) - 3) * f + 3, -128, 127).astype(np.int8)
            for v, f in zip(parts, factors, strict=True)
        ]
    assert np.array_equal(run_layer(platform, op, *passed)[0], np.concatenate(parts, layer.axis))


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("mode", ["", "align_corners", "half_pixel_centers"])
@pytest.mark.parametrize("size", [(6, 8), (5, 3), (1, 9)])
def test_resize(run_layer, platform, dtype, mode, size):
    x = numbers(1, (2, 3, 4, 4), dtype)
    rows, columns = (
        [nearest(i, n, m, mode) for i in range(m)] for n, m in zip((3, 4), size, strict=True)
    )
    wanted = x[:, rows][:, :, columns]
    attributes = ResizeNearest(size, mode == "align_corners", mode == "half_pixel_centers")
    op = OperatorCase("RESIZE_NEAREST_NEIGHBOR", x.shape, attributes, dtype).op()
    assert np.array_equal(run_layer(platform, op, x)[0], wanted)


def nearest(i, source, target, mode):
    """GetNearestNeighbor, in fractions: these sizes round the same in single precision."""
    if mode == "align_corners":
        return int(i * (source - 1) / (target - 1) + 0.5) if target > 1 else 0
    offset = 0.5 if mode == "half_pixel_centers" else 0
    return min(int((i + offset) * source / target), source - 1)
