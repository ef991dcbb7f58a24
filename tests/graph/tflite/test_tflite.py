"""The TFLite reader: round trips through the writer, and one clear error for each bad file."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import pytest
import tflite

from covp.errors import ModelError
from covp.graph.attributes import (
    Activation,
    Conv2D,
    Elementwise,
    FullyConnected,
    Mean,
    Padding,
    Softmax,
    Split,
    StridedSlice,
)
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.ops import OPS
from covp.graph.reference import run_reference
from covp.graph.tflite import load_tflite, read_tflite
from covp.graph.tflite.converters import CONVERTERS
from covp.graph.zoo.builder import GraphBuilder, quantization, single_op_graph
from covp.graph.zoo.tflite_writer import write_tflite


def convolution(activation: Activation = "relu") -> GraphBuilder:
    builder = GraphBuilder("small")
    x = builder.input((1, 5, 5, 2), scale=0.5, zero_point=3)
    rng = np.random.default_rng(0)
    weights = builder.constant(
        rng.integers(-127, 128, (4, 3, 3, 2)).astype(np.int8), [0.1, 0.2, 0.3, 0.4]
    )
    bias = builder.constant(np.arange(4, dtype=np.int32), [0.05, 0.1, 0.15, 0.2])
    attributes = Conv2D((2, 2), Padding(1, 1, 1, 1), activation=activation)
    builder.add("CONV_2D", x, weights, bias, attributes=attributes, scale=8.0, zero_point=-4)
    return builder


@pytest.fixture
def small() -> bytes:
    builder = convolution()
    pooled = builder.add("RESHAPE", builder.ops[0].output, shape=(1, 36))
    soft = builder.add("SOFTMAX", pooled, attributes=Softmax(), scale=1 / 256, zero_point=-128)
    return write_tflite(builder.graph(soft))


def test_every_operator_has_a_converter() -> None:
    """Of those that TFLite has: the others are ONNX's, and so are RNN and LSTM.

    Some become operators of another kind.
    """
    others = {"CONV_3D", "EMBEDDING_LOOKUP", "RANK", "SELECT", "ZEROS_LIKE"}
    known = {kind for kind in OPS if kind in vars(tflite.BuiltinOperator)} - {"RNN", "LSTM"}
    assert known <= set(CONVERTERS) <= set(OPS) | others


def test_round_trip_keeps_everything() -> None:
    builder = convolution("relu6")
    op = builder.ops[0]
    graph = read_tflite(write_tflite(builder.graph(op.output)), "small")
    found = graph.ops[0]
    assert (graph.name, found.kind, found.index) == ("small", "CONV_2D", 0)
    assert found.attributes == op.attributes
    for ours, theirs in zip(
        [*found.inputs, *found.outputs], [*op.inputs, *op.outputs], strict=True
    ):
        assert ours is not None and theirs is not None
        assert (ours.name, ours.shape, ours.dtype) == (theirs.name, theirs.shape, theirs.dtype)
        assert ours.quantization is not None and theirs.quantization is not None
        np.testing.assert_array_equal(ours.quantization.scale, theirs.quantization.scale)
        np.testing.assert_array_equal(ours.quantization.zero_point, theirs.quantization.zero_point)
        if theirs.data is not None:
            np.testing.assert_array_equal(ours.data, theirs.data)


def test_slices_and_splits_keep_their_order() -> None:
    builder = GraphBuilder()
    x = builder.input((2, 6), scale=1.0)
    back = StridedSlice(((0, 2, 1), (5, None, -2)))
    parts = builder.add_all("SPLIT", x, attributes=Split(1), outputs=2)
    sliced = builder.add("STRIDED_SLICE", x, attributes=back)
    graph = read_tflite(write_tflite(builder.graph(*parts, sliced)))
    value = np.arange(12, dtype=np.int8).reshape(2, 6)
    first, second, third = run_reference(graph, [value])
    np.testing.assert_array_equal(first, value[:, :3])
    np.testing.assert_array_equal(second, value[:, 3:])
    np.testing.assert_array_equal(third, value[:, ::-2])


def refusal(path: Path) -> str:
    """The one line that refuses a file."""
    with pytest.raises(ModelError) as caught:
        load_tflite(path)
    text = str(caught.value)
    assert "\n" not in text
    assert str(path) in text
    return text


def test_not_a_model(tmp_path: Path) -> None:
    assert "directory" in refusal(tmp_path)
    assert "no such file" in refusal(tmp_path / "missing.tflite")
    empty = tmp_path / "empty.tflite"
    empty.write_bytes(b"")
    assert "empty" in refusal(empty)
    text = tmp_path / "text.tflite"
    text.write_text("This is not a model, it is prose.\n" * 10)
    assert "not a TFLite model" in refusal(text)
    short = tmp_path / "short.tflite"
    short.write_bytes(b"TFL")
    assert "not a TFLite model" in refusal(short)


def test_every_truncation_is_refused(small: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cut.tflite"
    for length in range(1, len(small) - 16):
        path.write_bytes(small[:length])
        refusal(path)


@pytest.mark.costly
def test_flipped_bytes_never_escape(small: bytes) -> None:
    """A damaged file either still says something sensible or is a ModelError."""
    rng = random.Random(1)
    refused = 0
    for _ in range(3000):
        data = bytearray(small)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(8, len(data))] = rng.choice(
                [0, 1, 127, 128, 255, rng.randrange(256)]
            )
        try:
            read_tflite(bytes(data))
        except ModelError as error:
            assert "\n" not in str(error)
            refused += 1
    assert refused > 1000


def test_unknown_operator_is_named_with_its_index() -> None:
    builder = GraphBuilder()
    x = builder.input((4,), np.float32)
    relu = builder.add("RELU", x)
    other = Tensor("other", (4,), np.dtype(np.float32))
    op = Op("FAKE_QUANT", "fake_1", [relu], [other])
    data = write_tflite(Graph("m", [x], [other], [*builder.ops, op]))
    with pytest.raises(
        ModelError, match=r"operator 1 is FAKE_QUANT, .*user_operators; known: .*CONV_2D"
    ):
        read_tflite(data)


@pytest.mark.parametrize("dtype", ["float16", "uint8"])
def test_unsupported_dtype_is_named(dtype: str) -> None:
    x = Tensor("x", (4,), np.dtype(dtype))
    y = Tensor("y", (4,), np.dtype(dtype))
    data = write_tflite(Graph("m", [x], [y], [Op("RELU", "relu_0", [x], [y])]))
    with pytest.raises(ModelError, match=rf"tensor [xy] is {dtype}.*int8"):
        read_tflite(data)


def test_dynamic_shape_is_refused() -> None:
    x = Tensor("x", (-1, 4), np.dtype(np.float32))
    y = Tensor("y", (-1, 4), np.dtype(np.float32))
    data = write_tflite(Graph("m", [x], [y], [Op("RELU", "relu_0", [x], [y])]))
    with pytest.raises(ModelError, match="tensor x has a dynamic shape"):
        read_tflite(data)


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_integers_without_a_scale_are_refused(dtype: str) -> None:
    x = Tensor("x", (4,), np.dtype(dtype))
    y = Tensor("y", (4,), np.dtype(dtype))
    data = write_tflite(Graph("m", [x], [y], [Op("RELU", "relu_0", [x], [y])]))
    with pytest.raises(ModelError, match=rf"operator 0 \(RELU\): tensor x is {dtype} without a s"):
        read_tflite(data)


def test_wrong_output_shape_is_refused() -> None:
    graph = single_op_graph("RELU", GraphBuilder().input((4,), np.float32))
    graph.outputs[0].shape = (5,)
    with pytest.raises(ModelError, match=r"should have shape \(4,\), the file says \(5,\)"):
        read_tflite(write_tflite(graph))


def test_softmax_of_another_scale_is_refused() -> None:
    x = GraphBuilder().input((1, 4), scale=0.1)
    graph = single_op_graph("SOFTMAX", x, attributes=Softmax(), scale=0.5)
    with pytest.raises(ModelError, match=r"its output has scale 0\.5 and zero point 0"):
        read_tflite(write_tflite(graph))


def test_wrong_order_is_refused() -> None:
    builder = GraphBuilder()
    y = builder.add("RELU", builder.add("RELU", builder.input((4,), np.float32)))
    graph = builder.graph(y)
    graph.ops.reverse()
    with pytest.raises(ModelError, match="before it is computed"):
        read_tflite(write_tflite(graph))


def test_values_of_what_is_computed_are_refused() -> None:
    for which, said in (("inputs", "has values of its own"), ("outputs", "writes .* a constant")):
        graph = single_op_graph("RELU", GraphBuilder().input((4,), np.float32))
        getattr(graph, which)[0].data = np.zeros(4, np.float32)
        with pytest.raises(ModelError, match=said):
            read_tflite(write_tflite(graph))


def test_a_subgraph_is_needed() -> None:
    builder = flatbuffers.Builder(256)
    tflite.ModelStartSubgraphsVector(builder, 0)
    subgraphs = builder.EndVector()
    tflite.ModelStart(builder)
    tflite.ModelAddSubgraphs(builder, subgraphs)
    builder.Finish(tflite.ModelEnd(builder), b"TFL3")
    with pytest.raises(ModelError, match="has 0 subgraphs"):
        read_tflite(bytes(builder.Output()))


def test_dynamic_range_weights_become_float() -> None:
    """int8 weights under float activations: the product with the weights' scale."""
    builder = GraphBuilder()
    x = builder.input((1, 3), np.float32)
    stored = np.array([[1, -2, 3], [4, 5, -6]], np.int8)
    weights = builder.constant(stored, 0.5)
    y = builder.add("FULLY_CONNECTED", x, weights, None, attributes=FullyConnected())
    graph = read_tflite(write_tflite(builder.graph(y)))
    value = np.array([[1.0, 10.0, 100.0]], np.float32)
    np.testing.assert_allclose(
        run_reference(graph, [value])[0], value @ (stored.T * 0.5), rtol=1e-6
    )


