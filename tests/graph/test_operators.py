"""Every operator with random hyperparameters against LiteRT's reference kernels."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from covp.codegen.generate import generate
from covp.graph.attributes import (
    Conv2D,
    DepthwiseConv2D,
    LeakyRelu,
    Mean,
    Pad,
    Padding,
    Pool2D,
    ResizeNearest,
    Softmax,
)
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.reference import run_reference
from covp.graph.tflite import read_tflite
from covp.graph.zoo.builder import GraphBuilder, single_op_graph
from covp.graph.zoo.tflite_writer import write_tflite
from covp.runtime.session import Session
from covp.testing import (
    ConcatenationCase,
    ConvCase,
    ElementwiseCase,
    OperatorCase,
    PoolCase,
    SoftmaxCase,
    layers,
    tensors,
)
from covp.testing.quantizations import affine
from covp.testing.tensors import filled

bounded = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
dtypes = st.sampled_from(["int8", "float32"])
spread: dict[str, Any] = {
    "dtype": dtypes,
    "activation": layers.ACTIVATIONS,
    "output_scale": st.floats(0.2, 3.0),
    "per_channel": st.booleans(),
}


@bounded
@given(layers.convolutions("CONV_2D", max_channels=9, **{**spread, "bias": True}))
def test_conv2d(holds: Any, layer: ConvCase) -> None:
    holds(layer.graph(), layer.seed)


def test_conv2d_without_bias() -> None:
    """LiteRT rejects such a CONV_2D, TFLM accepts it: the same as a bias of zeros."""
    builder = GraphBuilder()
    x = builder.input((1, 4, 4, 3), scale=0.5, zero_point=7)
    rng = np.random.default_rng(0)
    weights = builder.constant(rng.integers(-127, 128, (5, 2, 2, 3)).astype(np.int8), 0.01)
    zeros = builder.constant(np.zeros(5, np.int32), 0.005)
    value = rng.integers(-128, 128, x.shape).astype(np.int8)
    outputs = []
    for bias in (None, zeros):
        attributes = Conv2D((1, 1), Padding())
        graph = single_op_graph("CONV_2D", x, weights, bias, attributes=attributes, scale=2.0)
        outputs += run_reference(read_tflite(write_tflite(graph)), [value])
    np.testing.assert_array_equal(outputs[0], outputs[1])
    assert len(np.unique(outputs[0])) > 10


@bounded
@given(layers.convolutions("DEPTHWISE_CONV_2D", max_channels=9, **spread))
def test_depthwise_conv2d(holds: Any, layer: ConvCase) -> None:
    holds(layer.graph(), layer.seed)


@bounded
@given(layers.convolutions("FULLY_CONNECTED", max_channels=40, **spread))
def test_fully_connected(holds: Any, layer: ConvCase) -> None:
    """LiteRT rounds once where TFLM rounds twice: int8 results may be one apart.

    `test_fully_connected_is_tflms` compares with TFLM's own arithmetic.
    """
    holds(layer.graph(), layer.seed, tolerance=1)


@pytest.mark.parametrize("kind", layers.ELEMENTWISE)
@bounded
@given(st.data())
def test_elementwise(holds: Any, kind: str, data: st.DataObject) -> None:
    drawn = layers.elementwise(kind, broadcast=True, dtype=dtypes, activation=layers.ACTIVATIONS)
    layer: ElementwiseCase = data.draw(drawn)
    holds(layer.graph(), layer.seed)


@pytest.mark.parametrize("kind", layers.POOLS)
@bounded
@given(st.data())
def test_pooling(holds: Any, kind: str, data: st.DataObject) -> None:
    batches = st.integers(1, 2)
    layer: PoolCase = data.draw(
        layers.pools(kind, max_filter=5, dtype=dtypes, batch=batches, activation=layers.ACTIVATIONS)
    )
    holds(layer.graph(), layer.seed)


@bounded
@given(layers.means(dtype=dtypes))
def test_mean(holds: Any, layer: OperatorCase) -> None:
    holds(layer.graph(), layer.seed)


@bounded
@given(layers.layers("REDUCE_MAX"))
def test_reduce_max(holds: Any, layer: OperatorCase) -> None:
    holds(layer.graph(), layer.seed)


@bounded
@given(layers.softmaxes(dtype=dtypes, beta=st.floats(0.25, 2, width=32)))
def test_softmax(holds: Any, layer: SoftmaxCase) -> None:
    holds(layer.graph(), layer.seed)


@pytest.mark.parametrize("kind", ["LOGISTIC", "TANH"])
@bounded
@given(st.data())
def test_saturating_functions(holds: Any, kind: str, data: st.DataObject) -> None:
    """LiteRT's int8 tables come from float functions, TFLM's results from fixed-point ones.

    TFLM gives up on inputs of 16 and more; above a scale of 1/2 whole steps fall there.
    """
    layer: OperatorCase = data.draw(
        layers.functions(kind, max_scale=0.5, dtype=dtypes, shape=(2, 128))
    )
    holds(layer.graph(), layer.seed, 1)


@pytest.mark.parametrize("kind", ["RELU", "RELU6", "LEAKY_RELU"])
@bounded
@given(st.data())
def test_rectifiers(holds: Any, kind: str, data: st.DataObject) -> None:
    layer: OperatorCase = data.draw(layers.functions(kind, dtype=dtypes, shape=(2, 128)))
    holds(layer.graph(), layer.seed)


@pytest.mark.parametrize("kind", layers.MOVES)
@bounded
@given(st.data())
def test_moves(holds: Any, kind: str, data: st.DataObject) -> None:
    layer: OperatorCase = data.draw(layers.moves(kind, dtype=dtypes))
    holds(layer.graph(), layer.seed)


@bounded
@given(layers.concatenations(dtype=dtypes))
def test_concatenation(holds: Any, layer: ConcatenationCase) -> None:
    holds(layer.graph(), layer.seed)


@bounded
@given(layers.resizes(dtype=dtypes))
def test_resize_nearest_neighbor(holds: Any, layer: OperatorCase) -> None:
    holds(layer.graph(), layer.seed)


@pytest.mark.parametrize("kind", layers.CONVERSIONS)
@bounded
@given(st.data())
def test_conversions(holds: Any, kind: str, data: st.DataObject) -> None:
    layer: OperatorCase = data.draw(layers.conversions(kind, shape=(2, 100)))
    holds(layer.graph(), layer.seed)


@bounded
@given(
    layers.functions(
        "LEAKY_RELU",
        dtype="int8",
        shape=(1, 256),
        attributes=st.sampled_from([-0.25, -0.5, -0.75, -1.0, -2.0]).map(LeakyRelu),
        scale=st.sampled_from([0.25, 0.5, 1.0]),
        output_scale=st.sampled_from([0.25, 0.5, 1.0, 2.0]),
    )
)
def test_ties_of_a_negative_slope(litert: Any, layer: OperatorCase) -> None:
    """Every byte; with these scales every other product lies half way between two results."""
    graph, x = layer.graph(), np.arange(-128, 128, dtype=np.int8).reshape(1, 256)
    assert np.array_equal(run_reference(graph, [x])[0], litert(write_tflite(graph), [x])[0])


@pytest.mark.parametrize("points", [(3, -20), (0, 127), (-128, 5)])
def test_a_pad_into_another_zero_point(litert: Any, points: tuple[int, int]) -> None:
    """The margin is the output's real zero."""
    x = tensors.int8("x", (2, 2), 0.5, points[0])
    graph = single_op_graph(
        "PAD", x, attributes=Pad(((1, 0), (0, 2)), 0.0), scale=0.5, zero_point=points[1]
    )
    data, value = write_tflite(graph), filled(x, 1)
    read = run_reference(read_tflite(data), [value])[0]
    assert np.array_equal(read, litert(data, [value])[0])
    assert read[0].tolist() == [points[1]] * 4


