"""Transposes that undo each other go, the others sink; the values stay."""

from __future__ import annotations

import numpy as np
import pytest

from covp.graph.attributes import Concatenation, Elementwise, FullyConnected, Mean, Pad, Transpose
from covp.graph.graph import Graph, Op, Tensor, copy_graph
from covp.graph.passes import run_passes
from covp.graph.passes.transposes import remove_transposes, reshape_for_transposes
from covp.graph.reference import run_reference
from covp.graph.zoo.builder import GraphBuilder
from covp.testing import ConvCase

FORTH, BACK = (0, 3, 1, 2), (0, 2, 3, 1)


class Builder:
    """A graph of float operators on NHWC and NCHW tensors."""

    def __init__(self) -> None:
        self.x = self.tensor((1, 4, 5, 3))
        self.ops: list[Op] = []

    def tensor(self, shape: tuple[int, ...]) -> Tensor:
        return Tensor(f"t{id(object())}_{np.random.random()}", shape, np.dtype(np.float32))

    def add(self, kind: str, *inputs: Tensor, attributes: object = None) -> Tensor:
        shape = inputs[0].shape
        if isinstance(attributes, Transpose):
            shape = tuple(shape[axis] for axis in attributes.permutation)
        out = self.tensor(shape)
        self.ops.append(Op(kind, f"op{len(self.ops)}", list(inputs), [out], attributes))
        return out

    def move(self, x: Tensor, order: tuple[int, ...]) -> Tensor:
        return self.add("TRANSPOSE", x, attributes=Transpose(order))

    def graph(self, *outputs: Tensor) -> Graph:
        return Graph("g", [self.x], list(outputs), self.ops)


def transposes_left(graph: Graph) -> int:
    """After the pass, whose values are checked."""
    changed = copy_graph(graph)
    remove_transposes(changed)
    x = np.random.default_rng(0).standard_normal(graph.inputs[0].shape).astype(np.float32)
    for got, wanted in zip(run_reference(changed, [x]), run_reference(graph, [x]), strict=True):
        np.testing.assert_array_equal(got, wanted)
    return sum(op.kind == "TRANSPOSE" for op in changed.ops)


def test_a_pair_cancels_and_another_order_is_joined() -> None:
    b = Builder()
    y = b.add("RELU", b.move(b.move(b.x, FORTH), BACK))
    assert transposes_left(b.graph(y)) == 0
    b = Builder()
    y = b.add("RELU", b.move(b.move(b.x, FORTH), FORTH))
    assert transposes_left(b.graph(y)) == 1


def test_a_transposed_output_of_the_graph_stays() -> None:
    b = Builder()
    assert transposes_left(b.graph(b.move(b.move(b.x, FORTH), BACK))) == 2


def test_what_others_read_stays() -> None:
    b = Builder()
    inner = b.move(b.x, FORTH)
    y = b.add("RELU", b.move(inner, BACK))
    assert transposes_left(b.graph(y, b.add("TANH", inner))) == 1


def test_a_skip_connection_keeps_the_inner_layout() -> None:
    """conv, conv, add, conv in NCHW, as a residual block: one transpose in, one out."""
    b = Builder()

    def unit(x: Tensor) -> Tensor:
        return b.move(b.add("LOGISTIC", b.move(x, FORTH)), BACK)

    first = unit(b.x)
    second = unit(first)
    total = b.add("ADD", first, second, attributes=Elementwise("relu"))
    y = b.add("TANH", unit(total))
    # LOGISTIC stands for a convolution, but may be transposed itself: all of them go
    assert transposes_left(b.graph(y)) <= 2


def test_a_sum_of_which_one_side_is_transposed_is_left_alone() -> None:
    b = Builder()
    b.x = b.tensor((1, 4, 4, 4))
    y = b.add("ADD", b.move(b.x, FORTH), b.add("TANH", b.x), attributes=Elementwise())
    assert transposes_left(b.graph(b.add("RELU", y))) == 1


