"""A Clip between a quantized operator and its QuantizeLinear, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

import covp
from covp.graph.onnx import read_onnx
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
    """One step more or less where onnxruntime adds up in float32, in an order of its own."""
    proto = model(kind, dtype, clip)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    graph = read_onnx(proto)
    x = RNG.integers(-128, 128, (1, 3, 4, 4)).astype(np.int8).view(dtype)
    (wanted,) = session.run(None, {"x_bytes": x})
    (found,) = run_reference(graph, [x])
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    most = int(kind in ("Conv", "GlobalAveragePool", "MatMul", "Softmax"))
    assert np.abs(found.astype(int) - wanted.astype(int)).max() <= most
    assert not {"ROUND", "CLIP"} & {op.kind for op in graph.ops}


SCALES = st.sampled_from([0.1, 0.05, 0.02, 1 / 64, 0.0371]) | st.floats(2**-10, 1, width=32)
RATIOS = st.sampled_from([1, 2, 0.5, 4, 3]) | st.floats(0.25, 4, width=32)
LIMITS = st.tuples(st.floats(-170, 170, width=32), st.floats(-170, 170, width=32))
"""In steps of the output."""
CLIPS = st.none() | st.just("Relu") | LIMITS.map(sorted)


@st.composite
def clamped(draw, kind):
    """A QDQ model of one operator with a clamp of any kind, or none; every scale and zero point."""
    dtype = draw(st.sampled_from([np.dtype(np.int8), np.dtype(np.uint8)]))
    info = np.iinfo(dtype)
    zeros = st.sampled_from([info.min, info.max]) | st.integers(info.min, info.max)
    quantizations = [(np.float32(draw(SCALES)), draw(zeros)) for _ in range(3)]
    (a, _), (b, _), (_, zero) = quantizations
    scale = np.float32((a * b * 128 if kind == "Mul" else a) * np.float32(draw(RATIOS)))
    quantizations[2] = scale, zero
    clip = draw(CLIPS)
    shape, attributes = (1, 6, 11, 13), {}
    if kind == "AveragePool":
        kernel = [draw(st.integers(1, 5)) for _ in "yx"]
        pads = [draw(st.integers(0, min(kernel) - 1))] * 4
        strides = [draw(st.integers(1, 3)) for _ in "yx"]
        attributes = {"kernel_shape": kernel, "pads": pads, "strides": strides}
        attributes["count_include_pad"] = draw(st.integers(0, 1))
    names = ["x"] if kind == "AveragePool" else ["x", "z"]
    constants: dict[str, object] = {}
    nodes = []
    for name, (step, point) in zip(
        [*names, "y"], [*quantizations[: len(names)], (scale, zero)], strict=True
    ):
        constants |= {f"{name}_scale": step, f"{name}_zero": np.array(point, dtype)}
    for name in names:
        parameters = [name, f"{name}_scale", f"{name}_zero"]
        nodes.append(helper.make_node("DequantizeLinear", parameters, [f"{name}_real"]))
    nodes.append(helper.make_node(kind, [f"{n}_real" for n in names], ["r"], **attributes))
    last = "r"
    if clip is not None:
        last, ends = "c", []
        if clip != "Relu":
            constants |= {
                e: np.float32(v * scale) for e, v in zip(("low", "high"), clip, strict=True)
            }
            ends = ["low", "high"]
        nodes.append(helper.make_node("Relu" if clip == "Relu" else "Clip", ["r", *ends], ["c"]))
    nodes.append(helper.make_node("QuantizeLinear", [last, "y_scale", "y_zero"], ["y"]))
    number = helper.np_dtype_to_tensor_dtype(dtype)
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, number, shape) for name in names],
        [helper.make_tensor_value_info("y", number, None)],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
    )
    opset = draw(st.sampled_from([13, 17, 19, 21]))
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    return proto, [rng.integers(info.min, info.max + 1, shape).astype(dtype) for _ in names]


def bytes_of_onnxruntime(proto, values):
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    names = [value.name for value in session.get_inputs()]
    return session.run(None, dict(zip(names, values, strict=True)))[0]


@pytest.mark.parametrize("kind", ["Add", "AveragePool", "Mul"])
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_clamps_are_onnxruntimes_to_the_byte(kind, data):
    """Whether it drops the clamp and fuses the operator, or computes both in float32."""
    proto, values = data.draw(clamped(kind))
    assert np.array_equal(
        run_reference(read_onnx(proto), values)[0], bytes_of_onnxruntime(proto, values)
    )


@pytest.mark.parametrize("platform", ["cortex-m4", "riscv32", "cortex-m0plus"])
@pytest.mark.parametrize("kind", ["Add", "AveragePool", "Mul"])
@settings(deadline=None, max_examples=6)
@given(data=st.data())
def test_clamps_on_cores(kind, platform, data):
    proto, values = data.draw(clamped(kind))
    graph = read_onnx(proto)
    with covp.Session(platform) as session:
        found = session.load(covp.compile(graph, platform)).run(*values)
    assert np.array_equal(found, run_reference(graph, values)[0])
