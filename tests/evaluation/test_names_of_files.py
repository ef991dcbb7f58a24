"""Layers bear the names of the model's file, so that they are found again in Netron."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import tflite
from onnx import helper, numpy_helper
from tflite.BuiltinOperator import BuiltinOperator

from covp.evaluation import build
from covp.graph.models import find_model

KINDS = {number: name for name, number in vars(BuiltinOperator).items() if isinstance(number, int)}


def operators(path: Path) -> list[tuple[str, list[str]]]:
    """Of a TFLite file: the kind and outputs of each operator, as Netron lists them."""
    model = tflite.Model.GetRootAs(path.read_bytes(), 0)
    graph = model.Subgraphs(0)
    found = []
    for operator in (graph.Operators(i) for i in range(graph.OperatorsLength())):
        code = model.OperatorCodes(operator.OpcodeIndex())
        kind = KINDS[max(code.BuiltinCode(), code.DeprecatedBuiltinCode())]
        outputs = [graph.Tensors(i).Name().decode() for i in operator.OutputsAsNumpy()]
        found.append((kind, outputs))
    return found


@pytest.mark.parametrize("name", ["kws", "vww", "resnet", "toycar", "sww"])
def test_tflite(name: str) -> None:
    """A layer's index, kind and output are those of an operator of the file."""
    file = find_model(name)
    if file.source != "official":
        pytest.skip("the official model files are not here")
    listed = operators(file.path)
    program = build(name, "cortex-m4").program
    assert len(program.layers) >= len(listed) - 1, "reshapes alone are no layers"
    for layer in program.layers:
        kind, outputs = listed[layer.index]
        assert (layer.op, [tensor.name for tensor in layer.outputs]) == (kind, outputs)
        assert layer.name == f"{kind.lower()}_{layer.index}"


def cnn() -> onnx.ModelProto:
    """Conv, Relu, MaxPool, Conv, Add, Flatten, Gemm, Softmax; its nodes have names."""
    random = np.random.default_rng(0)
    shapes = {"w0": (4, 1, 3, 3), "w1": (4, 4, 3, 3), "w2": (64, 10), "b2": (10,)}
    weights = [
        numpy_helper.from_array(random.random(shape).astype(np.float32) - 0.5, key)
        for key, shape in shapes.items()
    ]
    pads = {"pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["conv"], "first", **pads),
        helper.make_node("Relu", ["conv"], ["relu"], "rectify"),
        helper.make_node(
            "MaxPool", ["relu"], ["pool"], "pool", kernel_shape=[2, 2], strides=[2, 2]
        ),
        helper.make_node("Conv", ["pool", "w1"], ["inner"], "second", **pads),
        helper.make_node("Add", ["inner", "pool"], ["sum"], "residual"),
        helper.make_node("Flatten", ["sum"], ["flat"], "flatten"),
        helper.make_node("Gemm", ["flat", "w2", "b2"], ["scores"], "classify"),
        helper.make_node("Softmax", ["scores"], ["y"], "share"),
    ]
    ends = [
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)]
        for name, shape in (("x", (1, 1, 8, 8)), ("y", (1, 10)))
    ]
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(helper.make_graph(nodes, "cnn", *ends, weights), opset_imports=opsets)


def test_onnx(tmp_path: Path) -> None:
    """A layer has the name and index of a node, which computes it or begins what it computes."""
    model = cnn()
    onnx.save(model, tmp_path / "cnn.onnx")
    layers = build(str(tmp_path / "cnn.onnx"), "cortex-m4").program.layers
    nodes = [node.name for node in model.graph.node]
    assert [layer.name for layer in layers] == [nodes[layer.index] for layer in layers]
    without = {"rectify", "flatten"}  # a part of the convolution, and a view
    assert [layer.name for layer in layers] == [name for name in nodes if name not in without]
    assert layers[-1].outputs[0].name == "y"
