"""What files of others have: scalars, empty constants, outputs that nothing computes."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import covp
from covp.errors import ModelError
from covp.frontend.tflite import read_tflite
from covp.graph.attributes import Elementwise, Mean
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.reference import run_reference
from covp.zoo.builder import GraphBuilder
from covp.zoo.tflite_writer import write_tflite

FLOAT = np.dtype(np.float32)


def on_core(graph: Graph, *inputs: Any) -> list[Any]:
    with covp.Session("riscv32") as session:
        found = session.load(covp.compile(graph, "riscv32")).run(*inputs)
    return found if isinstance(found, list) else [found]


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
