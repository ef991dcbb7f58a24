"""Indices: definitions against LiteRT and plain loops, kernels against definitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from covp.graph.graph import Op, Tensor
from covp.graph.ops import definition
from covp.graph.ops.gather import (
    Gather,
    GatherElements,
    GatherND,
    OneHot,
    ReverseSequence,
    Scatter,
)
from covp.graph.ops.placed import DynamicPad, DynamicSlice, MirrorPad
from covp.graph.reference import run_reference
from covp.graph.tflite import read_tflite
from covp.graph.zoo.builder import GraphBuilder
from covp.graph.zoo.tflite_writer import write_tflite

PLATFORMS = ["riscv32", "cortex-m4"]
RNG = np.random.default_rng(5)


def integers(*values):
    return np.array(values, np.int32)


def tensor(name, value):
    return Tensor(name, value.shape, value.dtype)


def operator(kind, values, attributes, dtype=None):
    """The operator with all inputs at run time."""
    inputs = [None if v is None else tensor(f"x{n}", v) for n, v in enumerate(values)]
    out = Tensor("y", (), np.dtype(dtype or values[0].dtype))
    op = Op(kind, "op", inputs, [out], attributes)
    definition(kind).types(op)
    (out.shape,) = definition(kind).infer_shapes(op)
    return op


def data(*shape, dtype=np.float32):
    return RNG.integers(-90, 90, shape).astype(dtype)


TFLITE = [
    ("GATHER", [data(3, 5, 4), integers(4, 0, 2)], Gather(1)),
    ("GATHER", [data(2, 5, 4), integers([4, 0], [2, 2])], Gather(1, 1)),
    ("GATHER_ND", [data(3, 5, 4), integers([2, 4], [0, 1], [1, 1])], GatherND()),
    ("REVERSE_SEQUENCE", [data(3, 5, 2), integers(5, 1, 3)], ReverseSequence(1, 0)),
    ("MIRROR_PAD", [data(4, 3)], MirrorPad(((2, 1), (0, 2)), "reflect")),
    ("MIRROR_PAD", [data(4, 3)], MirrorPad(((2, 1), (0, 2)), "symmetric")),
]


@pytest.mark.parametrize(("kind", "values", "attributes"), TFLITE)
def test_definitions_compute_what_litert_computes(litert, kind, values, attributes):
    builder = GraphBuilder("indices")
    inputs: list[Any] = [builder.input(value.shape, value.dtype) for value in values]
    written = write_tflite(builder.graph(builder.add(kind, *inputs, attributes=attributes)))
    (got,) = run_reference(read_tflite(written), values)
    np.testing.assert_array_equal(got, litert(written, values)[0])


@pytest.mark.parametrize("kind", ["SCATTER_ND", "ONE_HOT"])
def test_operands_of_tflite_become_those_of_onnx(litert, kind):
    """SCATTER_ND of indices, updates, shape; ONE_HOT of indices, depth, on, off."""
    builder = GraphBuilder("operands")
    if kind == "SCATTER_ND":
        values = [integers([1], [3], [1]), data(3, 2)]
        constants, shape, attributes = [integers(4, 2)], (4, 2), None
    else:
        values, attributes = [integers([1, 0, 3], [2, 1, 5])], OneHot(1, 4)
        constants = [np.array(4, np.int32), np.float32(5), np.float32(-1)]
        shape = (2, 4, 3)  # type: ignore[assignment]
    inputs: list[Any] = [builder.input(value.shape, value.dtype) for value in values]
    inputs += [builder.constant(np.asarray(value)) for value in constants]
    out = Tensor("y", shape, np.dtype(np.float32))
    builder.ops.append(Op(kind, "op", inputs, [out], attributes))
    written = write_tflite(builder.graph(out))
    (got,) = run_reference(read_tflite(written), values)
    np.testing.assert_array_equal(got, litert(written, values)[0])


def cases(dtype) -> Iterator[tuple[str, list[Any], Any, Any]]:
    x, y = data(3, 4, 5, dtype=dtype), data(4, 3, dtype=dtype)
    at = integers([0, -1, 2], [3, 1, 0])
    wide = at.astype(np.int64)
    yield from ((kind, [v[0].astype(dtype), *v[1:]], a, None) for kind, v, a in TFLITE)
    yield "GATHER", [x, wide], Gather(1), None
    yield "GATHER_ND", [x, integers([[-1], [2]], [[0], [3]], [[1], [-4]])], GatherND(1), None
    yield "GATHER_ELEMENTS", [y, at], GatherElements(0), None
    yield "ONE_HOT", [at, data(2, dtype=dtype)], OneHot(1, 4), dtype
    reductions: list[Any] = ["none"] if dtype == "bool" else ["none", "add", "mul", "max", "min"]
    few = [v.astype(dtype) for v in (RNG.integers(-3, 4, (4, 3)), RNG.integers(-3, 4, (2, 3)))]
    for reduction in reductions:
        yield "SCATTER_ELEMENTS", [few[0], at, few[1]], Scatter(0, reduction), None
        rows = integers([1], [-1])
        yield "SCATTER_ND", [few[0], rows, few[1]], Scatter(0, reduction), None
    mode: Any
    for mode in ("reflect", "edge", "wrap", "constant"):
        pads = integers(1, 0, 2, 2, 3, -1)
        yield "DYNAMIC_PAD", [x, pads, None, None], DynamicPad((6, 7, 6), mode), None
        axes, two = integers(-1), integers(3, 2)
        fill = data(dtype=dtype)
        yield "DYNAMIC_PAD", [x, two, fill, axes], DynamicPad((3, 4, 10), mode), None
    for mode in ("reflect", "symmetric", "edge", "wrap"):
        yield "MIRROR_PAD", [x], MirrorPad(((0, 0), (1, 2), (0, 0)), mode), None
        yield "MIRROR_PAD", [x], MirrorPad(((0, 0), (0, 0), (3, 1)), mode), None
    slices = [wide.reshape(-1)[:2], None, None], [integers(-1, 4), integers(2, 0), integers(-2, -1)]
    yield "DYNAMIC_SLICE", [x, *slices[0]], DynamicSlice((2, 2, 5)), None
    yield "DYNAMIC_SLICE", [x, *slices[1]], DynamicSlice((3, 4, 2)), None


@pytest.mark.costly
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "int64"])
def test_kernels(run_layer, platform, dtype):
    for kind, values, attributes, out in cases(dtype):
        op = operator(kind, values, attributes, out)
        wanted = definition(kind).reference(op, values)[0]
        assert wanted.shape == op.output.shape
        (got,) = run_layer(platform, op, *(v for v in values if v is not None))
        message = f"{kind} {attributes}"
        np.testing.assert_array_equal(got.reshape(wanted.shape), wanted, err_msg=message)


def test_an_index_outside_finds_the_nearest_element(run_layer):
    x, at = data(4, 3), integers(-9, 7)
    op = operator("GATHER", [x, at], Gather(0))
    (got,) = run_layer("riscv32", op, x, at)
    np.testing.assert_array_equal(got, x[[0, 3]])
    np.testing.assert_array_equal(definition("GATHER").reference(op, [x, at])[0], x[[0, 3]])