def test_broadcast_that_does_not_fit() -> None:
    builder = GraphBuilder()
    a, b = builder.input((4,), np.float32), builder.input((5,), np.float32)
    out = Tensor("out", (5,), np.dtype(np.float32))
    op = Op("ADD", "add_0", [a, b], [out], Elementwise())
    with pytest.raises(ModelError, match=r"operator 0 \(ADD\): .*do not broadcast"):
        read_tflite(write_tflite(Graph("m", [a, b], [out], [op])))


def written(kind: str, *inputs: Tensor, **how: Any) -> bytes:
    """A file of one operator, without the checks of the builder."""
    out = replace(inputs[0], name="y")
    graph = Graph("one", list(inputs), [out], [Op(kind, "op", list(inputs), [out], **how)])
    return write_tflite(graph)


@pytest.mark.parametrize("kind", ["RELU", "RELU6"])
def test_a_rectifier_of_int32_is_refused(kind: str) -> None:
    """After an ADD it would be fused, and its clamp lost."""
    x = Tensor("x", (4,), np.dtype(np.int32))
    with pytest.raises(ModelError, match=rf"\({kind}\): .* int32; int8, int16 and float32"):
        read_tflite(written(kind, x, attributes=None))


@pytest.mark.parametrize("kind", ["ADD", "SUB", "MUL"])
def test_a_clamp_of_int32_is_refused(kind: str) -> None:
    a, b = (Tensor(name, (4,), np.dtype(np.int32)) for name in "ab")
    with pytest.raises(ModelError, match=rf"{kind} of int32 with the fused activation relu"):
        read_tflite(written(kind, a, b, attributes=Elementwise("relu")))
    read_tflite(written(kind, a, b, attributes=Elementwise()))


