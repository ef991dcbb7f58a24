"""Operators of floats on NaN, infinities, zeros of both signs, subnormal and the largest numbers:
the reference and cores with and without a floating-point unit against onnxruntime.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from covp.graph.onnx import read_onnx
from tests.extremes import FLUSHED, LEFT, PAIRS, RIGHT, VALUES, assert_equal, results

Node = tuple[str, dict[str, Any]]
PLATFORMS = ["riscv32", "cortex-m4"]
NEAR = {
    **dict.fromkeys(("Div", "LpNormalization", "Mish", "Tanh"), FLUSHED),
    # onnxruntime's own exp, tanh and erf of vectors
    **dict.fromkeys(("Celu", "Elu", "Gelu", "Selu", "Sigmoid", "Swish"), 1e-7),
    **dict.fromkeys(("LogSoftmax", "ReduceLogSumExp"), 1e-7),  # a difference of logarithms
}
"""What results may differ by; of other operators nothing but the last digits."""
ONE: list[Node] = [
    *((kind, {}) for kind in (
        "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Elu",
        "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "IsInf", "IsNaN", "Log", "Mish",
        "Neg", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus",
        "Softsign", "Sqrt", "Swish", "Tan", "Tanh",
    )),
    ("Celu", {"alpha": 1.5}), ("Gelu", {"approximate": "tanh"}), ("LeakyRelu", {"alpha": 0.1}),
    ("Shrink", {"bias": 0.5, "lambd": 1.0}), ("ThresholdedRelu", {"alpha": 1.0}),
]  # fmt: skip
TWO: list[Node] = [
    *((kind, {}) for kind in (
        "Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "PRelu", "Equal", "Less", "LessOrEqual",
        "Greater", "GreaterOrEqual",
    )),
    ("Mod", {"fmod": 1}),
]  # fmt: skip
ROWS: list[Node] = [
    *((kind, {"axis": 1}) for kind in (
        "ArgMax", "ArgMin", "LogSoftmax", "LpNormalization", "Softmax",
    )),
    *((f"Reduce{kind}", {"keepdims": 0}) for kind in (
        "L1", "L2", "LogSum", "LogSumExp", "Mean", "Prod", "Sum", "SumSquare",
    )),
    *((f"{kind}Pool", {"kernel_shape": [1, 2]}) for kind in ("Average", "Max")),
    ("GlobalAveragePool", {}),
]  # fmt: skip


def model(nodes: list[Node], inputs: dict[str, Any]) -> onnx.ModelProto:
    """A graph with an output for each node; reductions are along axis 1, pools of 4 axes."""
    made, outputs = [], []
    for number, (kind, attributes) in enumerate(nodes):
        names = list(inputs)
        if "Pool" in kind:
            names = ["image"]
        elif kind.startswith("Reduce"):
            names.append("axes")
        made.append(helper.make_node(kind, names, [f"y{number}"], **attributes))
        outputs.append(helper.make_empty_tensor_value_info(f"y{number}"))
    constants = [numpy_helper.from_array(np.array([1]), "axes")]
    if any("Pool" in kind for kind, _ in nodes):
        constants.append(numpy_helper.from_array(np.array([1, len(PAIRS), 1, 2]), "shape"))
        made.insert(0, helper.make_node("Reshape", [*inputs, "shape"], ["image"]))
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, value.shape)
        for name, value in inputs.items()
    ]
    graph = helper.make_graph(made, "extremes", values, outputs, constants)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)
    return onnx.shape_inference.infer_shapes(proto)


def onnxruntimes(proto: onnx.ModelProto, inputs: dict[str, Any]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return list(onnxruntime.InferenceSession(proto.SerializeToString(), options).run(None, inputs))


def everywhere(proto: onnx.ModelProto, inputs: dict[str, Any], platform: str) -> list[list[Any]]:
    return results(read_onnx(proto), list(inputs.values()), platform)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize(
    ("nodes", "inputs"),
    [
        (ONE, {"x": VALUES}),
        (TWO, {"x": LEFT, "y": RIGHT}),
        (ROWS, {"x": PAIRS}),
    ],
    ids=["one", "two", "rows"],
)
def test_extremes(nodes: list[Node], inputs: dict[str, Any], platform: str) -> None:
    proto = model(nodes, inputs)
    wanted = onnxruntimes(proto, inputs)
    for outputs in everywhere(proto, inputs, platform):
        for node, ours, theirs in zip(nodes, outputs, wanted, strict=True):
            if node[0] == "ReduceLogSumExp":  # -inf there for the least number after an infinity
                ours, theirs = (x[~np.isneginf(PAIRS[:, 0])] for x in (ours, theirs))
            assert_equal(ours, theirs, node, NEAR.get(node[0], 0))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("limits", [{}, {"min": -1.0}, {"max": 1.0}], ids=str)
def test_clip_without_limits(limits: dict[str, float], platform: str) -> None:
    """What is missing is the largest number, not an infinity."""
    inputs = {"x": VALUES}
    proto = model([("Clip", {})], inputs)
    for name in ("min", "max"):
        proto.graph.node[0].input.append(name if name in limits else "")
    constants = [numpy_helper.from_array(np.array(v, np.float32), n) for n, v in limits.items()]
    proto.graph.initializer.extend(constants)
    (wanted,) = onnxruntimes(proto, inputs)
    for (found,) in everywhere(proto, inputs, platform):
        assert_equal(found, wanted)


def test_a_clip_at_zero_without_an_upper_limit_keeps_infinity() -> None:
    """It is a Relu and joins the layer before; the rule 'no upper limit' says so."""
    inputs = {"x": VALUES}
    proto = model([("Clip", {})], inputs)
    proto.graph.node[0].input.append("zero")
    proto.graph.initializer.append(numpy_helper.from_array(np.zeros((), np.float32), "zero"))
    (wanted,) = onnxruntimes(proto, inputs)
    infinite = np.isposinf(VALUES)
    assert (wanted[infinite] == np.finfo(np.float32).max).all()
    for (found,) in everywhere(proto, inputs, "cortex-m4"):
        assert np.isposinf(found[infinite]).all()
        assert_equal(found[~infinite], wanted[~infinite])


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_largest_of_numbers_and_nan(platform: str) -> None:
    """A NaN, as the standard's own evaluator has it; onnxruntime's result depends on its place."""
    nodes: list[Node] = [("ReduceMax", {"keepdims": 0}), ("ReduceMin", {"keepdims": 0})]
    inputs = {"x": PAIRS}
    for largest, least in everywhere(model(nodes, inputs), inputs, platform):
        assert_equal(largest, PAIRS.max(axis=1))
        assert_equal(least, PAIRS.min(axis=1))
