"""Convolutions and pools with any number of axes: LiteRT and onnxruntime are the oracles."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import covp
from covp.graph.onnx import read_onnx
from covp.graph.ops.windows import ConvND, TransposeConv
from covp.graph.reference import run_reference
from covp.graph.tflite import read_tflite
from covp.graph.zoo.builder import GraphBuilder
from covp.graph.zoo.tflite_writer import write_tflite

PLATFORMS = ["riscv32", "cortex-m4", "cortex-m0plus"]
RNG = np.random.default_rng(11)


def layer(kind, dtype, shape, filters, attributes, bias=True):
    """One layer with random weights; quantized ones spread over the whole range."""
    builder = GraphBuilder("window")
    outputs, depth = filters[0], int(np.prod(filters[1:]))
    if dtype == "float32":
        x = builder.input(shape, np.float32)
        weights = builder.constant(RNG.standard_normal(filters).astype(np.float32))
        added = builder.constant(RNG.standard_normal(outputs).astype(np.float32))
        how = {}
    else:
        x = builder.input(shape, dtype, 0.05, 9 if dtype == "int8" else 0)
        scales = RNG.uniform(0.005, 0.02, outputs).astype(np.float32)
        weights = builder.constant(RNG.integers(-127, 128, filters).astype(np.int8), scales)
        wide = np.int32 if dtype == "int8" else np.int64
        added = builder.constant(RNG.integers(-2000, 2000, outputs).astype(wide), 0.05 * scales)
        span = 0.05 * 0.01 * 75 * 75 * np.sqrt(depth) / 40
        how = {"scale": span if dtype == "int8" else span / 5, "zero_point": -3}
        if dtype == "int16":
            how["zero_point"] = 0
    y = builder.add(kind, x, weights, added if bias else None, attributes=attributes, **how)
    values = RNG.standard_normal(shape) if dtype == "float32" else RNG.integers(-128, 128, shape)
    if dtype == "int16":
        values = values * 100
    return builder.graph(y), values.astype(dtype)


NONE = ((0, 0), (0, 0))
LAYERS = [
    ("CONV_ND", (2, 7, 6, 6), (8, 3, 2, 3), ConvND((2, 1), NONE, (1, 2), 2)),
    ("CONV_ND", (1, 5, 5, 6), (9, 3, 3, 2), ConvND((1, 1), ((1, 1), (1, 1)), (1, 1), 3, "relu")),
    ("TRANSPOSE_CONV", (2, 3, 4, 5), (6, 3, 2, 5), TransposeConv((2, 1), (0, 0), (7, 5), (1, 1))),
    ("TRANSPOSE_CONV", (1, 4, 3, 2), (3, 3, 3, 2), TransposeConv((2, 2), (0, 0), (8, 6), (1, 1))),
    ("TRANSPOSE_CONV", (1, 3, 3, 4), (4, 3, 3, 4), TransposeConv((1, 1), (1, 1), (3, 3), (1, 1))),
]


@pytest.mark.parametrize("case", LAYERS)
@pytest.mark.parametrize("dtype", ["float32", "int8", "int16"])
def test_litert_and_cores_compute_the_same(litert, run_layer, case, dtype):
    """int16: to the bit against LiteRT; int8: LiteRT rounds once where TFLM rounds twice."""
    kind, shape, filters, attributes = case
    if dtype == "int16" and kind == "CONV_ND":
        pytest.skip("LiteRT has no groups of int16")
    graph, value = layer(kind, dtype, shape, filters, attributes)
    data = write_tflite(graph)
    (wanted,) = litert(data, [value])
    read = read_tflite(data)
    assert read.ops[0].kind == kind
    (found,) = run_reference(read, [value])
    assert dtype == "float32" or len(np.unique(found)) > 20
    close(found, wanted, 1 if dtype == "int8" else 0)
    for platform in PLATFORMS:
        (got,) = run_layer(platform, read.ops[0], value)
        close(got.reshape(found.shape), found, 0)


def close(found, wanted, steps):
    if wanted.dtype == np.float32:
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    else:
        assert np.abs(found.astype(int) - wanted.astype(int)).max() <= steps


NODES = [
    ("Conv", [(1, 4, 9), (6, 4, 3)], {"strides": [2], "pads": [1, 0], "dilations": [2]}),
    ("Conv", [(2, 4, 9), (8, 1, 3)], {"group": 4, "auto_pad": "SAME_LOWER"}),
    ("Conv", [(1, 6, 5, 6), (4, 3, 2, 3)], {"group": 2, "pads": [1, 2, 0, 1]}),
    ("Conv", [(1, 3, 6, 5), (6, 1, 3, 3)], {"group": 3, "strides": [2, 1]}),
    ("Conv", [(1, 4, 4, 5, 3), (6, 2, 2, 3, 2)], {"group": 2, "dilations": [1, 2, 1]}),
    ("ConvTranspose", [(1, 4, 5), (4, 3, 3)], {"strides": [2], "output_padding": [1]}),
    (
        "ConvTranspose",
        [(2, 4, 3, 4), (4, 3, 2, 3)],
        {"group": 2, "strides": [2, 3], "dilations": [2, 1], "pads": [1, 0, 0, 2]},
    ),
    ("ConvTranspose", [(1, 2, 2, 3, 2), (2, 3, 3, 2, 2)], {"strides": [1, 2, 1]}),
    ("AveragePool", [(1, 3, 9)], {"kernel_shape": [4], "strides": [3], "ceil_mode": 1}),
    (
        "AveragePool",
        [(1, 3, 8, 7)],
        {"kernel_shape": [3, 3], "pads": [1, 2, 0, 1], "count_include_pad": 1, "strides": [2, 2]},
    ),
    ("MaxPool", [(1, 3, 8, 7)], {"kernel_shape": [3, 2], "pads": [1, 0, 2, 1], "strides": [2, 2]}),
    ("MaxPool", [(2, 2, 8, 7)], {"kernel_shape": [3, 2], "dilations": [2, 3], "outputs": 2}),
    ("LpPool", [(1, 2, 6, 5)], {"kernel_shape": [3, 2], "p": 3}),
    ("GlobalMaxPool", [(1, 3, 4, 5)], {}),
]


@pytest.mark.parametrize("constant", [True, False], ids=["constants", "inputs"])
@pytest.mark.parametrize(("kind", "shapes", "attributes"), NODES)
def test_onnxruntime_and_cores_compute_the_same(kind, shapes, attributes, constant):
    attributes = dict(attributes)
    outputs = [f"y{n}" for n in range(attributes.pop("outputs", 1))]
    values = [RNG.standard_normal(shape).astype(np.float32) for shape in shapes]
    if len(values) > 1:
        count = attributes.get("group", 1) * shapes[1][1] if "T" in kind else shapes[1][0]
        values.append(RNG.standard_normal(count).astype(np.float32))
    elif constant:
        pytest.skip("has no weights")
    names = ["x", "w", "b"][: len(values)]
    given = 1 if constant else len(values)
    nodes = [helper.make_node(kind, names, outputs, **attributes)]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, value.shape)
        for name, value in zip(names[:given], values, strict=False)
    ]
    results = [
        helper.make_tensor_value_info(name, kind, None)
        for name, kind in zip(outputs, [TensorProto.FLOAT, TensorProto.INT64], strict=False)
    ]
    weights = [onnx.numpy_helper.from_array(v, n) for v, n in zip(values, names, strict=True)]
    graph = helper.make_graph(nodes, "g", inputs, results, weights[given:])
    opset = [helper.make_opsetid("", 21)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    wanted = session.run(None, dict(zip(names[:given], values[:given], strict=True)))
    found = run_reference(read_onnx(model), values[:given])
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    with covp.Session("cortex-m4") as core:
        ran = core.load(covp.compile(read_onnx(model), "cortex-m4")).run(*values[:given])
    for ours, theirs in zip(ran if isinstance(ran, list) else [ran], found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
