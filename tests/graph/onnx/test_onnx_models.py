"""Whole ONNX files: functions, control flow, external data, old opsets, names."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import covp
from covp.errors import ModelError
from covp.graph.onnx import load_onnx, read_onnx
from covp.graph.reference import run_reference

_RNG = np.random.default_rng(1)
X = _RNG.standard_normal((2, 3)).astype(np.float32)
W = _RNG.standard_normal((3, 3)).astype(np.float32)


def _model(nodes, constants=(), opset=21, functions=(), outputs=("y",), shape=(2, 3), **more):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in constants],
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
    return helper.make_model(
        graph, opset_imports=imports, ir_version=9, functions=list(functions), **more
    )


def _holds(model, x=X):
    """The graph computes what onnxruntime computes."""
    graph = read_onnx(model)
    wanted = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    for got, expected in zip(run_reference(graph, [x]), wanted, strict=True):
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
    return graph


def _function(name, nodes, inputs, outputs, attributes=()):
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]
    return helper.make_function("local", name, inputs, outputs, nodes, imports, attributes)


def test_local_functions_are_inlined():
    """As exporters write them: a function that calls another one, an attribute passed on."""
    leaf = helper.make_node("Gemm", ["a", "b"], ["c"])
    leaf.attribute.append(
        onnx.AttributeProto(name="alpha", ref_attr_name="s", type=onnx.AttributeProto.FLOAT)
    )
    inner = _function("Scaled", [leaf], ["a", "b"], ["c"], ["s"])
    call = helper.make_node("Scaled", ["p", "q"], ["r"], domain="local", s=0.5)
    outer = _function(
        "Twice", [call, helper.make_node("Add", ["r", "r"], ["t"])], ["p", "q"], ["t"]
    )
    nodes = [
        helper.make_node("Twice", ["x", "w"], ["h"], domain="local"),
        helper.make_node("Twice", ["h", "w"], ["y"], domain="local"),
    ]
    graph = _holds(_model(nodes, [("w", W)], functions=[inner, outer]))
    assert [op.kind for op in graph.ops] == ["FULLY_CONNECTED", "ADD"] * 2


def test_functions_without_end_are_rejected():
    call = helper.make_node("F", ["a"], ["b"], domain="local")
    model = _model([helper.make_node("F", ["x"], ["y"], domain="local")])
    model.functions.append(_function("F", [call], ["a"], ["b"]))
    with pytest.raises(ModelError, match="function F calls itself"):
        read_onnx(model)
    del model.functions[:]
    names = "FGHIJK"
    for name, called in pairwise(names):
        calls = [
            helper.make_node(called, [f"t{i}"], [f"t{i + 1}"], domain="local") for i in range(30)
        ]
        model.functions.append(_function(name, calls, ["t0"], ["t30"]))
    model.functions.append(_function("K", [helper.make_node("Relu", ["a"], ["b"])], ["a"], ["b"]))
    with pytest.raises(ModelError, match="more than 100000 nodes"):
        read_onnx(model)


def _body(nodes, inputs, outputs):
    def value(name, kind, shape):
        return helper.make_tensor_value_info(name, kind, shape)

    return helper.make_graph(
        nodes, "body", [value(*v) for v in inputs], [value(*v) for v in outputs]
    )


def test_a_branch_with_a_constant_condition_is_taken():
    result = [("r", TensorProto.FLOAT, None)]
    branches = {
        "then_branch": _body([helper.make_node("MatMul", ["x", "w"], ["r"])], [], result),
        "else_branch": _body([helper.make_node("Relu", ["x"], ["r"])], [], result),
    }
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Size", ["s"], ["n"]),
        helper.make_node("Equal", ["n", "two"], ["is_matrix"]),
        helper.make_node("If", ["is_matrix"], ["y"], **branches),
    ]
    graph = _holds(_model(nodes, [("w", W), ("two", np.array(2, np.int64))]))
    assert [op.kind for op in graph.ops] == ["FULLY_CONNECTED"]


def test_a_branch_with_a_condition_at_run_time_is_chosen():
    result = [("r", TensorProto.FLOAT, None)]
    branches = {
        "then_branch": _body([helper.make_node("MatMul", ["x", "w"], ["r"])], [], result),
        "else_branch": _body([helper.make_node("Relu", ["x"], ["r"])], [], result),
    }
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["total"], keepdims=0),
        helper.make_node("Less", ["total", "zero"], ["is_less"]),
        helper.make_node("If", ["is_less"], ["y"], **branches),
    ]
    model = _model(nodes, [("w", W), ("zero", np.array(0, np.float32))])
    for x in (X, -X):
        _holds(model, x)


def test_a_loop_with_a_constant_number_of_turns_is_unrolled():
    body = _body(
        [
            helper.make_node("MatMul", ["h", "w"], ["next"], name="step"),
            helper.make_node("Relu", ["next"], ["kept"]),
            helper.make_node("Identity", ["goes_on"], ["still"]),
        ],
        [
            ("turn", TensorProto.INT64, []),
            ("goes_on", TensorProto.BOOL, []),
            ("h", TensorProto.FLOAT, [2, 3]),
        ],
        [
            ("still", TensorProto.BOOL, []),
            ("next", TensorProto.FLOAT, [2, 3]),
            ("kept", TensorProto.FLOAT, [2, 3]),
        ],
    )
    node = helper.make_node("Loop", ["m", "", "x"], ["y", "all"], name="loop", body=body)
    model = _model([node], [("w", W), ("m", np.array(3, np.int64))], outputs=("y", "all"))
    graph = _holds(model)
    assert graph.outputs[1].shape == (3, 2, 3)
    assert next(op.name for op in graph.ops if op.kind == "FULLY_CONNECTED") == "loop/step"


@pytest.mark.parametrize("opset", [7, 9, 11, 12])
def test_old_opsets_are_converted(opset):
    clip = helper.make_node("Clip", ["u", "low", "high"], ["p"])
    if opset < 11:
        clip = helper.make_node("Clip", ["u"], ["p"], min=-0.5, max=0.25)
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"]),
        helper.make_node("Unsqueeze", ["h"], ["u"], axes=[0]),
        clip,
        helper.make_node("Softmax", ["p"], ["q"], axis=1),  # over all axes from this one on
        helper.make_node("Squeeze", ["q"], ["y"], axes=[0]),
    ]
    limits = [("low", np.float32(-0.5)), ("high", np.float32(0.25))]
    model = _model(nodes, [("w", W), ("b", W[0]), *limits], opset=opset)
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3]))
    _holds(model)


def test_external_data(tmp_path):
    model = _model([helper.make_node("MatMul", ["x", "w"], ["y"], name="a")], [("w", W)])
    path = tmp_path / "big.onnx"
    onnx.save(model, path, save_as_external_data=True, location="big.data", size_threshold=0)
    np.testing.assert_allclose(run_reference(load_onnx(path), [X])[0], X @ W, rtol=1e-5)
    with pytest.raises(ModelError, match=r"the data of constant w is in another file"):
        read_onnx(onnx.load(path, load_external_data=False))
    (tmp_path / "big.data").write_bytes(b"short")
    with pytest.raises(ModelError, match=r"^\S+big.onnx: .*(w|external data)"):
        load_onnx(path)
    (tmp_path / "big.data").unlink()
    with pytest.raises(ModelError, match=r"in the file big\.data, which is missing; put it into"):
        load_onnx(path)


def test_an_input_with_an_initializer_is_a_constant():
    model = _model([helper.make_node("MatMul", ["x", "w"], ["y"])], [("w", W)])
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [3, 3]))
    assert [tensor.name for tensor in _holds(model).inputs] == ["x"]


def test_layers_and_tensors_keep_their_names():
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["/fc/out"], name="/fc/MatMul"),
        helper.make_node("Relu", ["/fc/out"], ["*/ y /*"], name="*/ int main; /*"),
    ]
    model = _model(nodes, [("w", W)], outputs=("*/ y /*",))
    graph = read_onnx(model)
    assert [op.name for op in graph.ops] == ["/fc/MatMul", "*/ int main; /*"]
    assert graph.ops[0].output.name == "/fc/out"
    with covp.Session("riscv32") as session:  # no name ends a comment of the C
        found = session.load(covp.compile(graph, "riscv32")).run(X)
    np.testing.assert_allclose(found, np.maximum(X @ W, 0), rtol=1e-5)


def _info(name, kind=TensorProto.FLOAT, shape=(2, 3)):
    return helper.make_tensor_value_info(name, kind, shape)


def _wrong():
    """Models and what is said of them."""
    relu = helper.make_node("Relu", ["x"], ["y"])
    plain = _model([relu])
    yield "newer than", _model([relu], opset=99)
    yield "opset 1 is older than 13 and onnx.version_converter cannot", _model([relu], opset=1)
    yield (
        "operator Rellu of opset 21 is not supported; did you mean Relu",
        _model([helper.make_node("Rellu", ["x"], ["y"])]),
    )
    yield (  # "Tan" is no hint
        "operator Scan of opset 21 is not supported; docs/onnx-operators.md lists",
        _model([helper.make_node("Scan", ["x"], ["y"], num_scan_inputs=1)]),
    )
    yield (
        "operator elsewhere::Relu",
        _model([helper.make_node("Relu", ["x"], ["y"], domain="elsewhere")]),
    )
    yield "h is needed and nothing computes it", _model([helper.make_node("Relu", ["h"], ["y"])])
    circle = [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Relu", ["a"], ["b"])]
    yield "b is needed before it is computed", _model(circle, outputs=("b",))
    yield "writes y, which is there already", _model([relu, relu])
    yield "has no operator", _model([], outputs=("x",))
    yield "has no output", _model([relu], outputs=())
    yield "needed and nothing computes", _model([relu], outputs=("z",))
    for kind, said in (
        (TensorProto.FLOAT16, "float16, which is not supported; convert the model to float32"),
        (TensorProto.DOUBLE, "float64, which is not supported; convert the model to float32"),
        (TensorProto.STRING, "string, which is not supported"),
        (77, "unknown type 77"),
    ):
        model = onnx.ModelProto.FromString(plain.SerializeToString())
        model.graph.input[0].type.tensor_type.elem_type = kind
        yield said, model
    model = onnx.ModelProto.FromString(plain.SerializeToString())
    model.graph.input[0].CopyFrom(helper.make_tensor_sequence_value_info("x", 1, None))
    yield "input x is a sequence; only tensors are supported", model
    yield "larger than a core's memory", _model([relu], shape=(2**40, 2**40))
    zeros = helper.make_node("ConstantOfShape", ["n"], ["z"])
    add = helper.make_node("Add", ["x", "z"], ["y"])
    yield "larger than a core's memory", _model([zeros, add], [("n", np.array([2**40, 2**30]))])
    big = numpy_helper.from_array(W, "w")
    big.dims[0] = 2**40
    model = _model([helper.make_node("MatMul", ["x", "w"], ["y"])])
    model.graph.initializer.append(big)
    yield "constant w is damaged", model
    yield (
        "do not fit a matrix product",
        _model([helper.make_node("MatMul", ["x", "w"], ["y"])], [("w", W[:2])]),
    )
    yield (
        "the condition x is not one bool",
        _model(
            [
                helper.make_node(
                    "If", ["x"], ["y"], then_branch=_body([], [], []), else_branch=_body([], [], [])
                )
            ]
        ),
    )
    yield (
        "node Transpose_0 (Transpose): ",
        _model([helper.make_node("Transpose", ["x"], ["y"], perm=[7, -3])]),
    )


@pytest.mark.parametrize(("said", "model"), list(_wrong()))
def test_what_is_wrong_is_said_in_a_line(said, model):
    with pytest.raises(ModelError) as caught:
        read_onnx(model, where="net.onnx")
    text = str(caught.value)
    assert said in text
    assert text.startswith("net.onnx: ") and "\n" not in text and len(text) < 600


def test_files_that_are_none(tmp_path):
    path = tmp_path / "net.onnx"
    for data, said in ((b"", "the file is empty"), (b"\xff\xff", "damaged or no ONNX model")):
        path.write_bytes(data)
        with pytest.raises(ModelError, match=said):
            load_onnx(path)
    with pytest.raises(ModelError, match="no such file"):
        load_onnx(tmp_path / "other.onnx")
