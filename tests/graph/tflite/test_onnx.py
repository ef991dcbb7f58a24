"""ONNX files: what the reader makes of them, compared with onnxruntime; what it rejects."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import covp
from covp.errors import ModelError
from covp.graph.onnx import load_onnx, read_onnx
from covp.graph.reference import run_reference

_RNG = np.random.default_rng(1)


def _model(nodes, inputs, outputs, constants=(), opset=21, **more):
    values = [
        [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in given]
        for given in (inputs, outputs)
    ]
    weights = [onnx.numpy_helper.from_array(array, name) for name, array in constants]
    graph = helper.make_graph(nodes, "g", *values, weights)
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9, **more)


def _mlp():
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"], transB=1, name="first"),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Constant", [], ["s"], value_ints=[2, 4]),
        helper.make_node("Reshape", ["r", "s"], ["y"]),
    ]
    weights = _RNG.standard_normal((8, 5)).astype(np.float32)
    constants = [("w", weights), ("b", np.arange(8, dtype=np.float32) - 4)]
    inputs, outputs = [("x", TensorProto.FLOAT, [1, 5])], [("y", TensorProto.FLOAT, [2, 4])]
    return _model(nodes, inputs, outputs, constants)


@pytest.mark.process
@pytest.mark.parametrize("platform", ["riscv32", "mps2-an386"])
def test_a_network_computes_what_onnxruntime_computes(platform, tmp_path):
    model = _mlp()
    path = tmp_path / "mlp.onnx"
    onnx.save(model, path)
    graph = load_onnx(path)
    x = _RNG.standard_normal((1, 5)).astype(np.float32)
    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    with covp.Session(platform) as session:
        got = session.load(covp.compile(graph, platform)).run(x)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(run_reference(graph, [x])[0], wanted, rtol=1e-5, atol=1e-6)
    assert [op.name for op in graph.ops] == ["first", "Relu_1", "Reshape_3_reshape"]
    assert "h" in {tensor.name for tensor in graph.tensors()}


@pytest.mark.parametrize("name", ["batch", "batch_size", "N", "unk__12", "s77", "", "seq_len", "T"])
def test_an_open_batch_is_one_with_a_note_and_other_axes_are_not_guessed(name):
    shape = [name or None, 3]
    node = helper.make_node("Relu", ["x"], ["y"])
    model = _model([node], [("x", TensorProto.FLOAT, shape)], [("y", TensorProto.FLOAT, shape)])
    if name in ("seq_len", "T"):
        with pytest.raises(ModelError, match=rf"dynamic shape \({name},3\).* --shape x=1,3"):
            read_onnx(model)
        return
    graph = read_onnx(model)
    assert graph.outputs[0].shape == (1, 3)
    assert graph.notes == ("input x has an open batch, taken as 1; --shape x=1,3 states another",)
    assert covp.compile(graph, "riscv32").warnings == graph.notes


@pytest.mark.parametrize("shape", [["batch"], ["batch", "width"], ["batch", 3, None]])
def test_more_that_is_open_is_not_guessed(shape):
    node = helper.make_node("Relu", ["x"], ["y"])
    model = _model([node], [("x", TensorProto.FLOAT, shape)], [("y", TensorProto.FLOAT, shape)])
    with pytest.raises(ModelError, match="dynamic shape"):
        read_onnx(model)


def test_a_shape_that_is_open_is_given_by_the_user():
    model = _model(
        [helper.make_node("Relu", ["x"], ["y"])],
        [("x", TensorProto.FLOAT, ["batch", 3])],
        [("y", TensorProto.FLOAT, ["batch", 3])],
    )
    given = read_onnx(model, shapes={"x": (2, 3)})
    assert (given.outputs[0].shape, given.notes) == ((2, 3), ())
    with pytest.raises(ModelError, match="cannot be given the shape"):
        read_onnx(model, shapes={"x": (2, 4)})
