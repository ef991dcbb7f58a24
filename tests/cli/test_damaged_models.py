"""Damaged model files: the reader gives a graph or a ModelError, and what it gives can be used.

The reader comes before every command, so that a file that gets past it must not break what comes
after it either.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covp.codegen.generate import generate
from covp.errors import CovpError, ModelError
from covp.graph.attributes import (
    Concatenation,
    DepthwiseConv2D,
    Elementwise,
    LeakyRelu,
    Mean,
    Pad,
    Padding,
    Pool2D,
    ResizeNearest,
    Softmax,
    Split,
    StridedSlice,
    Transpose,
)
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.tflite import read_tflite
from covp.graph.zoo.builder import GraphBuilder, single_op_graph
from covp.graph.zoo.tflite_writer import write_tflite
from covp.testing.quantizations import affine

from .conftest import small_model

HANGS_AFTER = 20
"""Seconds; reading takes a hundredth of one."""


def many_operators() -> bytes:
    """A chain of most of the operators that `small_model` has not."""
    b = GraphBuilder("many")
    x = b.input((1, 6, 6, 2), scale=0.05, zero_point=-3)
    around = Pad(((0, 0), (1, 1), (1, 1), (0, 0)), -3)
    filters = np.random.default_rng(0).integers(-127, 128, (1, 3, 3, 2)).astype(np.int8)
    weights = b.constant(filters, [0.1, 0.2], axis=3)
    depthwise = DepthwiseConv2D((1, 1), Padding())
    x = b.add("PAD", x, attributes=around)
    x = b.add("DEPTHWISE_CONV_2D", x, weights, attributes=depthwise, scale=0.1)
    x = b.add("MAX_POOL_2D", x, attributes=Pool2D((2, 2), (2, 2), Padding()))
    y = b.add("ADD", x, x, attributes=Elementwise(), scale=0.2)
    x = b.add("MUL", y, x, attributes=Elementwise("relu"), scale=0.3)
    x = b.add("CONCATENATION", x, x, attributes=Concatenation(3))
    x = b.add("TRANSPOSE", x, attributes=Transpose((0, 2, 1, 3)))
    x, rest = b.add_all("SPLIT", x, attributes=Split(3), outputs=2)
    x = b.add("LEAKY_RELU", x, attributes=LeakyRelu(0.1), scale=0.1)
    slices = StridedSlice(((0, 1, 1), (0, 2, 1), (0, 3, 2), (0, 2, 1)))
    x = b.add("STRIDED_SLICE", x, attributes=slices)
    x = b.add("RESIZE_NEAREST_NEIGHBOR", x, attributes=ResizeNearest((4, 4)))
    x = b.add("MEAN", x, attributes=Mean((1, 2), False), scale=0.1)
    x = b.add("DEQUANTIZE", x, dtype=np.float32)
    x = b.add("QUANTIZE", x, dtype=np.int8, scale=0.2)
    x = b.add("LOGISTIC", x, scale=1 / 256, zero_point=-128)
    return write_tflite(b.graph(x, rest))


MODELS = (small_model(), many_operators())
models = st.sampled_from(MODELS)
places = st.floats(0, 1, exclude_max=True)
flips = st.lists(st.tuples(places, st.integers(1, 255)), min_size=1, max_size=6)


@contextmanager
def no_hang() -> Iterator[None]:
    def give_up(number: int, frame: object) -> None:
        raise AssertionError(f"not done after {HANGS_AFTER} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(HANGS_AFTER)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def read(data: bytes) -> Graph | None:
    with no_hang():
        try:
            return read_tflite(data)
        except ModelError as error:
            assert "\n" not in str(error)
            assert str(error).startswith("model: ")
            return None


def flipped(model: bytes, changes: list[tuple[float, int]]) -> bytes:
    data = bytearray(model)
    for place, mask in changes:
        data[int(place * len(data))] ^= mask
    return bytes(data)


@pytest.mark.parametrize("model", MODELS, ids=["small", "many"])
def test_undamaged_ones_are_read(model: bytes) -> None:
    graph = read(model)
    assert graph is not None
    assert generate(graph, "riscv32").layers


@settings(max_examples=400, deadline=None)
@given(models, places)
def test_truncations(model: bytes, place: float) -> None:
    read(model[: int(place * len(model))])


@pytest.mark.costly
@settings(max_examples=1500, deadline=None)
@given(models, flips)
def test_flipped_bytes(model: bytes, changes: list[tuple[float, int]]) -> None:
    read(flipped(model, changes))


@settings(max_examples=200, deadline=None)
@given(models, flips, places, st.binary(max_size=32))
def test_all_at_once(
    model: bytes, changes: list[tuple[float, int]], place: float, tail: bytes
) -> None:
    read(flipped(model, changes)[: int(place * len(model))] + tail)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400))
def test_noise_after_the_identifier(noise: bytes) -> None:
    assert read(MODELS[0][:8] + noise) is None


@settings(max_examples=200, deadline=None)
@given(models, flips)
def test_what_is_read_compiles_or_is_refused(
    model: bytes, changes: list[tuple[float, int]]
) -> None:
    graph = read(flipped(model, changes))
    if graph is None:
        return
    with no_hang():
        try:
            program = generate(graph, "riscv32")
        except CovpError as error:
            assert "\n" not in str(error)
        else:
            assert program.layers


def refusal(graph: Graph) -> str:
    with pytest.raises(ModelError) as caught:
        read_tflite(write_tflite(graph))
    return str(caught.value)


def test_types_that_do_not_go_together() -> None:
    builder = GraphBuilder()
    x = builder.input((1, 4), scale=0.1)
    y = builder.input((1, 4), np.float32)
    assert "float32" in refusal(single_op_graph("RELU", x, dtype=np.float32))
    for kind, attributes in (("ADD", Elementwise()), ("CONCATENATION", Concatenation(1))):
        text = refusal(single_op_graph(kind, x, y, attributes=attributes))
        assert "input_1 is float32 and input_0 is int8" in text


@pytest.mark.parametrize("beta", [-1.0, 0.0, float("inf"), float("nan")])
def test_a_softmax_without_sense(beta: float) -> None:
    x = GraphBuilder().input((1, 4), scale=0.1)
    how = {"attributes": Softmax(beta), "scale": 1 / 256, "zero_point": -128}
    assert "beta" in refusal(single_op_graph("SOFTMAX", x, **how))


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_a_softmax_of_a_scalar(dtype: str) -> None:
    scalar = Tensor("x", (), np.dtype(dtype), affine(1 / 256, -128) if dtype == "int8" else None)
    out = replace(scalar, name="y")
    op = Op("SOFTMAX", "softmax", [scalar], [out], Softmax(1.0))
    assert "needs an axis" in refusal(Graph("scalar", [scalar], [out], [op]))


def test_a_zero_point_outside_the_type() -> None:
    x = GraphBuilder().input((1, 4), scale=0.1, zero_point=300)
    assert "zero point" in refusal(single_op_graph("RELU", x))


def test_names_stay_on_one_line() -> None:
    builder = GraphBuilder()
    x = builder.input((1, 4), np.float16)
    x.name = "two\nlines\x1b[2J"
    assert "two?lines?[2J" in refusal(single_op_graph("SOFTMAX", x, attributes=Softmax(1.0)))
