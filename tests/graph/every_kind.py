"""Small layers of every kind of operator: those of the onnx package's node tests, and others."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.errors import CovpError
from covp.graph.attributes import (
    Concatenation,
    Conv2D,
    DepthwiseConv2D,
    Elementwise,
    FullyConnected,
    LeakyRelu,
    Mean,
    Pad,
    Padding,
    Pool2D,
    ResizeNearest,
    Split,
    StridedSlice,
)
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.onnx import read_onnx
from covp.graph.ops.circular_buffer import CircularBuffer
from covp.graph.ops.generate import Generated
from covp.graph.ops.layer_norm_int8 import LayerNormInt8
from covp.graph.ops.lookup import LookupTable
from covp.graph.ops.placed import MirrorPad
from covp.graph.ops.rearrange import BatchBlocks, Pack, Reverse
from covp.graph.passes import run_passes
from covp.graph.zoo.builder import single_op_graph
from covp.testing.tensors import int8, plain
from tests.codegen import test_detection, test_sequence_lstm, test_svdf, test_tiled_attention
from tests.graph.onnx.node_tests import node_tests

MOST = 20_000
"""Elements of all tensors of a layer: more would take long."""
_RNG = np.random.default_rng(5)


def layers() -> list[Op]:
    """All, each once."""
    found: dict[str, Op] = {}
    for op in (*_of_onnx(), *_own()):
        tensors = [t for t in (*op.inputs, *op.outputs) if t is not None]
        if sum(tensor.size for tensor in tensors) <= MOST:
            forms = [(t.shape, t.dtype.name) if t else None for t in (*op.inputs, *op.outputs)]
            found.setdefault(f"{op.kind} {op.attributes} {forms}", op)
    return list(found.values())


@cache
def _of_onnx() -> list[Op]:
    found: list[Op] = []
    for tests in node_tests().values():
        for test in tests:
            try:
                found += read_onnx(test.model).ops
            except CovpError:
                continue  # an operator or type that is not supported
    return found


def _weights(*shape: int) -> NDArray[Any]:
    return _RNG.integers(-127, 128, shape, np.int8)


def _x(*shape: int) -> Tensor:
    return int8("x", shape, 0.1, 3)


def _floats(*shape: int) -> Tensor:
    return plain("x", shape)


def _own() -> Iterator[Op]:
    graphs: list[Graph] = [*_windows(), *_pointwise(), *_moves(), *_others()]
    for graph in graphs:
        yield from graph.ops


def _windows() -> Iterator[Graph]:
    bias = plain("bias", (4,), np.int32, np.arange(4, dtype=np.int32))
    for stride, padding, dilation in (
        ((1, 1), Padding(1, 1, 1, 1), (1, 1)),
        ((2, 1), Padding(0, 1, 2, 0), (1, 2)),
        ((2, 2), Padding(), (1, 1)),
    ):
        how = {"attributes": Conv2D(stride, padding, dilation), "scale": 0.9}
        weights = int8("w", (4, 3, 2, 3), 0.01, 0, _weights(4, 3, 2, 3))
        yield single_op_graph("CONV_2D", _x(1, 7, 8, 3), weights, bias, **how)
        weights = int8("w", (1, 2, 3, 4), 0.01, 0, _weights(1, 2, 3, 4))
        how["attributes"] = DepthwiseConv2D(stride, padding, dilation, 2)
        yield single_op_graph("DEPTHWISE_CONV_2D", _x(2, 7, 8, 2), weights, bias, **how)
        attributes = Pool2D((2, 3), stride, padding)
        for kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
            yield single_op_graph(kind, _x(1, 7, 8, 3), attributes=attributes)
            yield single_op_graph(kind, _floats(1, 7, 8, 3), attributes=attributes)
    for shape, kept in (((2, 3, 4), False), ((3, 5, 6), True), ((4, 6), False)):
        weights = int8("w", (5, 6), 0.01, 0, _weights(5, 6))
        whole = FullyConnected(keep_num_dims=kept)
        yield single_op_graph("FULLY_CONNECTED", _x(*shape), weights, None, attributes=whole)


def _pointwise() -> Iterator[Graph]:
    for kind in ("ATAN2", "FLOOR_DIV", "FLOOR_MOD", "NOT_EQUAL"):
        result = {"dtype": "bool"} if kind == "NOT_EQUAL" else {}
        yield single_op_graph(kind, _floats(2, 3, 4), plain("y", (3, 1)), **result)
    for kind in ("RELU6", "RELU_0_TO_1", "RELU_N1_TO_1", "SQUARE"):
        yield single_op_graph(kind, _floats(2, 3, 4))
    shifted = plain("x", (3, 4), np.int32), plain("y", (4,), np.int32)
    yield single_op_graph("RIGHT_SHIFT", *shifted)
    for kind in ("ADD", "SUB", "MUL"):
        yield single_op_graph(kind, _x(2, 3, 4), int8("y", (3, 1)), attributes=Elementwise())
    yield single_op_graph("LEAKY_RELU", _x(2, 3, 4), attributes=LeakyRelu(0.3))
    yield single_op_graph("QUANTIZE", _floats(2, 3), dtype="int8", scale=0.05)
    yield single_op_graph("DEQUANTIZE", _x(2, 3), dtype="float32")
    table = LookupTable(tuple(range(127, -129, -1)))
    yield single_op_graph("LOOKUP_TABLE", _x(2, 3), attributes=table)


def _moves() -> Iterator[Graph]:
    x = _floats(2, 4, 6, 3)
    pads = ((0, 0), (1, 2), (2, 0), (0, 1))
    yield single_op_graph("PADV2", x, attributes=Pad(pads, 1.0))
    for mode in ("reflect", "symmetric"):
        yield single_op_graph("MIRROR_PAD", x, attributes=MirrorPad(pads, mode))
    yield single_op_graph("CONCATENATION", x, _floats(2, 4, 2, 3), attributes=Concatenation(2))
    yield _split()
    slices = ((0, 2, 1), (3, 0, -1), (1, 6, 2), (1, 2, 1))
    yield single_op_graph("STRIDED_SLICE", x, attributes=StridedSlice(slices, (3,), (0,)))
    slices = ((0, 2, 1), (1, 3, 1), (0, 6, 1), (1, 3, 1))
    yield single_op_graph("SLICE", x, attributes=StridedSlice(slices))
    yield single_op_graph("REVERSE_V2", x, attributes=Reverse((1, 3)))
    yield single_op_graph("PACK", x, x, x, attributes=Pack(2))
    yield single_op_graph("UNPACK", x, attributes=Pack(1), outputs=4)
    blocks = BatchBlocks((2, 3), ((1, 1), (0, 0)))
    yield single_op_graph("SPACE_TO_BATCH_ND", x, attributes=blocks)
    yield single_op_graph("BATCH_TO_SPACE_ND", _floats(12, 3, 2, 3), attributes=blocks)
    for size in ((8, 6), (5, 9)):
        for half in (False, True):
            how = ResizeNearest(size, False, half)
            yield single_op_graph("RESIZE_NEAREST_NEIGHBOR", x, attributes=how)
            yield single_op_graph("RESIZE_BILINEAR", x, attributes=how)
            yield single_op_graph("RESIZE_BILINEAR", _x(1, 4, 6, 2), attributes=how)


def _split() -> Graph:
    axis = plain("axis", (), np.int32, np.array(2, np.int32))
    outputs = [plain(f"y{n}", (2, 4, 2, 3)) for n in range(3)]
    x = _floats(2, 4, 6, 3)
    return Graph("split", [x], outputs, [Op("SPLIT", "split_0", [axis, x], outputs, Split(2))])


def _others() -> Iterator[Graph]:
    for kind in ("REDUCE_ALL", "REDUCE_ANY"):
        yield single_op_graph(kind, plain("x", (2, 3, 4), np.bool_), attributes=Mean((1,), False))
    for axes, kept in (((1,), False), ((0, 2), True)):
        yield single_op_graph("REDUCE_LOG_SUM_EXP", _floats(2, 3, 4), attributes=Mean(axes, kept))
    yield single_op_graph("L2_NORMALIZATION", _floats(2, 3, 4))
    gamma, beta = (plain(n, (4,), data=np.linspace(1, 2, 4, dtype=np.float32)) for n in "gb")
    how = {"attributes": LayerNormInt8(), "scale": 0.02}
    yield single_op_graph("LAYER_NORMALIZATION_INT8", _x(2, 3, 4), gamma, beta, **how)
    yield single_op_graph("FILL", plain("x", (), np.float32), attributes=Generated((2, 3)))
    yield single_op_graph("SHAPE", _floats(2, 3), dtype="int32")
    buffer = CircularBuffer(1)
    yield single_op_graph("CIRCULAR_BUFFER", _x(1, 6, 2), int8("n", (1, 2, 2)), attributes=buffer)
    for data, dtype in test_svdf.FORMS:
        yield test_svdf.network(data, dtype, 1)
    for form in ("float32", "int8", "int16"):
        yield test_sequence_lstm.network(form, 1, time_major=form == "int8")
    yield test_detection.network("float32", 1)
    for transposed in (False, True):
        graph, _ = test_tiled_attention.attention(heads=2, transposed=transposed)
        yield run_passes(graph)
