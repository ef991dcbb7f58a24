"""What files of others have: scalars, empty constants, outputs that nothing computes."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import covp
from covp.errors import ModelError
from covp.graph.attributes import Elementwise, FullyConnected, Mean, StridedSlice
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.ops.along_axis import TopK
from covp.graph.reference import run_reference
from covp.graph.tflite import read_tflite
from covp.graph.zoo import tflite_options_writer
from covp.graph.zoo.builder import GraphBuilder, quantization
from covp.graph.zoo.tflite_writer import write_tflite

FLOAT = np.dtype(np.float32)


def on_core(graph: Graph, *inputs: Any) -> list[Any]:
    with covp.Session("riscv32") as session:
        found = session.load(covp.compile(graph, "riscv32")).run(*inputs)
    return found if isinstance(found, list) else [found]


@pytest.mark.process
def test_a_scalar_of_an_empty_shape(litert: Any) -> None:
    """RESHAPE to the shape [], a constant without elements and without buffer."""
    x, y = Tensor("x", (1, 1), FLOAT), Tensor("y", (), FLOAT)
    shape = Tensor("shape", (0,), np.dtype(np.int32), None, np.zeros(0, np.int32))
    z = Tensor("z", (), FLOAT)
    ops = [
        Op("RESHAPE", "reshape_0", [x, shape], [y]),
        Op("ADD", "add_1", [y, y], [z], Elementwise(), 1),
    ]
    data = write_tflite(Graph("scalar", [x], [z], ops))
    value = np.array([[1.5]], np.float32)
    graph = read_tflite(data)
    for found in (litert(data, [value]), run_reference(graph, [value]), on_core(graph, value)):
        assert found[0].shape == ()
        assert found[0] == 3.0


@pytest.mark.process
def test_outputs_that_nothing_computes(litert: Any) -> None:
    """An input, a constant, and one tensor twice, beside what is computed."""
    builder = GraphBuilder("ends")
    x = builder.input((1, 3), np.float32)
    constant = builder.constant(np.array([[1, 2, 3]], np.float32))
    y = builder.add("ADD", x, constant, attributes=Elementwise())
    data = write_tflite(builder.graph(x, y, constant, y))
    value = np.array([[5, 6, 7]], np.float32)
    graph = read_tflite(data)
    added = constant.data
    assert added is not None
    wanted = [value, value + added, added, value + added]
    for found in (run_reference(graph, [value]), on_core(graph, value)):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.process
def test_constants_of_float16(litert: Any) -> None:
    """Converters put a DEQUANTIZE behind each, which LiteRT runs once."""
    rng = np.random.default_rng(3)
    x = Tensor("x", (1, 4), FLOAT)
    parts = {"weights": (3, 4), "bias": (3,)}
    halves = {
        name: Tensor(name, shape, np.dtype(np.float16), None, rng.normal(size=shape).astype("f2"))
        for name, shape in parts.items()
    }
    singles = {name: Tensor(f"{name}_32", shape, FLOAT) for name, shape in parts.items()}
    y = Tensor("y", (1, 3), FLOAT)
    ops = [
        *(Op("DEQUANTIZE", f"op_{name}", [halves[name]], [singles[name]]) for name in parts),
        Op("FULLY_CONNECTED", "fc", [x, *singles.values()], [y], FullyConnected(), 2),
    ]
    data = write_tflite(Graph("halves", [x], [y], ops))
    graph = read_tflite(data)
    assert [op.kind for op in graph.ops] == ["FULLY_CONNECTED"]
    assert graph.expanded_bytes == 2 * (12 + 3)
    value = rng.normal(size=(1, 4)).astype(np.float32)
    wanted = litert(data, [value])[0]
    for found in (run_reference(graph, [value]), on_core(graph, value)):
        np.testing.assert_allclose(found[0], wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.process
def test_the_largest_elements(litert: Any) -> None:
    """TOPK_V2, whose number is an operand; of equal elements the first comes first."""
    x = Tensor("x", (2, 6), np.dtype(np.int8), quantization(0.5, 3))
    count = Tensor("k", (), np.dtype(np.int32), None, np.array(4, np.int32))
    best = Tensor("best", (2, 4), np.dtype(np.int8), quantization(0.5, 3))
    places = Tensor("places", (2, 4), np.dtype(np.int32))
    op = Op("TOPK_V2", "top", [x, count], [best, places], TopK(4))
    data = write_tflite(Graph("top", [x], [best, places], [op]))
    value = np.array([[1, 7, 7, -9, 7, 0], [-128, 127, 3, 3, -1, -1]], np.int8)
    graph = read_tflite(data)
    for found in (run_reference(graph, [value]), on_core(graph, value)):
        for ours, theirs in zip(found, litert(data, [value]), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_only_the_first_of_several_signatures_is_read() -> None:
    """A subgraph that nothing runs may hold what is not supported."""
    builder = GraphBuilder("first")
    x = builder.input((2, 3), np.float32)
    kept = builder.state("kept", np.ones((2,), np.float32))
    mean = builder.add("MEAN", x, attributes=Mean((1,), False))
    y = builder.add("ADD", mean, kept, attributes=Elementwise())
    builder.becomes(kept, mean)
    graph = read_tflite(write_tflite(builder.graph(y)))
    assert [op.kind for op in graph.ops] == ["MEAN", "ADD"]


def test_damaged_files_with_states_are_refused_in_one_line() -> None:
    builder = GraphBuilder("accumulator")
    x = builder.input((1, 3), np.float32)
    total = builder.state("total", np.ones((1, 3), np.float32))
    after = builder.add("ADD", total, x, attributes=Elementwise())
    builder.becomes(total, after)
    small = write_tflite(builder.graph(after))
    rng = random.Random(2)
    refused = 0
    for _ in range(1000):
        data = bytearray(small)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(8, len(data))
            data[at] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
        try:
            read_tflite(bytes(data))
        except ModelError as error:
            assert "\n" not in str(error)
            refused += 1
    assert refused > 300


def test_a_network_that_computes_nothing_is_refused() -> None:
    x = Tensor("x", (1, 3), FLOAT)
    with pytest.raises(ModelError, match="has no operator"):
        read_tflite(write_tflite(Graph("nothing", [x], [x], [])))


@pytest.mark.parametrize(
    "part", [slice(1, 6, 2), slice(-3, None, 1), slice(6, 1, -2), slice(2, 20)]
)
def test_a_slice_whose_ends_count_from_its_begin(
    monkeypatch: pytest.MonkeyPatch, litert: Any, part: slice
) -> None:
    """STRIDED_SLICE with ``offset``: the end is so many elements after the begin."""
    begin, end, step = part.indices(8)
    builder = GraphBuilder("offset")
    x = builder.input((8, 3), np.float32)
    attributes = StridedSlice(((begin, end, step), (0, 3, 1)))
    graph = builder.graph(builder.add("STRIDED_SLICE", x, attributes=attributes))
    first, last = graph.ops[0].input(1), graph.ops[0].input(2)
    assert first.data is not None and last.data is not None
    first.data[0] = part.start
    last.data[0] = end - begin
    options = ("StridedSliceOptions", lambda op: {"Offset": True})
    monkeypatch.setitem(tflite_options_writer._WRITERS, "STRIDED_SLICE", options)
    data = write_tflite(graph)
    value = np.arange(24, dtype=np.float32).reshape(8, 3)
    (found,) = run_reference(read_tflite(data), [value])
    np.testing.assert_array_equal(found, value[part])
    np.testing.assert_array_equal(found, litert(data, [value])[0])
