"""RESIZE_BILINEAR against LiteRT; Resize with constant scales against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import covp
from covp.graph.attributes import ResizeNearest
from covp.graph.onnx import read_onnx
from covp.graph.reference import run_reference
from covp.graph.tflite import read_tflite
from covp.graph.zoo.builder import GraphBuilder
from covp.graph.zoo.tflite_writer import write_tflite

RNG = np.random.default_rng(2)
PLATFORMS = ["riscv32", "cortex-m4", "cortex-m0plus"]


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32"])
@pytest.mark.parametrize("mode", ["", "align_corners", "half_pixel_centers"])
@pytest.mark.parametrize("size", [(6, 8), (5, 3), (1, 9), (2, 2)])
def test_bilinear(litert, run_layer, dtype, mode, size):
    """To the bit, floats too."""
    builder = GraphBuilder("bilinear")
    x = builder.input((2, 3, 4, 3), dtype, None if dtype == "float32" else 0.5)
    attributes = ResizeNearest(size, mode == "align_corners", mode == "half_pixel_centers")
    data = write_tflite(builder.graph(builder.add("RESIZE_BILINEAR", x, attributes=attributes)))
    low, high = (-128, 128) if dtype == "int8" else (-30000, 30000)
    value = RNG.integers(low, high, x.shape).astype(dtype)
    (wanted,) = litert(data, [value])
    graph = read_tflite(data)
    (found,) = run_reference(graph, [value])
    close(found, wanted)
    for platform in PLATFORMS:
        (got,) = run_layer(platform, graph.ops[0], value)
        close(got.reshape(wanted.shape), wanted)


def close(found, wanted):
    if wanted.dtype == np.float32:  # products may be fused
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-2)
    else:
        np.testing.assert_array_equal(found, wanted)


CASES = [
    {"mode": "nearest"},
    {"mode": "nearest", "nearest_mode": "ceil", "coordinate_transformation_mode": "asymmetric"},
    {"mode": "linear"},
    {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
    {"mode": "linear", "antialias": 1},
    {"mode": "cubic", "coordinate_transformation_mode": "pytorch_half_pixel"},
    {"mode": "cubic", "exclude_outside": 1, "cubic_coeff_a": -0.5},
]


@pytest.mark.parametrize("scales", [(1.0, 1.0, 2.0, 1.5), (1.0, 1.0, 0.6, 0.5)])
@pytest.mark.parametrize("attributes", CASES, ids=[str(case) for case in CASES])
def test_tables_of_constant_scales_are_folded(attributes, scales):
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], **attributes)
    values = [("x", [1, 3, 5, 4]), ("y", None)]
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n, shape in values)
    constant = onnx.numpy_helper.from_array(np.array(scales, np.float32), "s")
    graph = helper.make_graph([node], "g", [x], [y], [constant])
    opset = [helper.make_opsetid("", 19)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=9)
    value = RNG.standard_normal((1, 3, 5, 4)).astype(np.float32)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (wanted,) = session.run(None, {"x": value})
    read = read_onnx(model)
    assert {op.kind for op in read.ops} == {
        "GATHER" if attributes["mode"] == "nearest" else "INTERPOLATE"
    }
    np.testing.assert_allclose(run_reference(read, [value])[0], wanted, rtol=1e-4, atol=1e-5)
    with covp.Session("cortex-m4") as core:
        got = core.load(covp.compile(read, "cortex-m4")).run(value)
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
