"""int16 activations with int8 weights against LiteRT's reference kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from covp.errors import ModelError
from covp.graph.attributes import LeakyRelu, Mean
from covp.graph.graph import Graph, Op, Quantization, Tensor
from covp.graph.ops.definition import definition
from covp.graph.ops.matmul import BatchMatMul
from covp.graph.ops.windows import TransposeConv
from covp.graph.quantization import quantize_multiplier
from covp.graph.reference import run_reference
from covp.graph.tflite import read_tflite
from covp.graph.zoo import tflite_writer
from covp.graph.zoo.builder import single_op_graph
from covp.graph.zoo.tflite_writer import write_tflite
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

bounded = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
spread: dict[str, Any] = {
    "dtype": "int16",
    "bias": True,
    "activation": layers.ACTIVATIONS,
    "output_scale": st.floats(0.2, 3.0),
    "per_channel": st.booleans(),
}


@pytest.mark.parametrize("kind", layers.CONVOLUTIONS)
@bounded
@given(st.data())
def test_convolutions(holds: Any, kind: str, data: st.DataObject) -> None:
    """LiteRT scales FULLY_CONNECTED in floating point: one rounding where TFLM has its own."""
    layer: ConvCase = data.draw(layers.convolutions(kind, max_channels=9, **spread))
    holds(layer.graph(), layer.seed, tolerance=kind == "FULLY_CONNECTED")


@pytest.mark.parametrize("kind", ["CONV_2D", "FULLY_CONNECTED"])
@bounded
@given(st.data())
def test_convolutions_with_narrow_bias(holds: Any, kind: str, data: st.DataObject) -> None:
    layer: ConvCase = data.draw(
        layers.convolutions(kind, max_channels=9, narrow_bias=True, **spread)
    )
    holds(layer.graph(), layer.seed, tolerance=kind == "FULLY_CONNECTED")


@pytest.mark.parametrize("kind", layers.ELEMENTWISE)
@bounded
@given(st.data())
def test_elementwise(holds: Any, kind: str, data: st.DataObject) -> None:
    drawn = layers.elementwise(kind, broadcast=True, dtype="int16", activation=layers.ACTIVATIONS)
    layer: ElementwiseCase = data.draw(drawn)
    holds(layer.graph(), layer.seed)


@pytest.mark.parametrize("kind", layers.POOLS)
@bounded
@given(st.data())
def test_pools(holds: Any, kind: str, data: st.DataObject) -> None:
    layer: PoolCase = data.draw(layers.pools(kind, dtype="int16", activation=layers.ACTIVATIONS))
    holds(layer.graph(), layer.seed)


@bounded
@given(
    layers.softmaxes(dtype="int16", scale=st.floats(0.01, 2.25), beta=st.floats(0.25, 2, width=32))
)
def test_softmax(holds: Any, layer: SoftmaxCase) -> None:
    holds(layer.graph(), layer.seed)


@pytest.mark.parametrize("kind", ["LOGISTIC", "TANH"])
@pytest.mark.parametrize("scale", [2.0**-12, 2.0**-11, 2.0**-13, 1e-5, 3e-4, 0.001, 0.02, 2.5])
def test_saturating_functions(holds: Any, kind: str, scale: float) -> None:
    layer = OperatorCase(kind, (1, 4096), None, "int16", scale, 0, None, 2.0**-15)
    holds(layer.graph(), 1)


@pytest.mark.parametrize("kind", ["RELU", "RELU6", "LEAKY_RELU"])
@pytest.mark.parametrize("scales", [(0.001, 0.001), (0.0007, 0.0004), (0.0003, 0.002)])
def test_rectifiers(holds: Any, kind: str, scales: tuple[float, float]) -> None:
    if kind == "RELU6" and scales[0] != scales[1]:
        pytest.skip("LiteRT's RELU6 keeps the scale")
    attributes = LeakyRelu(0.3) if kind == "LEAKY_RELU" else None
    layer = OperatorCase(kind, (1, 4096), attributes, "int16", scales[0], 0, None, scales[1])
    holds(layer.graph(), 1)


@pytest.mark.parametrize("scale", [None, 0.0005, 0.02])
def test_mean(holds: Any, scale: float | None) -> None:
    """SUM of int16 is not scaled by LiteRT, which TFLM does."""
    layer = OperatorCase("MEAN", (2, 5, 7, 9), Mean((1, 2), True), "int16", 0.001, 0, None, scale)
    holds(layer.graph(), 3)


@pytest.mark.parametrize("transposed", [BatchMatMul(), BatchMatMul(True, True)])
def test_batch_matmul(holds: Any, transposed: BatchMatMul) -> None:
    shapes = ((2, 5, 11), (11, 5)) if not transposed.adj_x else ((2, 11, 5), (5, 11))
    x, y = (tensors.int16(n, s, 0.01) for n, s in zip("xy", shapes, strict=True))
    holds(single_op_graph("BATCH_MATMUL", x, y, attributes=transposed, scale=9.0), 3)


@bounded
@given(layers.moves(dtype="int16"))
def test_moves(holds: Any, layer: OperatorCase) -> None:
    holds(replace(layer, zero_point=0).graph(), layer.seed)


@pytest.mark.parametrize("constant", [True, False])
def test_transpose_conv_of_run_time_shape_and_int16_bias(
    monkeypatch: pytest.MonkeyPatch, constant: bool
) -> None:
    """TFLM's forms that LiteRT has not got: sums in integers, one by one."""
    rng = np.random.default_rng(5)
    weights = rng.integers(-127, 128, (3, 2, 2, 4)).astype(np.int8)
    bias = rng.integers(-30000, 30000, 3).astype(np.int16)
    x = rng.integers(-32768, 32768, (1, 2, 3, 4)).astype(np.int16)
    source, output = tensors.int16("x", x.shape, 0.01), tensors.int16("y", (1, 4, 6, 3), 0.5)
    w = tensors.int8("w", weights.shape, 0.02, 0, weights)
    b = Tensor("b", bias.shape, bias.dtype, affine(0.0002), bias)
    stated = np.array(output.shape, np.int32)
    shape = tensors.plain("shape", (4,), np.int32, stated if constant else None)
    attributes = TransposeConv((2, 2), (0, 0), (4, 6), (1, 1))
    op = Op("TRANSPOSE_CONV", "layer", [shape, w, source, b], [output], attributes)
    monkeypatch.setitem(tflite_writer._FORMS, "TRANSPOSE_CONV", lambda op: op)
    inputs = [source] if constant else [shape, source]
    graph = read_tflite(write_tflite(Graph("m", inputs, [output], [op])))
    found = run_reference(graph, [x] if constant else [stated, x])[0]
    sums = np.zeros(output.shape, np.int64) + bias
    for y, column, ky, kx in np.ndindex(2, 3, 2, 2):
        sums[0, 2 * y + ky, 2 * column + kx] += (
            weights[:, ky, kx].astype(np.int64) @ x[0, y, column]
        )
    multiplier, right = quantize_multiplier(float(np.float32(0.01)) * float(np.float32(0.02)) / 0.5)
    upper = (multiplier + (1 << 15)) >> 16
    wanted = (sums * upper + (1 << (14 - right))) >> (15 - right)
    assert np.array_equal(found, np.clip(wanted, -32768, 32767))


