"""Operators that put elements elsewhere: definition against LiteRT, kernels against definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from covp.graph.attributes import StridedSlice
from covp.graph.ops import definition
from covp.graph.ops.rearrange import (
    BatchBlocks,
    Blocks,
    BroadcastTo,
    Pack,
    Reverse,
    SplitV,
    Tile,
    Triangle,
)
from covp.graph.reference import run_reference
from covp.graph.tflite import read_tflite
from covp.graph.zoo.builder import GraphBuilder
from covp.graph.zoo.tflite_options_writer import _WRITERS
from covp.graph.zoo.tflite_writer import write_tflite

PLATFORMS = ["riscv32", "cortex-m4", "cortex-m0plus"]
CASES = [
    ("SLICE", [(3, 4, 5)], StridedSlice(((1, 3, 1), (0, 4, 1), (2, 3, 1))), 1),
    ("SPLIT_V", [(3, 7, 4)], SplitV(1, (4, 1, 2)), 3),
    ("PACK", [(3, 4)] * 3, Pack(1), 1),
    ("PACK", [(2, 5)] * 2, Pack(2), 1),
    ("UNPACK", [(3, 4, 2)], Pack(1), 4),
    ("TILE", [(2, 3, 1, 4)], Tile((2, 1, 3, 2)), 1),
    ("BROADCAST_TO", [(3, 1, 4)], BroadcastTo((2, 3, 5, 4)), 1),
    ("REVERSE_V2", [(2, 3, 4)], Reverse((1,)), 1),
    ("DEPTH_TO_SPACE", [(2, 3, 2, 12)], Blocks(2), 1),
    ("SPACE_TO_DEPTH", [(2, 4, 6, 3)], Blocks(2), 1),
    ("SPACE_TO_BATCH_ND", [(2, 5, 4, 3)], BatchBlocks((2, 3), ((1, 0), (2, 3)), -7), 1),
    ("BATCH_TO_SPACE_ND", [(12, 3, 2, 3)], BatchBlocks((2, 3), ((1, 0), (0, 2))), 1),
]
NAMES = [f"{kind} {attributes}" for kind, _, attributes, _ in CASES]


def build(kind, shapes, attributes, outputs, dtype="int8"):
    builder = GraphBuilder("moves")
    scale = 0.5 if dtype == "int8" else None
    inputs = [builder.input(shape, dtype, scale, -7 if scale else 0) for shape in shapes]
    results = builder.add_all(kind, *inputs, attributes=attributes, outputs=outputs)
    rng = np.random.default_rng(3)
    values = [rng.integers(-100, 100, shape).astype(dtype) for shape in shapes]
    return builder.graph(*results), values


@pytest.mark.parametrize(("kind", "shapes", "attributes", "outputs"), CASES, ids=NAMES)
def test_definitions_compute_what_litert_computes(litert, kind, shapes, attributes, outputs):
    graph, values = build(kind, shapes, attributes, outputs)
    data = write_tflite(graph)
    for got, wanted in zip(
        run_reference(read_tflite(data), values), litert(data, values), strict=True
    ):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.costly
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("dtype", ["int8", "bool", "int16", "float32", "int64"])
def test_kernels_move_every_type(run_layer, platform, dtype):
    more = [
        ("TRILU", [(2, 3, 4)], Triangle(True, 1), 1),
        ("TRILU", [(4, 3)], Triangle(False, -1), 1),
        ("REVERSE_V2", [(3, 4)], Reverse((0, 1)), 1),
        ("DEPTH_TO_SPACE", [(1, 2, 3, 8)], Blocks(2, "crd"), 1),
        ("SPACE_TO_DEPTH", [(1, 4, 6, 2)], Blocks(2, "crd"), 1),
        ("STRIDED_SLICE", [(4, 6)], StridedSlice(((3, None, -2), (1, 6, 2)), (), (1,)), 1),
    ]
    for case in CASES + more:
        graph, values = build(*case, dtype=dtype)
        op = graph.ops[0]
        for tensor in op.outputs:
            tensor.quantization = None
        wanted = definition(op.kind).reference(
            op, [*values, *(t.data for t in op.inputs[len(values) :])]
        )
        for got, right in zip(run_layer(platform, op, *values), wanted, strict=True):
            np.testing.assert_array_equal(got.reshape(right.shape), right, err_msg=str(case))


@pytest.mark.parametrize("masks", [(1, 0), (0, 4), (2, 0), (1, 4), (4, 0)])
def test_masks_of_strided_slice(litert, monkeypatch, masks):
    """An ellipsis and a new axis, wherever they are; the first of the rest shrinks."""
    builder = GraphBuilder("masks")
    x = builder.input((3, 4, 5, 2), np.float32)
    ellipsis, new = masks
    given = [e for e in range(3) if not (ellipsis | new) & 1 << e]
    operands = [builder.constant(np.array(v, np.int32)) for v in ([1, 1, 1], [2, 3, 2], [1, 2, 1])]
    y = builder.add("TANH", x)
    graph = builder.graph(y)
    op = graph.ops[0]
    op.kind, op.inputs = "STRIDED_SLICE", [x, *operands]
    sliced = {0: (slice(1, 2), 0), 1: (slice(1, 3, 2), 1), 2: (slice(1, 2), 1)}
    key: list[Any] = []
    for entry in range(3):
        if ellipsis & 1 << entry:
            key.append(Ellipsis)
        elif new & 1 << entry:
            key.append(None)
        else:
            key.append(sliced[entry][0] if entry != given[0] else 1)
    value = np.random.default_rng(0).standard_normal(x.shape).astype(np.float32)
    wanted = value[tuple(key)]
    y.shape = wanted.shape
    fields = {"EllipsisMask": ellipsis, "NewAxisMask": new, "ShrinkAxisMask": 1 << given[0]}
    monkeypatch.setitem(_WRITERS, "STRIDED_SLICE", ("StridedSliceOptions", lambda op: fields))
    data = write_tflite(graph)
    np.testing.assert_array_equal(litert(data, [value])[0], wanted)
    np.testing.assert_array_equal(run_reference(read_tflite(data), [value])[0], wanted)
