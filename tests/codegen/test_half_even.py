"""onnxruntime's requantization on integers: against float32 in numpy, and against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

from covp.chip.platform_file import load_platform
from covp.codegen.kernels.requantize.requantize_half_even import HalfEvenRequantizer
from covp.graph.arithmetic import Scaling
from covp.graph.graph import Rounding
from covp.graph.quantization import quantize_multiplier
from covp.runtime.session import Session
from covp.testing.convolution_case import ConvCase

PLATFORMS = ["cortex-m4", "riscv32", "cortex-m0plus"]
FLAGS = ("-Wall", "-Wextra", "-Werror")


def requantizer(core, factors, zero_point, low, high, bound):
    pairs = np.array([quantize_multiplier(float(f)) for f in factors], np.int64).astype(np.int32)
    single = np.asarray(factors, np.float32)
    scaling = Scaling(pairs[:, 0], pairs[:, 1], zero_point, (low, high), single)
    return HalfEvenRequantizer(core, scaling, bound)


def sums_near_steps(factor, bound, rng):
    """Sums on both sides of every step, and others."""
    halves = (np.arange(-300, 300) + 0.5) / np.float64(factor)
    bound = min(bound, 2**31 - 1)
    near = np.rint(np.clip(halves, -bound, bound)).astype(np.int64)[:, None] + np.arange(-2, 3)
    other = rng.integers(-bound, bound + 1, 600)
    ends = [-bound, bound, 0, 1, -1]
    return np.clip(np.concatenate([near.ravel(), other, ends]), -bound, bound).astype(np.int32)


# kind of factors, bits of the largest sum, the form that is expected to serve them
CASES = [
    ("any", 12, "proved"),
    ("powers", 18, "proved"),
    ("any", 20, "guarded"),
    ("far apart", 20, "guarded"),
    ("far apart and idle", 16, "guarded"),
    ("any", 27, "guarded"),
    ("any", 31, "guarded"),
    ("any", 33, "integer"),  # sums that wrap
    ("large", 20, "integer"),
]


def factors_of(kind, bits, rng):
    exponents = 7 - bits + rng.uniform(-1, 1, 24)
    if kind == "powers":
        exponents = np.round(exponents)
    if kind.startswith("far apart"):
        exponents += rng.uniform(0, 11, 24)
        exponents[::3] = np.round(exponents[::3])
    factors = np.asarray(2.0**exponents, np.float32)
    if kind == "large":
        factors[:4] = [1.0, 3.7, 40.0, 1e9]
    if kind.endswith("idle"):
        factors[:3] = [1e-30, 1e-12, 2.0**-40]
    return factors


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize(("kind", "bits", "form"), CASES)
def test_every_form_is_float32_to_the_bit(platform, kind, bits, form):
    rng = np.random.default_rng(bits)
    factors = factors_of(kind, bits, rng)
    bound = (1 << bits) - int(rng.integers(1, 1 << (bits - 3)))
    for zero_point, low, high in ((0, -128, 127), (-128, -128, 127), (5, 5, 100)):
        with Session(load_platform(platform)) as session:
            made = requantizer(session.platform.core, factors, zero_point, low, high, bound)
            if platform != "cortex-m0plus":  # its sums are limited to 29 bits
                assert made.form == form
            columns = np.stack(made.columns(), axis=1)
            names = ", ".join(f"q[{i}]" for i in range(columns.shape[1]))
            source = (
                f"#include <stdint.h>\n{made.includes}\n{made.function()}\n"
                "void all(const int32_t *sums, const int32_t *q, int8_t *out, int32_t n)\n{\n"
                f"    for (int32_t i = 0; i < n; i++)\n"
                f"        out[i] = (int8_t)requantize(sums[i], {names});\n}}\n"
            )
            module = session.load_c(source, flags=FLAGS)
            for channel, factor in enumerate(factors):
                sums = sums_near_steps(factor, bound, rng)
                out = session.tensor(np.full(sums.size, 99, np.int8))
                constants = session.tensor(columns[channel])
                module["all"](session.tensor(sums), constants, out, sums.size)
                with np.errstate(over="ignore"):
                    level = np.rint(np.clip(sums.astype(np.float32) * factor, -1e6, 1e6))
                wanted = np.clip(level + zero_point, low, high).astype(np.int8)
                assert np.array_equal(out.numpy(), wanted), (channel, factor)


LAYERS = [
    ConvCase(size=(7, 9), channels=(5, 8), kernel=(3, 3), same=True, bias=True, per_channel=True),
    ConvCase(size=(4, 4), channels=(16, 12), zero_points=(-128, 3), activation="relu"),
    ConvCase(
        "DEPTHWISE_CONV_2D", size=(8, 8), channels=(6, 6), kernel=(3, 3), stride=(2, 2), bias=True
    ),
    ConvCase("FULLY_CONNECTED", batch=2, channels=(200, 11), zero_points=(4, -20), bias=True),
    ConvCase(size=(3, 3), channels=(3, 16), bias=True, spread_multipliers=True),
]


def onnxruntime_result(op, x):
    """QLinearConv's output for an operator's numbers, in NHWC."""
    runtime = pytest.importorskip("onnxruntime")
    from onnx import TensorProto, helper, numpy_helper

    source, weights, out = op.input(0), op.input(1), op.output
    data, a = weights.data, op.attributes
    if op.kind == "FULLY_CONNECTED":
        data, x = data[:, :, None, None], x[:, :, None, None]
        pads, strides, group = [0] * 4, [1, 1], 1
    else:
        depthwise = op.kind == "DEPTHWISE_CONV_2D"
        data = data.transpose(3, 0, 1, 2) if depthwise else data.transpose(0, 3, 1, 2)
        x, group = x.transpose(0, 3, 1, 2), source.shape[3] if depthwise else 1
        p = a.padding
        pads, strides = [p.top, p.left, p.bottom, p.right], list(a.stride)
    constants = {
        "sx": np.float32(source.scale),
        "zx": np.int8(source.zero_point),
        "w": data,
        "sw": weights.quantization.scale,
        "zw": np.zeros(weights.quantization.scale.size, np.int8),
        "sy": np.float32(out.scale),
        "zy": np.int8(out.zero_point),
    }
    if weights.quantization.scale.size == 1:
        constants |= {"sw": constants["sw"][0], "zw": np.int8(0)}
    if len(op.inputs) > 2 and op.inputs[2] is not None:
        constants["b"] = op.inputs[2].data
    node = helper.make_node(
        "QLinearConv", ["x", *constants], ["y"], group=group, strides=strides, pads=pads
    )
    graph = helper.make_graph(
        [node],
        "one",
        [helper.make_tensor_value_info("x", TensorProto.INT8, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.INT8, None)],
        [numpy_helper.from_array(np.array(v), name) for name, v in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    result = runtime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    return result.transpose(0, 2, 3, 1).reshape(out.shape)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("case", LAYERS)
def test_layers_are_onnxruntime_to_the_byte(run_layer, platform, case):
    op = case.op()
    op.rounding = Rounding("onnxruntime")
    (x,) = case.inputs()
    result = run_layer(platform, op, x)[0]
    wanted = onnxruntime_result(op, x)
    low = op.output.zero_point if case.activation == "relu" else -128
    assert np.array_equal(result, np.maximum(wanted, low))
