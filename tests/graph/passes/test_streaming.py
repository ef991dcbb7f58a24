"""Streaming: new rows alone give what the plain network gives on each whole window, to the bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from numpy.typing import NDArray

import covp
from covp.errors import ModelError
from covp.evaluation import build, run
from covp.graph.attributes import Conv2D, Elementwise, FullyConnected, Padding, ResizeNearest
from covp.graph.graph import Graph
from covp.graph.ops import macs
from covp.graph.passes.streaming import make_streaming_graph
from covp.graph.passes.streaming.rewrite import Rewriter
from covp.graph.reference import ReferenceExecutor, run_reference
from covp.graph.zoo.builder import GraphBuilder

from .streams import Stack, stacks

Array = NDArray[Any]


def rows(x: Array, axis: int, begin: int, end: int) -> Array:
    return np.take(x, range(begin, end), axis)


def compare(graph: Graph, hop: int, axis: int, windows: int = 3) -> Graph:
    """The stream beside the windows, from the end of the first window on."""
    stream = make_streaming_graph(graph, hop, axis)
    assert stream.streaming is not None and macs(stream) < macs(stream.streaming.plain)
    source, warm_up = graph.inputs[0], stream.streaming.warm_up
    count = (warm_up + windows) * hop
    shape = [*source.shape]
    shape[axis] = count
    rng = np.random.default_rng(3)
    data = rng.integers(-128, 128, shape).astype(np.int8)
    if source.dtype != np.int8:
        data = rng.normal(0, 1, shape).astype(np.float32)
    executor = ReferenceExecutor(stream)
    for number in range(1, count // hop + 1):
        end = number * hop
        got = executor.run(rows(data, axis, end - hop, end))
        if number < warm_up:
            continue
        window = rows(data, axis, end - source.shape[axis], end)
        for new, whole in zip(got, run_reference(graph, [window]), strict=True):
            newest = whole[
                tuple(slice(a - b, a) for a, b in zip(whole.shape, new.shape, strict=True))
            ]
            if new.dtype == np.float32:
                assert np.allclose(new, newest, rtol=1e-5, atol=1e-5)
            else:
                assert np.array_equal(new, newest), f"inference {number}"
    return stream


@pytest.mark.costly
@settings(deadline=None, max_examples=150)
@given(stack=stacks())
def test_a_stream_is_its_windows(stack: Stack) -> None:
    try:
        compare(stack.graph, stack.hop, stack.axis)
    except ModelError as error:
        assert "nothing is saved" in str(error), error
        assume(False)


@settings(deadline=None, max_examples=20)
@given(stack=stacks("float32"))
def test_of_floats_too(stack: Stack) -> None:
    try:
        compare(stack.graph, stack.hop, stack.axis)
    except ModelError as error:
        assert "nothing is saved" in str(error), error
        assume(False)


@pytest.mark.costly
@pytest.mark.process
@pytest.mark.parametrize("platform", ["riscv32", "cortex-m4"])
@settings(deadline=None, max_examples=5)
@given(stack=stacks())
def test_on_the_core(platform: str, stack: Stack) -> None:
    """Layer by layer; one of the inputs completes a window, its outputs are the plain network's."""
    try:
        made = build(stack.graph, platform, schedules=None, streaming=stack.hop)
    except ModelError as error:
        assert "cannot run on a stream" in str(error)
        assume(False)
    result = run(made, check="layers")
    assert result.matches_reference, result.check.mismatch
    assert result.check.inputs == 5 + bool(made.program.states)


def network(*, padding: int = 0, stride: int = 1, kind: str = "") -> Graph:
    builder = GraphBuilder("net")
    x = builder.input((1, 12, 1, 4), scale=0.1)
    weights = builder.constant(np.ones((4, 3, 1, 4), np.int8), 0.1)
    x = builder.add("CONV_2D", x, weights, scale=0.1,
                    attributes=Conv2D((1, 1), Padding()))  # fmt: skip
    if kind:
        x = builder.add(kind, x, attributes=ResizeNearest((20, 1)))
    padded = Conv2D((stride, 1), Padding(padding, padding))
    return builder.graph(builder.add("CONV_2D", x, weights, scale=0.1, attributes=padded))


@pytest.mark.parametrize(
    ("how", "hop", "said"),
    [
        ({"padding": 1}, 1, r"axis 1: conv_2d_1 \(CONV_2D\) pads time with 1 \+ 1 rows .*'valid'"),
        ({"stride": 2}, 1, r"conv_2d_1 \(CONV_2D\) moves by 2 rows .* --streaming 2"),
        (
            {"kind": "RESIZE_BILINEAR"},
            1,
            r"resize_bilinear_1 \(.*\) depends on where in the window",
        ),
        ({}, 12, "its 12 rows are no more than the 12 new ones"),
    ],
)
def test_what_does_not_hold_is_refused(how: dict[str, Any], hop: int, said: str) -> None:
    with pytest.raises(ModelError, match=said) as caught:
        make_streaming_graph(network(**how), hop)
    assert "\n" not in str(caught.value)


def test_nothing_saved_two_inputs_and_states_are_refused() -> None:
    builder = GraphBuilder("dense")
    x = builder.input((1, 8, 4), scale=0.1)
    flat = builder.add("RESHAPE", x, shape=(1, 32))
    weights = builder.constant(np.ones((2, 32), np.int8), 0.1)
    y = builder.add("FULLY_CONNECTED", flat, weights, attributes=FullyConnected(), scale=0.1)
    with pytest.raises(ModelError, match=r"nothing is saved: reshape_0 \(RESHAPE\) needs all rows"):
        make_streaming_graph(builder.graph(y), axis=1)
    z = builder.add("ADD", y, builder.input((1, 2), scale=0.1), attributes=Elementwise(), scale=0.1)
    with pytest.raises(ModelError, match="dense has 2 inputs; a stream needs one"):
        make_streaming_graph(builder.graph(z))
    builder.becomes(builder.state("s", np.zeros((1, 2), np.int8)), y)
    builder.inputs.pop()
    with pytest.raises(ModelError, match=r"keeps states already \(s\)"):
        make_streaming_graph(builder.graph(y))


def test_the_axis_is_found_and_strides_divide_the_hop() -> None:
    stream = make_streaming_graph(network(stride=2), 4)
    assert stream.streaming is not None
    assert (stream.streaming.axis, stream.streaming.warm_up) == (1, 3)
    assert stream.inputs[0].shape == (1, 4, 1, 4) and stream.outputs[0].shape == (1, 2, 1, 4)
    compare(network(stride=2), 4, 1)


def test_sww_needs_an_eighteenth() -> None:
    """MLPerf Tiny's streaming wake word: 1 of 30 rows is new in each frame."""
    stream = compare(covp.load_model("sww"), 1, 1, windows=5)
    assert stream.streaming is not None
    assert (macs(stream.streaming.plain), macs(stream)) == (826_368, 46_040)
    assert sum(state.before.nbytes for state in stream.states) == 3_960


def test_a_wrong_stream_names_itself(monkeypatch):
    """A convolution of the streaming network has another bias."""
    graph = covp.load_model("sww")
    make_streaming_graph(graph)
    right = Rewriter.run

    def wrong(self):
        made = right(self)
        op = next(op for op in made.ops if op.kind.endswith("CONV_2D"))
        bias = op.input(2)
        assert bias.data is not None
        op.inputs[2] = replace(bias, data=bias.data[::-1] - 3000)
        return made

    monkeypatch.setattr(Rewriter, "run", wrong)
    with pytest.raises(ModelError, match=r"streaming changed what the model computes: .* elements"):
        make_streaming_graph(graph)
