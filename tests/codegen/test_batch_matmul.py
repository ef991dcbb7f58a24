"""BATCH_MATMUL on the cores against numpy; int8 against Python's integers and LiteRT."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covp.errors import ModelError
from covp.graph.graph import Op, Tensor
from covp.graph.ops import definition
from covp.graph.ops.matmul import BatchMatMul
from covp.graph.reference import run_reference
from covp.graph.tflite import read_tflite
from covp.graph.zoo.builder import quantization, single_op_graph
from covp.graph.zoo.tflite_writer import write_tflite

from .tflm import quantized_multiplier, scaled

PLATFORMS = ["riscv32", "cortex-m4", "cortex-m0plus"]
BATCHES = [((), ()), ((3,), (3,)), ((2, 3), (3,)), ((1, 3), (2, 1)), ((), (2,))]
SHAPES = st.tuples(
    st.sampled_from(BATCHES), st.integers(1, 6), st.integers(1, 9), st.integers(1, 9)
)
FLAGS = st.tuples(st.booleans(), st.booleans())


def operator(shapes, flags, dtype, scales=(None, None, None), zeros=(0, 0, 0)):
    """The layer, and the axes of its operands."""
    (first, second), rows, depth, columns = shapes
    a = BatchMatMul(*flags)
    sizes = [
        (*first, *((depth, rows) if a.adj_x else (rows, depth))),
        (*second, *((columns, depth) if a.adj_y else (depth, columns))),
        (*np.broadcast_shapes(first, second), rows, columns),
    ]
    tensors = [
        Tensor(name, shape, np.dtype(dtype), quantization(scale, zero))
        for name, shape, scale, zero in zip("xyz", sizes, scales, zeros, strict=True)
    ]
    op = Op("BATCH_MATMUL", "layer", [*tensors[:2]], tensors[2:], a)
    assert definition(op.kind).infer_shapes(op) == [sizes[2]]
    return op


def product(op, x, y):
    a = op.attributes
    x = np.swapaxes(x, -1, -2) if a.adj_x else x
    return x @ (np.swapaxes(y, -1, -2) if a.adj_y else y)


@pytest.mark.parametrize("platform", [*PLATFORMS, "riscv32f"])
@settings(max_examples=8, deadline=None)
@given(SHAPES, FLAGS, st.integers(0, 99))
def test_float(run_layer, platform, shapes, flags, seed):
    op = operator(shapes, flags, np.float32)
    rng = np.random.default_rng(seed)
    values = [rng.normal(0, 1, t.shape).astype(np.float32) for t in op.inputs]
    wanted = product(op, *(v.astype(np.float64) for v in values))
    assert np.allclose(run_layer(platform, op, *values)[0], wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.costly
@settings(max_examples=8, deadline=None)
@given(SHAPES, FLAGS, st.integers(0, 99))
def test_plain_integers_wrap(run_layer, shapes, flags, seed):
    op = operator(shapes, flags, np.int32)
    rng = np.random.default_rng(seed)
    values = [rng.integers(-(2**31), 2**31, t.shape).astype(np.int32) for t in op.inputs]
    exact = product(op, *(v.astype(object) for v in values))
    wanted = np.array([int(v) % 2**32 for v in exact.flat], np.uint32).view(np.int32)
    for platform in PLATFORMS:
        assert np.array_equal(run_layer(platform, op, *values)[0].ravel(), wanted)


SCALES = st.tuples(*[st.floats(0.004, 0.3)] * 3)
ZEROS = st.tuples(*[st.sampled_from([0, 0, 3, -128, 127])] * 3)


@pytest.mark.parametrize("platform", PLATFORMS)
@settings(max_examples=10, deadline=None)
@given(SHAPES, FLAGS, SCALES, ZEROS, st.integers(0, 99))
def test_int8(run_layer, platform, shapes, flags, scales, zeros, seed):
    """Every sum in Python's integers, then TFLM's fixed point."""
    op = operator(shapes, flags, np.int8, scales, zeros)
    rng = np.random.default_rng(seed)
    values = [rng.integers(-128, 128, t.shape).astype(np.int8) for t in op.inputs]
    sums = product(op, *(v.astype(np.int64) - z for v, z in zip(values, zeros, strict=False)))
    single = np.float32(scales[0]) * np.float32(scales[1])
    factor = quantized_multiplier(float(single) / float(np.float32(scales[2])))
    results = [scaled(int(s), *factor) + zeros[2] for s in sums.flat]
    wanted = np.clip(results, -128, 127).astype(np.int8)
    assert np.array_equal(run_layer(platform, op, *values)[0].ravel(), wanted)


@pytest.mark.parametrize("dtype", [np.int8, np.float32])
@settings(max_examples=25, deadline=None)
@given(SHAPES, FLAGS, SCALES, ZEROS, st.integers(0, 99))
def test_reference_is_litert(litert, dtype, shapes, flags, scales, zeros, seed):
    if dtype == np.float32:
        scales, zeros = (None, None, None), (0, 0, 0)
    op = operator(shapes, flags, dtype, scales, zeros)
    graph = single_op_graph(
        op.kind, *op.inputs, attributes=op.attributes, scale=scales[2], zero_point=zeros[2]
    )
    rng = np.random.default_rng(seed)
    values = [rng.integers(-128, 128, t.shape).astype(dtype) for t in op.inputs]
    data = write_tflite(graph)
    wanted = litert(data, values)[0]
    found = run_reference(read_tflite(data), values)[0]
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        ((2, 3), (4, 5), "do not fit"),
        ((3,), (3, 4), "not two matrices"),
        ((2, 3, 4), (5, 4, 3), "do not broadcast"),
    ],
)
def test_shapes_that_do_not_fit(first, second, text):
    tensors = [
        Tensor(n, s, np.dtype(np.float32)) for n, s in zip("xy", (first, second), strict=True)
    ]
    op = Op(
        "BATCH_MATMUL", "layer", [*tensors], [Tensor("z", (), np.dtype(np.float32))], BatchMatMul()
    )
    with pytest.raises(ModelError, match=text):
        definition(op.kind).infer_shapes(op)
