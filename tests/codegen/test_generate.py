"""Shapes that a file computes, tensors made by a rule, operators that become others: LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from covp.graph.attributes import StridedSlice
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.ops.generate import Compress, Generated
from covp.graph.ops.rearrange import Pack
from covp.graph.reference import run_reference
from covp.graph.tflite import read_tflite
from covp.graph.zoo import tflite_options_writer
from covp.graph.zoo.tflite_writer import write_tflite

RNG = np.random.default_rng(4)


def tensor(name, shape, dtype=np.float32, data=None):
    return Tensor(name, shape, np.dtype(dtype), None, data)


def constant(name, value, dtype=np.int32):
    data = np.array(value, dtype)
    return tensor(name, data.shape, dtype, data)


def same(litert, graph, *values):
    data = write_tflite(graph)
    read = read_tflite(data)
    for got, wanted in zip(
        run_reference(read, list(values)), litert(data, list(values)), strict=True
    ):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    return read


def test_a_shape_that_a_file_computes_is_constant(litert):
    """TILE by what SHAPE, STRIDED_SLICE and PACK give: nothing of that is left."""
    x, shape = tensor("x", (2, 3)), tensor("shape", (2,), np.int32)
    rows, both, y = (
        tensor("rows", (), np.int32),
        tensor("both", (2,), np.int32),
        tensor("y", (4, 9)),
    )
    bounds = [constant(name, [n]) for name, n in (("b", 0), ("e", 1), ("s", 1))]
    ops = [
        Op("SHAPE", "a", [x], [shape]),
        Op("STRIDED_SLICE", "b", [shape, *bounds], [rows], StridedSlice(((0, 1, 1),), (0,))),
        Op("PACK", "c", [rows, constant("three", 3)], [both], Pack(0)),
        Op("TILE", "d", [x, both], [y]),
    ]
    read = same(litert, Graph("g", [x], [y], ops), RNG.standard_normal((2, 3)).astype(np.float32))
    assert [op.kind for op in read.ops] == ["TILE"]


@pytest.mark.parametrize("kind", ["FILL", "RANGE", "ZEROS_LIKE", "RANK", "EMBEDDING_LOOKUP"])
def test_tensors_made_by_a_rule(litert, kind):
    x = tensor("x", (2, 3))
    value = RNG.standard_normal((2, 3)).astype(np.float32)
    made = tensor("made", (2, 3))
    inputs = [x]
    if kind == "FILL":
        scalar = tensor("v", ())
        made, inputs = tensor("made", (2, 2)), [constant("dims", [2, 2]), scalar]
        x, value = scalar, np.array(0.25, np.float32)
    elif kind == "RANGE":
        made = tensor("made", (4,), np.int32)
        inputs = [constant("start", 7), constant("limit", -2), constant("delta", -3)]
        made.shape = (3,)
    elif kind == "RANK":
        made = tensor("made", (), np.int32)
    elif kind == "EMBEDDING_LOOKUP":
        made, inputs = tensor("made", (3, 3)), [constant("ids", [1, 0, 1]), x]
    y = tensor("y", x.shape)
    ops = [Op(kind, "a", inputs, [made]), Op("TANH", "b", [x], [y])]
    same(litert, Graph("g", [x], [y, made], ops), value)


def test_a_convolution_with_three_axes(litert, monkeypatch):
    fields = {"Padding": 0, "StrideD": 1, "StrideH": 2, "StrideW": 1}
    fields |= {f"Dilation{axis}Factor": 1 for axis in "DHW"}
    monkeypatch.setitem(
        tflite_options_writer._WRITERS, "CONV_3D", ("Conv3DOptions", lambda op: fields)
    )
    x, y = tensor("x", (1, 4, 5, 3, 2)), tensor("y", (1, 4, 3, 3, 6))
    weights = constant("w", RNG.standard_normal((3, 2, 2, 2, 6)), np.float32)
    bias = constant("b", RNG.standard_normal(6), np.float32)
    ops = [Op("CONV_3D", "a", [x, weights, bias], [y])]
    read = same(litert, Graph("g", [x], [y], ops), RNG.standard_normal(x.shape).astype(np.float32))
    assert [op.kind for op in read.ops] == ["CONV_ND"]


@pytest.mark.parametrize("platform", ["riscv32", "cortex-m4"])
def test_kernels(run_layer, platform):
    for dtype in ("float32", "int32", "int64"):
        ends = [np.array(v, dtype) for v in (3, 0, -2)]
        op = Op("RANGE", "r", [tensor(f"e{n}", (), dtype) for n in range(3)], [], Generated((5,)))
        op.outputs = [tensor("y", (5,), dtype)]
        (got,) = run_layer(platform, op, ends[0], ends[2])
        np.testing.assert_array_equal(got, np.arange(3, -7, -2))
    x, mask = RNG.integers(-9, 9, (2, 4, 3)).astype(np.int8), np.array([0, 1, 1, 0], bool)
    source, chosen = tensor("x", x.shape, np.int8), tensor("m", mask.shape, bool)
    op = Op("COMPRESS", "c", [source, chosen], [tensor("y", (2, 2, 3), np.int8)], Compress(1, 2))
    (got,) = run_layer(platform, op, x, mask)
    np.testing.assert_array_equal(got, x[:, mask])
