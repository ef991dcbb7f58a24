"""Biases of QDQ sums of products, whose scale is what the file says, against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from covp.graph.onnx import read_onnx
from covp.graph.reference import run_reference

X, W, Y = np.float32(0.02), np.float32(0.01), np.float32(0.25)
UNIT = X * W


def model(kind, bias, scale, zero=0, outputs=4, alpha=1.0):
    """x of int8, DequantizeLinear, Conv or Gemm with a dequantized bias, QuantizeLinear."""
    rng = np.random.default_rng(3)
    image = kind == "Conv"
    shape = (1, 3, 5, 5) if image else (7, 3)
    values = {
        "xs": X, "xz": np.int8(3), "ws": W, "ys": Y, "yz": np.int8(-3), "bs": scale,
        "w_q": rng.integers(-127, 128, (outputs, 3, *(1, 1)[: 2 * image])).astype(np.int8),
        "b_q": bias, "bz": np.full(np.shape(scale), zero, bias.dtype),
    }  # fmt: skip
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["xf"]),
        helper.make_node("DequantizeLinear", ["w_q", "ws"], ["wf"]),
        helper.make_node("DequantizeLinear", ["b_q", "bs", "bz"], ["bf"], axis=0),
        helper.make_node(kind, ["xf", "wf", "bf"], ["yf"])
        if image
        else helper.make_node(kind, ["xf", "wf", "bf"], ["yf"], transB=1, alpha=alpha),
        helper.make_node("QuantizeLinear", ["yf", "ys", "yz"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.INT8, shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.INT8, None)],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in values.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


def steps_apart(proto):
    """The largest difference of reference and onnxruntime, and the kinds of the graph."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    shape = session.get_inputs()[0].shape
    x = np.random.default_rng(4).integers(-128, 128, shape).astype(np.int8)
    (wanted,), graph = session.run(None, {"x": x}), read_onnx(proto)
    (found,) = run_reference(graph, [x])
    return int(np.abs(found.astype(int) - wanted).max()), {op.kind for op in graph.ops}


@pytest.mark.costly
@settings(deadline=None)
@given(
    st.sampled_from(["Conv", "Gemm"]),
    st.sampled_from(["int8", "int32"]),
    st.floats(-7, 7),
    st.booleans(),
    st.sampled_from([1.0, 0.5, 3.0]),
)
def test_the_scale_of_a_bias_counts(kind, dtype, exponent, several, alpha):
    bias = np.array([100, -50, 127, 3], dtype)
    scale = np.float32(UNIT * 2.0**exponent) * np.ones(4 if several else (), np.float32)
    far, _ = steps_apart(model(kind, bias, scale, alpha=alpha))
    assert far <= 1  # ties: float32 sums in onnxruntime, integers here


@pytest.mark.parametrize("kind", ["Conv", "Gemm"])
def test_zero_points_and_shapes(kind):
    bias = np.array([100, -50, 127, 3], np.int8)
    assert steps_apart(model(kind, bias, np.float32(0.05), zero=9))[0] <= 1
    square = np.arange(28, dtype=np.int32).reshape(7, 4)  # one for each row and output
    if kind == "Gemm":
        assert steps_apart(model(kind, square, np.float32(0.05)))[0] <= 1


@pytest.mark.parametrize("kind", ["Conv", "Gemm"])
@pytest.mark.parametrize("times", [1.0, 0.37, 40.0])
def test_a_fine_scale_stays_integer(kind, times):
    bias = np.array([1000, -500, 127, 3], np.int32)
    far, kinds = steps_apart(model(kind, bias, np.float32(UNIT * np.float32(times))))
    assert far <= 1 and kinds <= {"CONV_2D", "FULLY_CONNECTED", "TRANSPOSE", "RESHAPE"}
