"""A Clip between a quantized operator and its QuantizeLinear, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from covp.frontend.onnx import read_onnx
from covp.graph.reference import run_reference

RNG = np.random.default_rng(5)
SCALE = np.float32(1 / 64)
OPERATORS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "Add": (["x", "c"], {}),
    "AveragePool": (["x"], {"kernel_shape": [1, 2]}),
    "Concat": (["x", "c"], {"axis": 1}),
    "Conv": (["x", "w"], {}),
    "GlobalAveragePool": (["x"], {}),
    "LeakyRelu": (["x"], {"alpha": 0.5}),
    "MatMul": (["x", "x"], {}),
    "Mul": (["x", "c"], {}),
    "Sigmoid": (["x"], {}),
    "Softmax": (["x"], {}),
}


def model(kind, dtype, clip):
    """bytes, DequantizeLinear, the operator, Clip or Relu, QuantizeLinear, bytes."""
    names, attributes = OPERATORS[kind]
    zero = 140 if dtype == np.uint8 else 12
    values = {
        "scale": SCALE,
        "zero": np.array(zero, dtype),
        "c_bytes": RNG.integers(-100, 100, (1, 3, 4, 4)).astype(np.int8).view(dtype),
        "w_bytes": RNG.integers(-100, 100, (3, 3, 1, 1)).astype(np.int8).view(dtype),
        "low": np.float32(0.1),
        "high": np.float32(0.3),
    }
    nodes = [
        helper.make_node("DequantizeLinear", [f"{name}_bytes", "scale", "zero"], [name])
        for name in sorted({"x", *names})
    ]
    after = ["r"] if clip == "Relu" else ["r", "low", "high"]
    nodes += [
        helper.make_node(kind, names, ["r"], **attributes),
        helper.make_node(clip, after, ["s"]),
        helper.make_node("QuantizeLinear", ["s", "scale", "zero"], ["y"]),
    ]
    number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x_bytes", number, (1, 3, 4, 4))],
        [helper.make_tensor_value_info("y", number, None)],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in values.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=9)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("clip", ["Clip", "Relu"])
@pytest.mark.parametrize("kind", OPERATORS)
def test_the_result_is_clipped(kind, clip, dtype):
    """One step more or less: onnxruntime computes some of them in float, between other nodes."""
    proto = model(kind, dtype, clip)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    graph = read_onnx(proto)
    x = RNG.integers(-128, 128, (1, 3, 4, 4)).astype(np.int8).view(dtype)
    (wanted,) = session.run(None, {"x_bytes": x})
    (found,) = run_reference(graph, [x])
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    assert np.abs(found.astype(int) - wanted.astype(int)).max() <= 1
    assert not {"ROUND", "CLIP"} & {op.kind for op in graph.ops}