@pytest.mark.parametrize("kind", ["MAXIMUM", "MINIMUM"])
def test_functions_of_two(holds: Any, kind: str) -> None:
    """LiteRT has no SQUARED_DIFFERENCE, PRELU and comparisons of int16, which TFLM has."""
    x, y = (tensors.int16(n, (3, 500), 0.001) for n in "xy")
    holds(single_op_graph(kind, x, y), 2)


@pytest.mark.parametrize("scale", [0.001, 0.0007])
def test_abs(holds: Any, scale: float) -> None:
    holds(OperatorCase("ABS", (4096,), None, "int16", 0.001, 0, None, scale).graph(), 2)


def test_factors_that_int16_products_cannot_have_are_refused() -> None:
    """They gave 0 where TFLM's form for sums of 64 bits would shift by a negative count."""
    scales = [
        Quantization(np.array([s], np.float32), np.array([0], np.int32))
        for s in (1.0, 1.0, 2.0**-15)
    ]
    shapes = ((1, 2, 3), (1, 3, 2), (1, 2, 2))
    first, second, out = (
        Tensor(name, shape, np.dtype(np.int16), scale)
        for name, shape, scale in zip("abc", shapes, scales, strict=True)
    )
    op = Op("BATCH_MATMUL", "matmul", [first, second], [out], BatchMatMul())
    values = [np.ones(tensor.shape, np.int16) for tensor in (first, second)]
    with pytest.raises(ModelError, match=r"factor of 2\*\*15"):
        definition("BATCH_MATMUL").reference(op, values)
