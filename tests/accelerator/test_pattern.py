"""Patterns against small graphs built by hand."""

from __future__ import annotations

import numpy as np

from covp.graph.graph import Graph, Op, Tensor
from covp.graph.pattern import Pattern, constant, conv2d, op, optional, wildcard


def tensor(name: str, data: np.ndarray | None = None) -> Tensor:
    return Tensor(name, (1, 4, 4, 2), np.dtype(np.int8), data=data)


def weights(name: str) -> Tensor:
    return tensor(name, np.zeros((2, 1, 1, 2), np.int8))


def residual() -> Graph:
    """conv -> relu -> add with the graph's input; add's inputs are (input, relu)."""
    x, c, r, y = (tensor(name) for name in ("x", "c", "r", "y"))
    conv = Op("CONV_2D", "conv", [x, weights("w"), None], [c])
    relu = Op("RELU", "relu", [c], [r])
    add = Op("ADD", "add", [x, r], [y])
    return Graph("residual", [x], [y], [conv, relu, add])


CONV = conv2d(wildcard("input"), constant("weights"))
CHAIN = Pattern("chain", op("ADD", op("RELU", CONV), wildcard("skip")))


def test_a_chain_is_found_from_its_last_operator_in_either_order_of_add() -> None:
    graph = residual()
    match = CHAIN.match(graph, graph.ops[2])
    assert match is not None
    assert [member.name for member in match.ops] == ["conv", "relu", "add"]
    assert match.op.name == "add"
    assert match.bindings["skip"] is graph.inputs[0]
    assert match.bindings["weights"].name == "w"
    assert match.inputs == (graph.inputs[0],)
    assert match.outputs == (graph.outputs[0],)
    assert CHAIN.match(graph, graph.ops[1]) is None


def test_an_inner_value_that_others_read_prevents_the_match() -> None:
    graph = residual()
    graph.outputs.append(graph.ops[0].output)
    assert CHAIN.match(graph, graph.ops[2]) is None
    graph = residual()
    graph.ops.append(Op("RELU", "spy", [graph.ops[1].output], [tensor("z")]))
    assert CHAIN.match(graph, graph.ops[2]) is None


def test_one_name_stands_for_one_tensor() -> None:
    graph = residual()
    same = Pattern("same", op("ADD", op("RELU", CONV), wildcard("input")))
    assert same.match(graph, graph.ops[2]) is not None
    other = tensor("other")
    graph.inputs.append(other)
    graph.ops[2].inputs[0] = other
    assert same.match(graph, graph.ops[2]) is None


def test_alternatives_predicates_and_optional_inputs() -> None:
    graph = residual()
    conv = graph.ops[0]
    either = Pattern("either", op("TANH") | op("RELU") | CONV)
    assert either.node.kinds() == {"TANH", "RELU", "CONV_2D"}
    assert either.match(graph, conv) is not None
    assert either.match(graph, graph.ops[1]) is not None
    assert either.match(graph, graph.ops[2]) is None
    small = Pattern("small", conv2d(wildcard(predicate=lambda t: t.size < 9), constant()))
    assert small.match(graph, conv) is None
    named = Pattern("named", op("CONV_2D", predicate=lambda o: o.name == "conv"))
    assert named.match(graph, conv) is not None
    with_bias = Pattern("bias", conv2d(wildcard(), constant(), constant("bias")))
    assert with_bias.match(graph, conv) is None
    maybe = Pattern("maybe", conv2d(wildcard(), constant(), optional("bias")))
    assert maybe.match(graph, conv) is not None
    conv.inputs[2] = weights("b")
    assert with_bias.match(graph, conv) is not None
    found = maybe.match(graph, conv)
    assert found is not None and found.bindings["bias"].name == "b"


def test_constants_and_surplus_inputs_are_told_apart() -> None:
    graph = residual()
    graph.ops[0].inputs[1] = tensor("computed")
    assert Pattern("conv", CONV).match(graph, graph.ops[0]) is None
    add = graph.ops[2]
    assert Pattern("one", op("ADD", wildcard())).match(graph, add) is None
    assert Pattern("any", op("ADD")).match(graph, add) is not None
