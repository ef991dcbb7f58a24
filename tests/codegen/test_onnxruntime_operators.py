"""ADD, MUL, pools, means, SOFTMAX and QUANTIZE in onnxruntime's arithmetic, against onnxruntime."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covp.graph.attributes import Elementwise, Mean, Padding, Pool2D, Softmax
from covp.graph.graph import Op, Rounding
from covp.graph.ops import definition
from covp.testing.tensors import int8, plain

runtime = pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")
PLATFORMS = ["cortex-m4", "riscv32", "cortex-m0plus"]
ROUNDINGS = (Rounding("onnxruntime"), Rounding("onnxruntime", offset=128))
EVERY = np.arange(-128, 128).astype(np.int8)
# what scales of a model may be: any, powers of two (exact ties), equal, in simple ratios
SCALES = [
    (0.0371, 0.0553, 0.0712),
    (0.0625, 0.03125, 0.125),
    (0.05, 0.05, 0.05),
    (0.03, 0.01, 0.04),
]


def tensor(name, shape, scale, zero_point):
    return int8(name, shape, np.float32(scale), zero_point)


def run(kind, inputs, unsigned, **attributes):
    """com.microsoft's operator on bytes: (int8 array or None, scale, zero point) for each input.

    The last entry is the output's, without an array. With ``unsigned`` all are 128 more.
    """
    dtype = np.uint8 if unsigned else np.int8
    shift = 128 if unsigned else 0
    names: list[str] = []
    constants: dict[str, Any] = {}
    feeds: dict[str, Any] = {}
    for i, (array, scale, zero) in enumerate(inputs):
        if array is not None:
            feeds[f"x{i}"] = (array.astype(np.int64) + shift).astype(dtype)
            names.append(f"x{i}")
        constants |= {f"s{i}": np.float32(scale), f"z{i}": dtype(zero + shift)}
        names += [f"s{i}", f"z{i}"]
    node = onnx.helper.make_node(kind, names, ["y"], domain="com.microsoft", **attributes)
    number = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = onnx.helper.make_graph(
        [node],
        "one",
        [onnx.helper.make_tensor_value_info(n, number, a.shape) for n, a in feeds.items()],
        [onnx.helper.make_tensor_value_info("y", number, None)],
        [onnx.numpy_helper.from_array(np.array(v), n) for n, v in constants.items()],
    )
    opsets = [onnx.helper.make_opsetid("", 13), onnx.helper.make_opsetid("com.microsoft", 1)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    result = runtime.InferenceSession(model.SerializeToString()).run(None, feeds)[0]
    return (result.astype(np.int64) - shift).astype(np.int8)


@pytest.mark.parametrize("unsigned", [False, True])
@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("kind", ["ADD", "MUL"])
def test_every_pair_of_bytes(run_layer, kind, scales, unsigned):
    x = np.repeat(EVERY[:, None], 256, axis=1)
    y = np.ascontiguousarray(x.T)
    for number, zeros in enumerate(((0, 0, 0), (-128, -128, -128), (17, -45, 3))):
        a, b, out = (tensor(n, x.shape, s, z) for n, s, z in zip("aby", scales, zeros, strict=True))
        op = Op(kind, "layer", [a, b], [out], Elementwise(), 0, ROUNDINGS[unsigned])
        operands = [(x, scales[0], zeros[0]), (y, scales[1], zeros[1]), (None, scales[2], zeros[2])]
        wanted = run("QLinearAdd" if kind == "ADD" else "QLinearMul", operands, unsigned)
        assert np.array_equal(definition(kind).reference(op, [x, y])[0], wanted)
        rows = np.random.default_rng(number).choice(256, 48, replace=False)  # what RAM holds
        op.inputs = [tensor(t.name, (48, 256), t.scale, t.zero_point) for t in (a, b)]
        op.outputs = [tensor("y", (48, 256), out.scale, out.zero_point)]
        result = run_layer(PLATFORMS[number], op, x[rows], y[rows])[0]
        assert np.array_equal(result, wanted[rows])


@pytest.mark.parametrize("platform", ["cortex-m4", "riscv32"])
@pytest.mark.parametrize("kind", ["ADD", "MUL"])
@pytest.mark.parametrize("scales", [(0.0371, 0.0371, 0.0742), (0.1, 0.05, 0.2), (0.3, 0.7, 0.11)])
def test_every_pair_of_an_unfused_operator(run_layer, kind, scales, platform):
    """Scales in simple ratios: half of the sums are next to half-way between two levels."""
    x = np.repeat(EVERY[::4, None], 256, axis=1)  # what RAM holds
    y = np.ascontiguousarray(np.broadcast_to(EVERY, x.shape))
    steps = [np.float32(scale) for scale in scales]
    if kind == "MUL":
        steps[2] = np.float32(steps[0] * steps[1] * np.float32(2))
    zeros = (3, -7, 5)
    tensors = [tensor(n, x.shape, s, z) for n, s, z in zip("xyo", steps, zeros, strict=True)]
    rounding = replace(ROUNDINGS[False], unfused=True)
    op = Op(kind, "layer", tensors[:2], tensors[2:], Elementwise("relu"), 0, rounding)
    a, b = (
        (stored.astype(np.int32) - zero).astype(np.float32) * step
        for stored, zero, step in zip((x, y), zeros, steps, strict=False)
    )
    level = np.rint((a + b if kind == "ADD" else a * b) / steps[2]) + 5
    assert np.array_equal(run_layer(platform, op, x, y)[0], np.clip(level, 5, 127))


@pytest.mark.parametrize("unsigned", [False, True])
@pytest.mark.parametrize("scales", [*SCALES, (0.05, 0, 0.0501), (1.7, 0, 0.003)])
@pytest.mark.parametrize("platform", PLATFORMS)
def test_average_pools(run_layer, platform, scales, unsigned):
    rng = np.random.default_rng(3)
    for (kernel, stride, pads), zeros in zip(
        (
            ((2, 2), (2, 2), (0, 0, 0, 0)),
            ((3, 3), (1, 2), (1, 1, 1, 1)),
            ((5, 7), (3, 3), (0, 0, 0, 0)),
        ),
        ((-128, -128), (3, -7), (0, 127)),
        strict=True,
    ):
        x = rng.integers(-128, 128, (1, 12, 16, 4)).astype(np.int8)
        x[0, :4] //= 8  # near each other, as smooth images are
        padding = Padding(pads[0], pads[2], pads[1], pads[3])
        source = tensor("x", x.shape, scales[0], zeros[0])
        operands = [(x.transpose(0, 3, 1, 2), scales[0], zeros[0]), (None, scales[2], zeros[1])]
        wanted = run(
            "QLinearAveragePool",
            operands,
            unsigned,
            kernel_shape=kernel,
            strides=stride,
            pads=pads,
        ).transpose(0, 2, 3, 1)
        out = tensor("y", wanted.shape, scales[2], zeros[1])
        op = Op(
            "AVERAGE_POOL_2D",
            "layer",
            [source],
            [out],
            Pool2D(kernel, stride, padding),
            0,
            ROUNDINGS[unsigned],
        )
        assert np.array_equal(definition(op.kind).reference(op, [x])[0], wanted)
        assert np.array_equal(run_layer(platform, op, x)[0], wanted)


@pytest.mark.costly
@pytest.mark.parametrize("scale", [0.0371, 0.114755966, 0.0147574302, 0.0625, 1.7, 0.0078431377])
def test_ties_of_averages(run_layer, scale):
    """Of the same scale on both sides: float32's errors decide."""
    rng = np.random.default_rng(6)
    shapes = [((2, 2), 0), ((3, 3), 1), ((4, 4), 0), ((2, 3), 0), ((1, 2), 0), ((3, 4), 1)]
    for number, (kernel, pad) in enumerate(shapes):
        zero = (-128, 3, 127, 0)[number % 4]
        x = rng.integers(-128, 128, (1, 24, 24, 4)).astype(np.int8)
        x[:, :16] = np.clip(rng.normal(zero, 6, (1, 16, 24, 4)), -128, 127)
        operands = [(x.transpose(0, 3, 1, 2), scale, zero), (None, scale, zero)]
        windows = {"kernel_shape": kernel, "strides": (1, 1), "pads": [pad] * 4}
        wanted = run("QLinearAveragePool", operands, number % 2 == 1, **windows)
        wanted = np.ascontiguousarray(wanted.transpose(0, 2, 3, 1))
        attributes = Pool2D(kernel, (1, 1), Padding(pad, pad, pad, pad))
        source, out = tensor("x", x.shape, scale, zero), tensor("y", wanted.shape, scale, zero)
        rounding = ROUNDINGS[number % 2]
        op = Op("AVERAGE_POOL_2D", "layer", [source], [out], attributes, 0, rounding)
        for platform in ("riscv32", "cortex-m4"):
            assert np.array_equal(run_layer(platform, op, x)[0], wanted), (kernel, platform)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("scales", SCALES)
