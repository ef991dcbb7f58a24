"""INT4 and UINT4 weights of ONNX: integer code with packed weights, as onnxruntime computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from covp.codegen.generate import generate
from covp.graph.onnx import read_onnx
from covp.graph.reference import run_reference
from covp.runtime.session import Session

onnxruntime = pytest.importorskip("onnxruntime")
SHAPES = {"Conv": (8, 4, 3, 3), "depthwise": (4, 1, 3, 3), "MatMul": (36, 10)}
KINDS = {"Conv": "CONV_2D", "depthwise": "DEPTHWISE_CONV_2D", "MatMul": "FULLY_CONNECTED"}
TYPES = {"int4": TensorProto.INT4, "uint4": TensorProto.UINT4}


def model(layer: str, dtype: str, zero_point: int) -> tuple[onnx.ModelProto, tuple[int, ...]]:
    """A quantized layer between QuantizeLinear and DequantizeLinear; its input's shape."""
    rng, shape, kind = np.random.default_rng(0), SHAPES[layer], TYPES[dtype]
    product = layer == "MatMul"
    axis, low = int(product), 0 if dtype == "uint4" else -8
    outputs = shape[axis]
    weights = rng.integers(low, low + 16, shape).ravel().tolist()
    constants = [
        helper.make_tensor("w", kind, shape, weights),
        numpy_helper.from_array(rng.uniform(0.02, 0.2, outputs).astype(np.float32), "ws"),
        helper.make_tensor("wz", kind, (outputs,), [zero_point] * outputs),
        *(numpy_helper.from_array(np.float32(s), n) for n, s in (("xs", 0.05), ("ys", 0.3))),
        *(numpy_helper.from_array(np.int8(z), n) for n, z in (("xz", 3), ("yz", -5))),
    ]
    windows = {"pads": [1, 1, 1, 1], "group": 4 if layer == "depthwise" else 1}
    how: dict[str, Any] = {} if product else windows
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "xs", "xz"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=axis),
        helper.make_node("MatMul" if product else "Conv", ["xd", "wd"], ["c"], **how),
        helper.make_node("QuantizeLinear", ["c", "ys", "yz"], ["cq"]),
        helper.make_node("DequantizeLinear", ["cq", "ys", "yz"], ["y"]),
    ]
    source = (1, 36) if product else (1, 4, 6, 6)
    result = (1, 10) if product else (1, outputs, 6, 6)
    values = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, extents)]
        for name, extents in (("x", source), ("y", result))
    ]
    graph = helper.make_graph(nodes, "g", *values, constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    made.ir_version = 10
    return made, source


@pytest.mark.process
@pytest.mark.parametrize("layer", SHAPES)
@pytest.mark.parametrize(("dtype", "zero_point"), [("int4", 0), ("uint4", 8), ("uint4", 3)])
def test_layers_are_onnxruntimes(layer: str, dtype: str, zero_point: int) -> None:
    """With a zero point of 3 weights reach 12: they are not packed."""
    made, shape = model(layer, dtype, zero_point)
    x = np.random.default_rng(1).normal(0, 2, shape).astype(np.float32)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(made.SerializeToString(), options)
    graph = read_onnx(made)
    (op,) = [op for op in graph.ops if op.kind == KINDS[layer]]
    assert op.input(1).dtype == np.int8
    assert op.input(1).bits == (None if zero_point == 3 else 4)
    wanted = session.run(None, {"x": x})[0]
    assert np.array_equal(run_reference(graph, [x])[0], wanted)
    for platform in ("cortex-m4", "riscv32"):
        with Session(platform) as device:
            assert np.array_equal(device.load(generate(graph, platform)).run(x), wanted)