@pytest.mark.process
def test_uint8_at_the_ends_of_a_model(litert: Any) -> None:
    """Two conversions, and a RELU between them."""
    builder = GraphBuilder("bytes")
    x = Tensor("x", (1, 256), np.dtype(np.uint8), affine(0.5, 120))
    builder.inputs.append(x)
    inside = builder.add("QUANTIZE", x, dtype=np.int8, scale=0.5, zero_point=-8)
    positive = builder.add("RELU", inside)
    out = builder.add("QUANTIZE", positive, dtype=np.uint8, scale=0.25, zero_point=3)
    data = write_tflite(builder.graph(out))
    value = np.arange(256, dtype=np.uint8).reshape(1, 256)
    graph = read_tflite(data)
    wanted = litert(data, [value])[0]
    assert wanted.dtype == np.uint8
    assert np.array_equal(run_reference(graph, [value])[0], wanted)
    with Session("riscv32") as session:
        assert np.array_equal(session.load(generate(graph, "riscv32")).run(value), wanted)


@pytest.mark.process
@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_squeezing_and_expanding_are_reshapes(litert: Any, dtype: str) -> None:
    """Written as what they are, read as RESHAPE, without code of their own."""
    scaled = affine(0.5, 3) if dtype == "int8" else None
    x, flat, wide = (
        Tensor(name, shape, np.dtype(dtype), scaled)
        for name, shape in (("x", (1, 3, 1, 4)), ("flat", (3, 4)), ("wide", (3, 1, 4)))
    )
    axis = Tensor("axis", (1,), np.dtype(np.int32), None, np.array([1], np.int32))
    squeeze = Op("SQUEEZE", "squeeze", [x], [flat], None)
    expand = Op("EXPAND_DIMS", "expand", [flat, axis], [wide], None)
    data, value = write_tflite(Graph("two", [x], [wide], [squeeze, expand])), filled(x, 2)
    graph = read_tflite(data)
    assert [op.kind for op in graph.ops] == ["RESHAPE", "RESHAPE"]
    wanted = litert(data, [value])[0]
    assert wanted.shape == (3, 1, 4)
    assert np.array_equal(run_reference(graph, [value])[0], wanted)
    with Session("riscv32") as session:
        assert np.array_equal(session.load(generate(graph, "riscv32")).run(value), wanted)