def test_global_average_pool(run_layer, platform, scales):
    rng = np.random.default_rng(4)
    for size, zeros in (((7, 7), (5, -20)), ((4, 4), (-128, -128)), ((1, 13), (0, 0))):
        x = rng.integers(-128, 128, (2, *size, 12)).astype(np.int8)
        operands = [(x.transpose(0, 3, 1, 2), scales[0], zeros[0]), (None, scales[2], zeros[1])]
        wanted = run("QLinearGlobalAveragePool", operands, False).reshape(2, 12)
        source = tensor("x", x.shape, scales[0], zeros[0])
        out = tensor("y", wanted.shape, scales[2], zeros[1])
        op = Op("MEAN", "layer", [source], [out], Mean((1, 2), False), 0, ROUNDINGS[False])
        assert np.array_equal(run_layer(platform, op, x)[0], wanted)


in_double = pytest.mark.skipif(
    tuple(int(n) for n in runtime.__version__.split(".")[:2]) < (1, 32),
    reason="QLinearSoftmax of this onnxruntime overflows",
)


@in_double
@settings(deadline=None, max_examples=40)
@given(
    st.integers(1, 8) | st.sampled_from([33, 500]),
    st.sampled_from([1 / 256, 1 / 255, 0.1]) | st.floats(2**-14, 4, width=32),
    st.sampled_from([1 / 256, 1 / 255, 1 / 128]) | st.floats(2**-20, 1 / 8, width=32),
    st.sampled_from([-128, 127, 3]),
    st.integers(1, 128),
)
def test_softmax_of_any_depth(depth, scale, out_scale, zero_point, near):
    """Bytes near each other as well; a share of one, whatever the output's scale."""
    rng = np.random.default_rng(depth)
    x = rng.integers(-near, near, (20_000 // depth, depth)).astype(np.int8)
    source, out = tensor("x", x.shape, scale, 4), tensor("y", x.shape, out_scale, zero_point)
    op = Op("SOFTMAX", "layer", [source], [out], Softmax(), 0, ROUNDINGS[False])
    operands = [(x, scale, 4), (None, out_scale, zero_point)]
    wanted = run("QLinearSoftmax", operands, False, opset=13)
    assert np.array_equal(definition("SOFTMAX").reference(op, [x])[0], wanted)


@pytest.mark.costly
@in_double
@pytest.mark.parametrize("depth", [1, 2, 10, 300])
@pytest.mark.parametrize("out_scale", [1 / 256, 1 / 255, 2**-20])
@pytest.mark.parametrize("scale", [0.0371, 0.0625, 0.4, 3.0])
@pytest.mark.parametrize("platform", PLATFORMS)
def test_softmax(run_layer, platform, scale, out_scale, depth):
    rng = np.random.default_rng(depth)
    x = rng.integers(-128, 128, (40, depth)).astype(np.int8)
    x[:10] //= 8
    for zero_point in (-128, 127):
        operands = [(x, scale, 4), (None, out_scale, zero_point)]
        wanted = run("QLinearSoftmax", operands, False, opset=13)
        source, out = tensor("x", x.shape, scale, 4), tensor("y", x.shape, out_scale, zero_point)
        op = Op("SOFTMAX", "layer", [source], [out], Softmax(), 0, ROUNDINGS[False])
        assert np.array_equal(run_layer(platform, op, x)[0], wanted)


@pytest.mark.parametrize("platform", [*PLATFORMS, "cortex-m7"])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_quantize_and_back(run_layer, platform, dtype):
    scale, zero = np.float32(0.0371), 9
    rng = np.random.default_rng(5)
    ties = (np.arange(-140, 140) + np.float32(0.5)) * scale
    far = np.array([1e9, -1e9, np.inf, -np.inf, 0, -0.0], np.float32)
    x = np.concatenate([ties, far, rng.uniform(-6, 6, 500)]).astype(np.float32)
    info = np.iinfo(dtype)
    quantize = onnx.helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"])
    graph = onnx.helper.make_graph(
        [quantize],
        "one",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x.shape)],
        [
            onnx.helper.make_tensor_value_info(
                "y", onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), x.shape
            )
        ],
        [
            onnx.numpy_helper.from_array(np.array(scale), "s"),
            onnx.numpy_helper.from_array(np.array(zero, dtype), "z"),
        ],
    )
    opsets = [onnx.helper.make_opsetid("", 13)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    wanted = runtime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    out = plain("y", x.shape, dtype)
    out.quantization = int8("q", (1,), scale, zero).quantization
    op = Op("QUANTIZE", "layer", [plain("x", x.shape)], [out], None, 0, ROUNDINGS[False])
    assert np.array_equal(run_layer(platform, op, x)[0], wanted)
    assert info.min in wanted and info.max in wanted
