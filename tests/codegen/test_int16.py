"""int16 kernels on emulated cores against TFLM's definition in Python's integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from covp.graph.attributes import LeakyRelu, Mean
from covp.graph.ops import definition
from covp.graph.ops.matmul import BatchMatMul
from covp.graph.zoo.builder import single_op_graph
from covp.testing import (
    ConvCase,
    ElementwiseCase,
    OperatorCase,
    PoolCase,
    SoftmaxCase,
    layers,
    tensors,
)
from covp.testing.quantizations import affine

from .test_convolution import _sums
from .tflm import quantized_multiplier, scaled

PLATFORMS = ["cortex-m4", "riscv32", "cortex-m0plus"]
bounded = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def convolutions(*kinds: str, **fields: Any) -> st.SearchStrategy[ConvCase]:
    chosen = {
        "dtype": "int16",
        "narrow_bias": st.booleans(),
        "extreme": st.booleans(),
        "zeros": st.sampled_from([0.0, 0.5]),
    }
    return layers.convolutions(*kinds, **{**chosen, **fields})


def reduced(value: int, multiplier: int, shift: int) -> int:
    """MultiplyByQuantizedMultiplier of an int64."""
    upper = (multiplier + (1 << 15)) >> 16 if multiplier < 0x7FFF0000 else 0x7FFF
    return (value * upper + (1 << (14 - shift))) >> (15 - shift)


def expected(op: Any, x: Any) -> Any:
    out = op.output
    bias = op.inputs[2]
    wide = bias is None or bias.dtype == np.int64
    sums = _sums(op, x.astype(np.int64))
    result = np.empty(out.shape, np.int16)
    scales = np.broadcast_to(op.input(1).quantization.scale, out.shape[-1:])
    single = op.kind == "FULLY_CONNECTED" and op.input(1).quantization.scale.size == 1
    factors = []
    for scale in scales:
        product = (
            float(np.float32(op.input(0).scale) * scale)
            if single
            else op.input(0).scale * float(scale)
        )
        factors.append(quantized_multiplier(product / out.scale))
    low = {"none": -32768}.get(op.attributes.activation, 0)
    high = 32767
    if op.attributes.activation == "relu6":
        high = min(high, round(float(np.float32(6) / np.float32(out.scale))))
    for index in np.ndindex(*out.shape):
        total, factor = int(sums[index]), factors[index[-1]]
        if not wide:
            total = (total + 2**31) % 2**32 - 2**31
        value = reduced(total, *factor) if wide else scaled(total, *factor)
        result[index] = min(max(value, low), high)
    return result


@pytest.mark.parametrize("platform", PLATFORMS)
@bounded
@given(layer=convolutions())
def test_convolutions(run_layer: Any, platform: str, layer: ConvCase) -> None:
    op, (x,) = layer.op(), layer.inputs()
    assert np.array_equal(run_layer(platform, op, x)[0], expected(op, x))


@pytest.mark.parametrize("platform", PLATFORMS)
@bounded
@given(layer=convolutions(), data=st.data())
def test_every_schedule(run_layer: Any, platform: str, layer: ConvCase, data: Any) -> None:
    op, (x,) = layer.op(), layer.inputs()

    def choose(points: Any) -> Any:
        return data.draw(st.sampled_from(points))

    assert np.array_equal(run_layer(platform, op, x, choose=choose)[0], expected(op, x))


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("depth", [600, 1501])
def test_sums_that_leave_32_bits(run_layer: Any, platform: str, depth: int) -> None:
    """1,501 weights of 127 times -32768 are below -2**32: no proof, and nothing wraps."""
    layer = ConvCase("FULLY_CONNECTED", "int16", 2, channels=(depth, 5), bias=True, largest=True)
    op, (x,) = layer.op(), layer.inputs()
    wanted = expected(op, x)
    assert len(np.unique(wanted)) > 2
    for pick in (0, -1):
        found = run_layer(platform, op, x, choose=lambda points, pick=pick: points[pick])[0]
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_depthwise_sums_that_leave_32_bits(run_layer: Any, platform: str) -> None:
    layer = ConvCase(
        "DEPTHWISE_CONV_2D",
        "int16",
        size=(24, 24),
        channels=(2, 4),
        kernel=(23, 23),
        same=True,
        bias=True,
        largest=True,
        activation="relu6",
    )
    op, (x,) = layer.op(), layer.inputs()
    assert np.array_equal(run_layer(platform, op, x)[0], expected(op, x))
    assert run_layer.code.schedule == "wide"


def reference(op: Any, *values: Any) -> Any:
    """The reference executor's result, which `tests/graph/test_int16.py` holds against LiteRT."""
    return definition(op.kind).reference(op, values)[0]


@pytest.mark.parametrize("platform", PLATFORMS)
@bounded
@given(
    layer=layers.elementwise(
        broadcast=True, dtype="int16", content=st.sampled_from(["random", "extreme"])
    )
)
def test_elementwise(run_layer: Any, platform: str, layer: ElementwiseCase) -> None:
    op, values = layer.op(), layer.inputs()
    assert np.array_equal(run_layer(platform, op, *values)[0], reference(op, *values))


@pytest.mark.parametrize("platform", PLATFORMS)
@bounded
@given(layer=layers.pools(dtype="int16", content=st.sampled_from(["random", "extreme"])))
def test_pools(run_layer: Any, platform: str, layer: PoolCase) -> None:
    op, values = layer.op(), layer.inputs()
    assert np.array_equal(run_layer(platform, op, *values)[0], reference(op, *values))


