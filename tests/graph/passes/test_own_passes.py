"""`covp.compile(..., passes=...)`: a user's graph passes, without an accelerator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import covp
from covp.errors import ModelError
from covp.graph.attributes import Elementwise
from covp.graph.graph import Graph
from covp.graph.zoo.builder import GraphBuilder


def model() -> Graph:
    """Four times a vector, in two operators."""
    builder = GraphBuilder("own")
    x = builder.input((1, 8), np.float32)
    y = builder.add("ADD", x, x, attributes=Elementwise())
    return builder.graph(builder.add("ADD", y, y, attributes=Elementwise()))


@pytest.mark.process
def test_passes_run_in_order_on_a_copy() -> None:
    seen: list[Any] = []

    def count(graph: Graph) -> Graph:
        seen.append(len(graph.ops))
        return graph

    def without_the_last(graph: Graph) -> Graph:
        graph.ops.pop()
        graph.outputs[:] = graph.ops[-1].outputs
        return graph

    graph = model()
    program = covp.compile(graph, "riscv32f", passes=[count, without_the_last, count])
    assert seen == [2, 1] * (len(seen) // 2), "as often as programs are considered"
    assert len(program.layers) == 1 and len(graph.ops) == 2
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(1, 8)
    with covp.Session("riscv32f") as session:
        assert np.array_equal(session.load(program).run(x), x + x)
    assert np.array_equal(program.reference([x])[0], 4 * x), "of the model as it was read"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [(lambda graph: None, "must return a Graph, not None"),
     (lambda graph: graph.nothing, "raised AttributeError")],
)  # fmt: skip
def test_a_pass_that_fails_is_one_line(wrong: Any, said: str) -> None:
    wrong.__name__ = "mine"
    with pytest.raises(ModelError, match=rf"mine\(\) {said}") as caught:
        covp.compile(model(), "riscv32f", passes=[wrong])
    assert "\n" not in str(caught.value)
