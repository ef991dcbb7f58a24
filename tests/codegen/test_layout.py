"""Operators that move values, on every core against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covp.graph.attributes import (
    Concatenation,
    Pad,
    ResizeNearest,
    Split,
    StridedSlice,
    Transpose,
)
from covp.graph.graph import Op, Quantization, Tensor

PLATFORMS = ["riscv32", "stm32l4r5", "cortex-m0plus"]
DTYPES = ["int8", "int8", "float32", "int32", "int16"]
EXTENTS = st.sampled_from([1, 2, 3, 4, 8])


def tensor(name, value, data=None, scale=0.5, zero_point=3):
    quantization = Quantization(np.array([scale], np.float32), np.array([zero_point], np.int32))
    quantized = quantization if value.dtype == np.int8 else None
    return Tensor(name, value.shape, value.dtype, quantized, data)


def numbers(seed, shape, dtype):
    values = np.random.default_rng(seed).integers(-128, 128, shape)
    return np.asarray(values, dtype)


@st.composite
def arrays(draw, rank=(1, 4), dtypes=DTYPES):
    shape = draw(st.lists(EXTENTS, min_size=rank[0], max_size=rank[1]))
    return numbers(draw(st.integers(0, 2**32 - 1)), shape, draw(st.sampled_from(dtypes)))


@st.composite
def layers(draw):
    """(operator, its inputs, the outputs it should give)."""
    kind = draw(st.sampled_from(["RESHAPE", "TRANSPOSE", "PAD", "STRIDED_SLICE", "SPLIT"]))
    x = draw(arrays())
    op = Op(kind, "layer", [tensor("x", x)], [])
    if kind == "RESHAPE":
        wanted = [x.reshape(-1)]
    elif kind == "TRANSPOSE":
        order = tuple(draw(st.permutations(range(x.ndim))))
        op.attributes, wanted = Transpose(order), [x.transpose(order)]
    elif kind == "PAD":
        margin = st.sampled_from([0, 0, 1, 2, 4])
        pads = tuple((draw(margin), draw(margin)) for _ in x.shape)
        value = draw(st.integers(-128, 127))
        op.attributes, wanted = Pad(pads, value), [np.pad(x, pads, constant_values=value)]
    elif kind == "STRIDED_SLICE":
        op.attributes, wanted = draw_slice(draw, x)
    else:
        axis = draw(st.integers(0, x.ndim - 1))
        parts = draw(st.sampled_from([n for n in (1, 2, 3, 4) if x.shape[axis] % n == 0]))
        at = np.array(axis, np.int32)
        op.inputs.insert(0, Tensor("axis", (), at.dtype, None, at))
        op.attributes, wanted = Split(axis), np.split(x, parts, axis)
    op.outputs = [tensor(f"y{i}", w) for i, w in enumerate(wanted)]
    return op, [x], wanted


def draw_slice(draw, x):
    slices, shrink = [], []
    for axis, extent in enumerate(x.shape):
        begin = draw(st.integers(0, extent - 1))
        kind = draw(st.sampled_from(["all", "range", "stride", "reverse", "drop"]))
        if kind == "drop" and x.ndim > 1:
            slices.append((begin, begin + 1, 1))
            shrink.append(axis)
        elif kind == "reverse":
            slices.append((begin, None, -1))
        elif kind == "all":
            slices.append((0, extent, 1))
        else:
            slices.append((begin, extent, 2 if kind == "stride" else 1))
    taken = x[tuple(slice(*s) for s in slices)]
    return StridedSlice(tuple(slices), tuple(shrink)), [taken.squeeze(tuple(shrink))]


@pytest.mark.parametrize("platform", PLATFORMS)
@settings(max_examples=40, deadline=None)
@given(layer=layers())
def test_moves(run_layer, platform, layer):
    op, inputs, wanted = layer
    for result, expected in zip(run_layer(platform, op, *inputs), wanted, strict=True):
        assert np.array_equal(result.reshape(expected.shape), expected)


@pytest.mark.parametrize("platform", PLATFORMS)
@settings(max_examples=6, deadline=None)
@given(layer=layers())
def test_moves_with_gcc(run_layer, platform, layer):
    op, inputs, wanted = layer
    results = run_layer(platform, op, *inputs, toolchain="gcc")
    for result, expected in zip(results, wanted, strict=True):
        assert np.array_equal(result.reshape(expected.shape), expected)


@pytest.mark.parametrize("platform", PLATFORMS)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_concatenation(run_layer, platform, data):
    """Parts of another quantization are rescaled; constants are parts too."""
    x = data.draw(arrays(rank=(2, 3)))
    axis = data.draw(st.integers(0, x.ndim - 1))
    widths = data.draw(st.lists(EXTENTS, min_size=1, max_size=3))
    shapes = [[w if a == axis else n for a, n in enumerate(x.shape)] for w in widths]
    values = [numbers(i, shape, x.dtype) for i, shape in enumerate(shapes)]
    # the scales are powers of two, so that the rescaled value needs no fixed-point arithmetic
    factors = [data.draw(st.sampled_from([1, 1, 2, 4])) for _ in values]
    constant = data.draw(st.integers(0, len(values) - 1)) if len(values) > 1 else -1
    inputs = [
        tensor(f"x{i}", v, v if i == constant else None, 0.5 * f, 3)
        for i, (v, f) in enumerate(zip(values, factors, strict=True))
    ]
    parts = values
    if x.dtype == np.int8:
        parts = [
            np.clip((v.astype(int) - 3) * f + 3, -128, 127).astype(np.int8)
            for v, f in zip(values, factors, strict=True)
        ]
    wanted = np.concatenate(parts, axis)
    op = Op("CONCATENATION", "layer", inputs, [tensor("y", wanted)], Concatenation(axis))
    passed = [v for i, v in enumerate(values) if i != constant]
    assert np.array_equal(run_layer(platform, op, *passed)[0], wanted)


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
    op = Op("RESIZE_NEAREST_NEIGHBOR", "layer", [tensor("x", x)], [tensor("y", wanted)], attributes)
    assert np.array_equal(run_layer(platform, op, x)[0], wanted)


def nearest(i, source, target, mode):
    """GetNearestNeighbor, in fractions: these sizes round the same in single precision."""
    if mode == "align_corners":
        return int(i * (source - 1) / (target - 1) + 0.5) if target > 1 else 0
    offset = 0.5 if mode == "half_pixel_centers" else 0
    return min(int((i + offset) * source / target), source - 1)