@pytest.mark.parametrize("kind", ["MAX_POOL_2D", "REDUCE_MAX"])
def test_a_nan_is_never_the_largest(kind: str, litert: Any) -> None:
    attributes = Pool2D((2, 2), (2, 2), Padding()) if kind == "MAX_POOL_2D" else Mean((2,), False)
    builder = GraphBuilder()
    x = builder.input((1, 2, 4, 1), np.float32)
    data = write_tflite(builder.graph(builder.add(kind, x, attributes=attributes)))
    values = np.array([1, np.nan, np.nan, np.nan, np.nan, -2, np.nan, 3], np.float32)
    inputs = [values.reshape(1, 2, 4, 1)]
    (wanted,) = litert(data, inputs)
    (got,) = run_reference(read_tflite(data), inputs)
    assert np.array_equal(got, wanted) and not np.isnan(got).any()


@pytest.mark.parametrize("depthwise", [False, True])
def test_an_infinite_weight_beside_the_image_counts_for_nothing(depthwise: bool) -> None:
    """From the definition of padding: taps outside are left out, not 0 times the weight."""
    builder = GraphBuilder()
    x = builder.input((1, 1, 3, 1), np.float32)
    weights = builder.constant(np.array([np.inf, 1, 1], np.float32).reshape(1, 1, 3, 1))
    bias = builder.constant(np.array([[0.5]], np.float32))
    padding = Padding(0, 0, 1, 1)
    kind, attributes = (
        ("DEPTHWISE_CONV_2D", DepthwiseConv2D((1, 1), padding))
        if depthwise
        else ("CONV_2D", Conv2D((1, 1), padding))
    )
    graph = builder.graph(builder.add(kind, x, weights, bias, attributes=attributes))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (got,) = run_reference(graph, [np.array([2, -3, 0], np.float32).reshape(1, 1, 3, 1)])
    assert np.array_equal(got.ravel(), [-0.5, np.inf, -np.inf])


@pytest.mark.process
@pytest.mark.parametrize("kind", ["RESIZE_NEAREST_NEIGHBOR", "SOFTMAX"])
def test_several_rows_of_a_constant(kind: str) -> None:
    """An output that depends on no input is computed by the kernel."""
    builder = GraphBuilder()
    x = builder.input((4,), np.float32)
    values = np.arange(16, dtype=np.float32).reshape(2, 2, 2, 2)
    attributes = Softmax() if kind == "SOFTMAX" else ResizeNearest((4, 4))
    out = builder.add(kind, builder.constant(values), attributes=attributes)
    program = generate(builder.graph(builder.add("RELU", x), out), "riscv32")
    with Session("riscv32") as session:
        got = session.load(program).run(np.zeros(4, np.float32))[1]
    powers = np.exp(values) / np.exp(values).sum(3, keepdims=True)
    wanted = powers if kind == "SOFTMAX" else values.repeat(2, 1).repeat(2, 2)
    assert np.allclose(got, wanted, rtol=1e-5, atol=0)
