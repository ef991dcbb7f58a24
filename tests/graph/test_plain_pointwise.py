"""TFLite's elementwise operators and reductions of plain numbers against LiteRT's kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from covp.graph.attributes import Elementwise, Mean
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.ops import definition
from covp.graph.ops.along_axis import ArgMax, Cumulative
from covp.graph.ops.normalization import LocalResponse
from covp.graph.ops.pointwise import POINTWISE
from covp.graph.ops.unary import Gelu
from covp.graph.reference import run_reference
from covp.graph.tflite import read_tflite
from covp.graph.zoo.builder import single_op_graph
from covp.graph.zoo.tflite_writer import write_tflite

UNARY = [
    "ABS", "COS", "EXP", "FLOOR", "GELU", "HARD_SWISH", "LOG", "NEG", "RELU_0_TO_1",
    "RELU_N1_TO_1", "RSQRT", "SIGN", "SIN", "SQRT", "SQUARE",
]  # fmt: skip
BINARY = [
    "ATAN2", "DIV", "EQUAL", "FLOOR_DIV", "FLOOR_MOD", "GREATER", "GREATER_EQUAL", "LESS",
    "LESS_EQUAL", "MAXIMUM", "MINIMUM", "NOT_EQUAL", "POW", "PRELU", "SQUARED_DIFFERENCE",
]  # fmt: skip
INT32 = [
    "EQUAL", "FLOOR_DIV", "FLOOR_MOD", "GREATER", "LESS_EQUAL", "MAXIMUM", "MINIMUM",
    "NOT_EQUAL", "POW", "SQUARED_DIFFERENCE", "BITWISE_XOR", "RIGHT_SHIFT", "DIV",
]  # fmt: skip


def agrees(litert: Any, graph: Graph, inputs: list[Any]) -> None:
    data = write_tflite(graph)
    wanted = litert(data, inputs)
    for ours, theirs in zip(run_reference(read_tflite(data), inputs), wanted, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=1e-6)


def layer(kind: str, values: list[Any], attributes: Any = None, dtype: Any = None) -> Graph:
    tensors = [Tensor(n, v.shape, v.dtype) for n, v in zip("abc", values, strict=False)]
    to_bool = kind in POINTWISE and POINTWISE[kind].gives == "bool"
    dtype = np.dtype(bool if to_bool else dtype or values[-1].dtype)
    op = Op(kind, "layer", list(tensors), [Tensor("y", (), dtype)], attributes)
    op.output.shape = definition(kind).infer_shapes(op)[0]
    return Graph("layer", tensors, op.outputs, [op])


def floats(*shape: int, low: float = -3) -> Any:
    return np.random.default_rng(len(shape)).uniform(low, 3, shape).astype(np.float32)


@pytest.mark.parametrize("kind", UNARY)
def test_functions_of_one(litert: Any, kind: str) -> None:
    positive = kind in ("LOG", "RSQRT", "SQRT")
    x = floats(3, 40, low=0.1 if positive else -3)
    for attributes in [Gelu(), Gelu(approximate=True)] if kind == "GELU" else [None]:
        agrees(litert, layer(kind, [x], attributes), [x])


@pytest.mark.parametrize("kind", BINARY)
def test_functions_of_two(litert: Any, kind: str) -> None:
    x = floats(2, 4, 5, low=0.1 if kind == "POW" else -3)
    y = floats(2, 4, 5) + 1 if kind == "ATAN2" else floats(4, 1)
    for activation in ["none", "relu6"] if kind == "DIV" else ["none"]:
        how = Elementwise(activation) if kind == "DIV" else None  # type: ignore[arg-type]
        agrees(litert, layer(kind, [x, y], how), [x, y])


@pytest.mark.parametrize("kind", INT32)
def test_integers(litert: Any, kind: str) -> None:
    rng = np.random.default_rng(4)
    x = rng.integers(-50, 50, (4, 25)).astype(np.int32)
    y = rng.integers(1, 5, (4, 25)).astype(np.int32)
    if kind in ("FLOOR_DIV", "FLOOR_MOD", "DIV"):
        y *= rng.choice([1, -1], y.shape).astype(np.int32)
    agrees(litert, layer(kind, [x, y], Elementwise() if kind == "DIV" else None), [x, y])


def test_logic_and_choice(litert: Any) -> None:
    c, d = floats(3, 4) > 0, floats(3, 4) > 1
    for kind in ("LOGICAL_AND", "LOGICAL_OR"):
        agrees(litert, layer(kind, [c, d]), [c, d])
    agrees(litert, layer("LOGICAL_NOT", [c]), [c])
    values = [c, floats(2, 3, 4), floats(4)]
    agrees(litert, layer("SELECT_V2", values), values)
    graph = layer("SELECT_V2", [c, floats(3, 4), floats(3, 4) + 1])
    graph.ops[0].kind = "SELECT"
    agrees(litert, graph, [c, floats(3, 4), floats(3, 4) + 1])


@pytest.mark.parametrize("to", ["int32", "int64", "bool"])
def test_casts(litert: Any, to: str) -> None:
    x = np.abs(floats(30)) * 20
    agrees(litert, layer("CAST", [x], dtype=to), [x])


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        *((kind, Mean((0, 2), keep)) for keep in (True, False)
          for kind in ("MEAN", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "SUM")),
        ("ARG_MAX", ArgMax(1)),
        ("ARG_MIN", ArgMax(2)),
        ("CUMSUM", Cumulative(1, exclusive=True, reverse=True)),
        ("CUMSUM", Cumulative(2)),
        ("L2_NORMALIZATION", None),
        ("LOCAL_RESPONSE_NORMALIZATION", LocalResponse(2, 1, 1.5, 0.3, 0.7)),
        ("LOG_SOFTMAX", None),
    ],
)  # fmt: skip
def test_along_axes(litert: Any, kind: str, attributes: Any) -> None:
    shape = (2, 3, 4, 7) if kind == "LOCAL_RESPONSE_NORMALIZATION" else (2, 3, 7)
    x = Tensor("x", shape, np.dtype(np.float32))
    dtype = np.int64 if kind == "ARG_MAX" else np.int32 if kind == "ARG_MIN" else None
    agrees(litert, single_op_graph(kind, x, attributes=attributes, dtype=dtype), [floats(*shape)])


@pytest.mark.parametrize("kind", ["REDUCE_ANY", "REDUCE_ALL"])
def test_any_and_all(litert: Any, kind: str) -> None:
    x = Tensor("x", (5, 3), np.dtype(bool))
    graph = single_op_graph(kind, x, attributes=Mean((1,), False))
    agrees(litert, graph, [floats(5, 3) > (1 if kind == "REDUCE_ANY" else -1)])