def test_a_softmax_over_too_many_values_is_refused() -> None:
    x = Tensor("x", (1, 4096), np.dtype(np.int8), quantization(0.1))
    y = Tensor("y", (1, 4096), np.dtype(np.int8), quantization(1 / 256, -128))
    op = Op("SOFTMAX", "op", [x], [y], Softmax(1.0))
    with pytest.raises(ModelError, match=r"operator 0 \(SOFTMAX\): .*at most 4095 are supported"):
        read_tflite(write_tflite(Graph("one", [x], [y], [op])))


def test_a_bias_with_the_axis_of_its_weights_is_read() -> None:
    """As in TFLM's person_detect: quantized_dimension 3 of a tensor of one dimension."""
    builder = convolution()
    bias = builder.ops[0].input(2)
    assert bias.quantization is not None
    bias.quantization = replace(bias.quantization, axis=3)
    read = read_tflite(write_tflite(builder.graph(builder.ops[0].output)))
    found = read.ops[0].input(2).quantization
    assert found is not None
    assert found.axis == 0
    assert found.scale.tolist() == bias.quantization.scale.tolist()


def test_uint8_without_a_scale_is_refused() -> None:
    x = Tensor("x", (4,), np.dtype(np.uint8))
    with pytest.raises(ModelError, match="tensor x is uint8 without a scale; quantize the model"):
        read_tflite(written("RESHAPE", x, attributes=None))


def test_a_maximum_into_another_scale_is_refused() -> None:
    """TFLM rejects it too."""
    x = Tensor("x", (2, 4), np.dtype(np.int8), quantization(0.1))
    y = Tensor("y", (2,), np.dtype(np.int8), quantization(0.2))
    axes = Tensor("axes", (1,), np.dtype(np.int32), None, np.array([1], np.int32))
    op = Op("REDUCE_MAX", "op", [x, axes], [y], Mean((1,), False))
    with pytest.raises(ModelError, match=r"\(REDUCE_MAX\): its input and output have different"):
        read_tflite(write_tflite(Graph("one", [x], [y], [op])))
