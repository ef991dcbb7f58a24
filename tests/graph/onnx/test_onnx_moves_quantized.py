"""A quantized network full of moves stays integer, and equals onnxruntime's."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

import covp
from covp.graph.onnx import load_onnx, read_onnx
from covp.graph.passes import run_passes
from covp.graph.reference import run_reference

RNG = np.random.default_rng(0)
X = [RNG.standard_normal((1, 3, 8, 8)).astype(np.float32) for _ in range(12)]


class Images(CalibrationDataReader):  # type: ignore[misc]
    """For the scales."""

    def __init__(self):
        self.rest = iter([{"x": x} for x in X])

    def get_next(self):
        return next(self.rest, None)


def network():
    """Grouped convolution, pools, nearest Resize, Concat, Split, Slice, Pad, DepthToSpace."""
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w0"], ["a"], pads=[1] * 4),
        node("Relu", ["a"], ["b"]),
        node("Conv", ["b", "w1", "b1"], ["c"], pads=[1] * 4, group=2),
        node("MaxPool", ["c"], ["m"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Resize", ["m", "", "scales"], ["r"], mode="nearest"),
        node("Pad", ["r", "pads"], ["p"]),
        node("Slice", ["p", "starts", "ends", "axes"], ["s"]),
        node("Concat", ["s", "b"], ["d"], axis=1),
        node("AveragePool", ["d"], ["e"], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4),
        node("DepthToSpace", ["e"], ["f"], blocksize=2),
        node("Transpose", ["f"], ["g"], perm=[0, 1, 3, 2]),
        node("GlobalAveragePool", ["g"], ["h"]),
        node("Flatten", ["h"], ["i"]),
        node("Gemm", ["i", "w2"], ["y"]),
    ]
    numbers = {
        "w0": RNG.standard_normal((8, 3, 3, 3)) * 0.3,
        "w1": RNG.standard_normal((8, 4, 3, 3)) * 0.3,
        "b1": RNG.standard_normal(8),
        "scales": np.array([1.0, 1.0, 2.0, 2.0]),
        "w2": RNG.standard_normal((4, 5)),
    }
    integers = {"pads": [0, 0, 1, 1, 0, 0, 1, 1], "starts": [1, 2], "ends": [9, 10], "axes": [2, 3]}
    constants = [numpy_helper.from_array(v.astype(np.float32), k) for k, v in numbers.items()]
    constants += [numpy_helper.from_array(np.array(v), k) for k, v in integers.items()]
    x, y = (
        helper.make_tensor_value_info(*value)
        for value in (("x", 1, [1, 3, 8, 8]), ("y", 1, [1, 5]))
    )
    graph = helper.make_graph(nodes, "g", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


def every_layer(path, number):
    """A session that gives each layer's bytes, too.

    Otherwise onnxruntime joins AveragePool with what follows, sums it in another order, and its
    results differ from its own by one step.
    """
    model = onnx.load(path)
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear":
            value = helper.make_tensor_value_info(node.output[0], number, None)
            model.graph.output.append(value)
    return onnxruntime.InferenceSession(model.SerializeToString())


@pytest.mark.costly
@pytest.mark.parametrize("kind", [QuantType.QInt8, QuantType.QUInt8])
def test_integers_from_the_first_layer_to_the_last(tmp_path, kind):
    onnx.save(network(), tmp_path / "float.onnx")
    path = tmp_path / "quantized.onnx"
    quantize_static(
        *(tmp_path / "float.onnx", path, Images()),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=kind,
        weight_type=QuantType.QInt8,
    )
    graph = load_onnx(path)
    lowered = run_passes(graph)
    inner = [op for op in lowered.ops if op.kind not in ("QUANTIZE", "DEQUANTIZE")]
    assert len(inner) > 10
    assert all(t.dtype != np.float32 for op in inner for t in (op.input(0), *op.outputs))
    session = every_layer(path, onnx.TensorProto.INT8 if kind == QuantType.QInt8 else 2)
    program = covp.compile(graph, "cortex-m4")
    with covp.Session("cortex-m4") as core:
        module = core.load(program)
        for x in X[:4]:
            (wanted,) = session.run(["y"], {"x": x})
            np.testing.assert_array_equal(run_reference(lowered, [x])[0], wanted)
            np.testing.assert_array_equal(module.run(x), wanted)


def padded(dtype, opset, form):
    """bytes -> Pad of 0 as a real number, or of the byte 7 -> bytes."""
    zero = 140 if dtype == np.uint8 else 12
    constants = {"s": np.float32(0.1), "t": np.float32(0.2), "zero": np.array(zero, dtype)}
    pads, node = [0, 0, 1, 2, 0, 0, 0, 1], helper.make_node
    constants |= {"pads": np.array(pads), "seven": np.array(7, dtype)}
    how = {"pads": pads} if opset < 11 else {}
    given = [] if opset < 11 else ["pads"]
    if form == "real":
        inner = [node("Pad", ["a", *given], ["b"], **how)]
    else:
        inner = [
            node("QuantizeLinear", ["a", "t", "zero"], ["c"]),
            node("Pad", ["c", "pads", "seven"], ["d"]),
            node("DequantizeLinear", ["d", "t", "zero"], ["b"]),
        ]
    nodes = [
        node("DequantizeLinear", ["x", "s", "zero"], ["a"]),
        *inner,
        node("QuantizeLinear", ["b", "s", "zero"], ["y"]),
    ]
    number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    x = helper.make_tensor_value_info("x", number, (1, 2, 3, 4))
    y = helper.make_tensor_value_info("y", number, (1, 2, 4, 7))
    fixed = [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
    graph = helper.make_graph(nodes, "g", [x], [y], fixed)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize(("opset", "form"), [(10, "real"), (21, "real"), (21, "bytes")])
def test_margins(dtype, opset, form):
    """Right behind an input of bytes, too, whose scale only DequantizeLinear says."""
    proto = padded(dtype, opset, form)
    x = RNG.integers(-128, 128, (1, 2, 3, 4)).astype(np.int8).view(dtype)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    graph = read_onnx(proto)
    assert np.array_equal(run_reference(graph, [x])[0], session.run(None, {"x": x})[0])
    lowered = run_passes(graph)
    assert np.array_equal(run_reference(lowered, [x])[0], session.run(None, {"x": x})[0])