def test_a_transpose_sinks_below_chains_reductions_paddings_and_joins() -> None:
    b = Builder()
    scale = Tensor("scale", (3, 1, 1), np.dtype(np.float32), None, np.ones((3, 1, 1), np.float32))
    y = b.add("MUL", b.move(b.x, FORTH), scale, attributes=Elementwise())
    y = b.add("ADD", y, scale, attributes=Elementwise())
    assert transposes_left(b.graph(b.add("TANH", b.move(y, BACK)))) == 0

    def shaped(shape: tuple[int, ...]) -> Tensor:
        b.ops[-1].outputs = [b.tensor(shape)]
        return b.ops[-1].output

    b = Builder()
    parts = [b.add("TANH", b.move(b.x, FORTH)) for _ in range(2)]
    b.add("CONCATENATION", *parts, attributes=Concatenation(1))
    y = shaped((1, 6, 4, 5))
    b.add("PAD", y, attributes=Pad(((0, 0), (0, 0), (1, 2), (0, 3)), 0.0))
    assert transposes_left(b.graph(b.add("RELU", b.move(shaped((1, 6, 7, 8)), BACK)))) == 0

    b = Builder()
    b.add("MEAN", b.move(b.x, FORTH), attributes=Mean((2, 3), False))
    assert transposes_left(b.graph(b.add("RELU", shaped((1, 3))))) == 0


def test_a_transpose_of_unit_axes_is_a_reshape() -> None:
    b = Builder()
    b.x = b.tensor((1, 6, 7, 1))
    graph = b.graph(b.add("TANH", b.move(b.x, FORTH)))
    x = np.random.default_rng(0).standard_normal((1, 6, 7, 1)).astype(np.float32)
    (wanted,) = run_reference(graph, [x])
    reshape_for_transposes(graph)
    assert [op.kind for op in graph.ops] == ["RESHAPE", "TANH"]
    np.testing.assert_array_equal(run_reference(graph, [x])[0], wanted)


def test_vanilla_puts_two_transposes_around_a_chain() -> None:
    from covp.accelerator.registry import find_backend
    from covp.codegen.offload import split_graph

    first = ConvCase(dtype="float32", size=(5, 6), channels=(3, 4), kernel=(3, 3), same=True)
    graph = first.graph()
    for number in range(2):
        more = ConvCase(dtype="float32", size=(5, 6), channels=(4, 4), kernel=(3, 3), same=True)
        op = more.graph().ops[0]
        op.inputs[0] = graph.outputs[0]
        op.name = f"layer_{number}"
        op.output.name = f"y{number}"
        graph.ops.append(op)
        graph.outputs = [op.output]
    lowered, split = split_graph(graph, [find_backend("vanilla")])
    kinds = [op.kind for op in lowered.ops]
    assert kinds.count("TRANSPOSE") == 2
    assert [p.backend is not None for p in split.placements] == [False, True, True, True, False]


@pytest.mark.parametrize(("depth", "left"), [(16, 0), (8, 1)])
def test_the_weights_of_a_flattened_image_are_reordered(depth: int, left: int) -> None:
    """Not where the layer takes an image as several rows."""
    builder, rng = GraphBuilder("flat"), np.random.default_rng(0)
    x = builder.input((1, 2, 2, 4), np.dtype(np.float32))
    y = builder.add("TRANSPOSE", x, attributes=Transpose(FORTH))
    y = builder.add("RESHAPE", y, shape=(1, 16))
    weights = builder.constant(rng.integers(-9, 9, (3, depth)).astype(np.float32))
    graph = builder.graph(builder.add("FULLY_CONNECTED", y, weights, attributes=FullyConnected()))
    changed = run_passes(graph)
    value = rng.integers(-9, 9, (1, 2, 2, 4)).astype(np.float32)
    (got,), (wanted,) = run_reference(changed, [value]), run_reference(graph, [value])
    np.testing.assert_array_equal(got, wanted)
    assert sum(op.kind == "TRANSPOSE" for op in changed.ops) == left
