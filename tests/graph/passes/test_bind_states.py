"""--state: an output that is the next inference's input is kept by the network."""

from __future__ import annotations

import numpy as np
import pytest

import covp
from covp.errors import UsageError
from covp.graph.attributes import Elementwise
from covp.graph.graph import Graph
from covp.graph.onnx import read_onnx
from covp.graph.passes.bind_states import bind_states
from covp.graph.reference import run_reference
from covp.graph.zoo.builder import GraphBuilder


def cell() -> Graph:
    """y = tanh(x + h), which is the next h, and 2 y."""
    builder = GraphBuilder("cell")
    x, h = (builder.input((1, 4), np.float32) for _ in range(2))
    y = builder.add("TANH", builder.add("ADD", x, h, attributes=Elementwise()))
    return builder.graph(builder.add("ADD", y, y, attributes=Elementwise()), y)


@pytest.mark.process
def test_a_bound_pair_is_fed_back() -> None:
    graph = cell()
    hidden = graph.outputs[1].name
    program = covp.compile(graph, "riscv32f", states={"input_1": hidden})
    rng, h = np.random.default_rng(1), np.zeros((1, 4), np.float32)
    executor = program.executor()
    with covp.Session("riscv32f") as session:
        module = session.load(program)
        for _ in range(4):
            x = rng.normal(0, 1, (1, 4)).astype(np.float32)
            wanted, h = run_reference(graph, [x, h])
            assert np.array_equal(executor.run(x)[0], wanted)
            assert np.allclose(module.run(x), wanted, atol=1e-6)
    assert (len(graph.inputs), len(graph.outputs), graph.states) == (2, 2, [])


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ({"h0": "tanh_1_out"}, "state h0: no input is named 'h0'; .*input_"),
        ({"input_1": "hn"}, "state input_1: no output is named 'hn'"),
        ({"input_0": "add_2_out", "input_1": "tanh_1_out"}, "all outputs are bound"),
    ],
)
def test_what_does_not_fit_is_an_error(pairs: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        bind_states(cell(), pairs)
    assert "\n" not in str(caught.value)


@pytest.mark.process
def test_an_output_that_is_the_input_itself_keeps_its_value() -> None:
    """By way of an Identity: it has the name that the file gives it."""
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    nodes = [
        helper.make_node("Add", ["x", "d"], ["y"]),
        helper.make_node("Identity", ["d"], ["dn"]),
    ]
    inputs, outputs = (
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, (1, 4)) for name in names]
        for names in (("x", "d"), ("y", "dn"))
    )
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    opsets = [helper.make_opsetid("", 18)]
    read = read_onnx(helper.make_model(graph, opset_imports=opsets, ir_version=8))
    program = covp.compile(read, "riscv32", states={"d": "dn"})
    x = np.array([[1, 2, 3, 4]], np.float32)
    with covp.Session("riscv32") as session:
        module = session.load(program)
        assert all(np.array_equal(module.run(x), x) for _ in range(3))
        assert not module.states()["d"].any()
