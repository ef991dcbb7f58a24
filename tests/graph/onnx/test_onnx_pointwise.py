"""Elementwise operators, reductions and normalizations of ONNX on cores.

The official tests of one node, and what they leave out against onnxruntime.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from covp.testing.onnx_backend import Backend

from .node_tests import node_tests, passes

_LISTED = """
Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh BatchNormalization BitShift BitwiseAnd
BitwiseNot BitwiseOr BitwiseXor Ceil Celu Clip Cos Cosh CumProd CumSum Div Elu Equal Erf Exp Floor
Gelu Greater GreaterOrEqual GroupNormalization HardSigmoid HardSwish Hardmax InstanceNormalization
IsInf IsNaN LRN LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax LpNormalization Max
Mean MeanVarianceNormalization Min Mish Mod Mul Neg Or PRelu Pow RMSNormalization Reciprocal
ReduceL1 ReduceL2 ReduceLogSum ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare
Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softmax Softplus Softsign Sqrt Sub Sum Swish Tan Tanh
ThresholdedRelu Where Xor
"""
OPERATORS = _LISTED.split()
TYPES = {np.dtype(name) for name in (
    "float32", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool",
)}  # fmt: skip


@cache
def official() -> dict[str, list[Any]]:
    """Operator to its tests with tensors of known types."""

    def readable(test: Any) -> bool:
        graph = test.model.graph
        values = [value.type.tensor_type.elem_type for value in (*graph.input, *graph.output)]
        known = all(v and onnx.helper.tensor_dtype_to_np_dtype(v) in TYPES for v in values)
        return known and test.model.opset_import[0].version >= 7

    return {
        kind: [test for test in tests if readable(test)] for kind, tests in node_tests().items()
    }


@pytest.mark.parametrize("kind", OPERATORS)
def test_one_official_test(kind: str) -> None:
    number = OPERATORS.index(kind)
    tests = official()[kind]
    passes(tests[number % len(tests)], ("riscv32", "mps2-an386")[number % 2])


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["riscv32", "mps2-an386"])
@pytest.mark.parametrize("kind", OPERATORS)
def test_all_official_tests(kind: str, platform: str) -> None:
    for test in official()[kind]:
        passes(test, platform)


def floats(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def positive(*shape: int) -> Any:
    return np.abs(floats(*shape)) + np.float32(0.5)


CASES: dict[str, tuple[str, list[Any], tuple[int, ...], dict[str, Any]]] = {
    "batch": ("BatchNormalization", [floats(2, 3, 4, 5), floats(3), floats(3), floats(3),
              positive(3)], (1, 2, 3, 4), {"opset": 15, "epsilon": 1e-3}),
    "clip of old": ("Clip", [floats(3, 4)], (), {"opset": 10, "min": -0.5, "max": 0.25}),
    "groups of old": ("GroupNormalization", [floats(2, 6, 3), floats(2), floats(2)], (1, 2),
                      {"opset": 20, "num_groups": 2}),
    "layer": ("LayerNormalization", [floats(2, 3, 4), floats(1, 4), floats(4)], (1, 2),
              {"opset": 17, "axis": -2}),
    "layer's figures": ("LayerNormalization", [floats(2, 3, 4), floats(4)], (1,),
                        {"opset": 17, "outputs": 3}),
    "maximum of three": ("Max", [floats(3, 4), floats(4), floats(1)], (2,), {"opset": 13}),
    "mean of three": ("Mean", [floats(3, 4), floats(4), floats(1)], (), {"opset": 13}),
    "neighbours": ("LRN", [floats(1, 7, 2, 2)], (), {"opset": 13, "size": 5, "bias": 2.0}),
    "no axes": ("ReduceSum", [floats(3, 4), np.zeros(0, np.int64)], (1,),
                {"opset": 18, "noop_with_empty_axes": 1}),
    "powers of integers": ("Pow", [np.arange(-4, 5, dtype=np.int32), np.array([3], np.int32)],
                           (1,), {"opset": 15}),
    "rows of old": ("Softmax", [floats(2, 3, 4)], (), {"opset": 11, "axis": 1}),
    "slopes": ("PRelu", [floats(2, 3, 4, 5), floats(3, 1, 1)], (1,), {"opset": 16}),
    "softmax of channels": ("Softmax", [floats(2, 3, 4, 5)], (), {"opset": 13, "axis": 1}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_onnxruntime_computes(
    one_node: Callable[..., onnx.ModelProto], on_cores: Any, case: str
) -> None:
    kind, values, constants, more = CASES[case]
    model = one_node(kind, values, constants=constants, **more)
    model.ir_version = 9
    inputs = [value for i, value in enumerate(values) if i not in constants]
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [value.name for value in session.get_inputs()]
    wanted = session.run(None, dict(zip(names, inputs, strict=True)))
    on_cores(model, inputs, wanted)


@pytest.mark.parametrize(
    ("bounds", "kinds"),
    [((0, 6), []), ((-1, 2), ["CLIP"])],
)
def test_a_clamp_becomes_part_of_a_convolution(bounds: tuple[float, float], kinds: Any) -> None:
    """As PyTorch exports ReLU6; the bounds are constants."""
    helper = onnx.helper
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Clip", ["c", "low", "high"], ["d"]),
        helper.make_node("Conv", ["d", "v"], ["y"]),
    ]
    ends = [onnx.numpy_helper.from_array(np.array(value, np.float32), name)
            for value, name in zip(bounds, ("low", "high"), strict=True)]  # fmt: skip
    weights = [onnx.numpy_helper.from_array(floats(*shape), name)
               for name, shape in (("w", (3, 2, 1, 1)), ("v", (3, 3, 1, 1)))]  # fmt: skip
    shapes = (("x", (1, 2, 4, 4)), ("y", (1, 3, 4, 4)))
    values = [helper.make_tensor_value_info(name, 1, shape) for name, shape in shapes]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], [*weights, *ends])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    x = floats(1, 2, 4, 4) * 3
    wanted = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    prepared = Backend.prepare(model, "riscv32")
    np.testing.assert_allclose(prepared.run([x])[0], wanted, rtol=1e-5, atol=1e-5)
    layers = [layer.op for layer in prepared.program.layers if layer.op != "TRANSPOSE"]
    assert layers == ["CONV_2D", *kinds, "CONV_2D"]