@pytest.mark.parametrize("platform", PLATFORMS)
@bounded
@given(layer=layers.softmaxes(dtype="int16", scale=st.floats(0.01, 900)))
def test_softmax(run_layer: Any, platform: str, layer: SoftmaxCase) -> None:
    op, values = layer.op(), layer.inputs()
    assert np.array_equal(run_layer(platform, op, *values)[0], reference(op, *values))


EVERY = np.arange(-32768, 32768, 5).astype(np.int16)
"""Over the whole range; tests/graph has all of them."""
FUNCTIONS = [
    *(OperatorCase(kind, EVERY.shape, None, "int16", scale, 0, None, 2.0**-15)
      for kind in ("LOGISTIC", "TANH") for scale in (2.0**-12, 2.0**-11, 3e-4, 1e-6, 2.5)),
    *(OperatorCase(kind, EVERY.shape, None, "int16", 0.001, 0, None, scale)
      for kind in ("RELU", "RELU6") for scale in (0.001, 0.0003, 0.07)),
    *(OperatorCase("LEAKY_RELU", EVERY.shape, LeakyRelu(slope), "int16", 0.001, zero, None, scale)
      for slope, zero, scale in ((0.3, 0, 0.001), (-0.9, 77, 0.0003), (2.5, -4000, 0.0007))),
    *(OperatorCase("ABS", EVERY.shape, None, "int16", 0.001, 0, None, scale)
      for scale in (0.001, 0.0007)),
    *(OperatorCase("QUANTIZE", EVERY.shape, None, "int16", 0.01, zero, dtype, scale, out)
      for zero, dtype, scale, out in (
          (0, "int16", 0.013, 0), (5, "int8", 0.9, -7), (0, "int8", 2.56, 0), (0, "int32", 1e-6, 0),
          (-300, "int32", 0.3, 11))),
    OperatorCase("DEQUANTIZE", EVERY.shape, None, "int16", 0.01, 3, "float32"),
]  # fmt: skip


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("layer", FUNCTIONS, ids=lambda layer: f"{layer.kind}-{layer.scale}")
def test_functions(run_layer: Any, platform: str, layer: OperatorCase) -> None:
    op = layer.op()
    assert np.array_equal(run_layer(platform, op, EVERY)[0], reference(op, EVERY))


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("kind", ["MEAN", "SUM", "REDUCE_MAX"])
@pytest.mark.parametrize("axes", [(1,), (0, 1), (2,)])
def test_reductions(run_layer: Any, platform: str, kind: str, axes: tuple[int, ...]) -> None:
    scale = None if kind == "REDUCE_MAX" else 0.17
    layer = OperatorCase(kind, (3, 7, 9), Mean(axes, False), "int16", 0.1, 0, None, scale)
    op, (x,) = layer.op(), layer.inputs()
    assert np.array_equal(run_layer(platform, op, x)[0], reference(op, x))


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("content", ["random", "lowest"])
def test_batch_matmul(run_layer: Any, platform: str, content: Any) -> None:
    x, y = (tensors.int16(n, s, 0.01) for n, s in (("x", (2, 5, 33)), ("y", (33, 6))))
    graph = single_op_graph("BATCH_MATMUL", x, y, attributes=BatchMatMul(), scale=20.0)
    values = tensors.filled(x, 1, content), tensors.filled(y, 2, content)
    found = run_layer(platform, graph.ops[0], *values)[0]
    assert np.array_equal(found, reference(graph.ops[0], *values))


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize(
    ("source", "target", "scale"), [("int8", "int16", 1e-3), ("int8", "int32", 1e-6),
    ("int32", "int8", 900.0), ("int32", "int16", 7.0), ("float32", "int16", 0.001)],
)  # fmt: skip
def test_conversions(run_layer: Any, platform: str, source: str, target: str, scale: float) -> None:
    layer = OperatorCase("QUANTIZE", (7, 33), None, source, 0.1, 0, target, scale)
    op, values = layer.op(), layer.inputs()
    if source == "int32":
        op.input(0).quantization = affine(0.1)
    assert np.array_equal(run_layer(platform, op, *values)[0], reference(op, *values))


BINARY = [
    ("PRELU", "int8", None), ("SQUARED_DIFFERENCE", "int16", None), ("GREATER", "int16", np.bool_),
    ("MAXIMUM", "int16", None), ("EQUAL", "int16", np.bool_),
]  # fmt: skip


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize(("kind", "second", "result"), BINARY)
@pytest.mark.parametrize("content", ["random", "extreme"])
def test_functions_of_two(
    run_layer: Any, platform: str, kind: str, second: str, result: Any, content: Any
) -> None:
    x = tensors.int16("x", (4, 200), 0.001)
    y = tensors.int8("y", (200,), 0.02) if second == "int8" else tensors.int16("y", (200,), 0.0007)
    scale = {"PRELU": 0.002, "SQUARED_DIFFERENCE": 0.2}.get(kind)
    op = single_op_graph(kind, x, y, dtype=result, scale=scale).ops[0]
    values = tensors.filled(x, 1, content), tensors.filled(y, 2, content)
    values[0][0, ::3] = 0
    assert np.array_equal(run_layer(platform, op, *values)[0], reference(op, *values))
