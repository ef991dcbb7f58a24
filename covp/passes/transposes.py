"""As few transposes as possible: pairs that cancel are removed, the others sink below sums."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from covp.graph.attributes import Transpose
from covp.graph.graph import Graph, Op, Tensor

ELEMENTWISE = frozenset(
    {
        *("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "PRELU"),
        *("RELU", "RELU6", "LEAKY_RELU", "ELU", "LOGISTIC", "TANH", "HARD_SWISH", "GELU"),
        *("ABS", "NEG", "EXP", "LOG", "SQRT", "RSQRT", "SQUARE", "ERF"),
        *("QUANTIZE", "DEQUANTIZE", "LOOKUP_TABLE", "CAST"),
    }
)
"""Operators for which the order of the elements is irrelevant, if all inputs have the same."""
_JOINING = "CONCATENATION"
"""As those, but for its axis."""


def remove_transposes(graph: Graph) -> None:
    """Cancel TRANSPOSE pairs and move transposes after elementwise operators, until none moves.

    A transpose is moved only where that leaves fewer of them.
    """
    while _cancel_one(graph) or _sink_one(graph):
        pass


def transpose(source: Tensor, permutation: tuple[int, ...], name: str, index: int) -> Op:
    """A TRANSPOSE with a new output tensor; output axis i is input axis permutation[i].

    Quantization along an axis is not supported: activations have one scale.
    """
    shape = tuple(source.shape[axis] for axis in permutation)
    output = Tensor(f"{source.name}_{name}", shape, source.dtype, source.quantization)
    return Op("TRANSPOSE", name, [source], [output], Transpose(permutation), index)


def _cancel_one(graph: Graph) -> bool:
    for op in graph.ops:
        first = _transposed_by(graph, op.input(0)) if op.kind == "TRANSPOSE" else None
        if first is None:
            continue
        order = first.attributes.permutation
        if not _undoes(op.attributes.permutation, order):
            continue
        if graph.is_result(op.output):
            continue
        _replace(graph, op.output, first.input(0))
        graph.ops.remove(op)
        if not graph.consumers(first.output) and not graph.is_result(first.output):
            graph.ops.remove(first)
        return True
    return False


def _sink_one(graph: Graph) -> bool:
    for op in graph.ops:
        sources = _common_transposes(graph, op)
        if sources and _leaves_fewer(graph, op, sources):
            _sink(graph, op, sources[0].attributes.permutation)
            return True
    return False


def _common_transposes(graph: Graph, op: Op) -> list[Op]:
    """The transposes before an elementwise operator, if one after it could replace them all."""
    if op.kind not in ELEMENTWISE | {_JOINING} or graph.is_result(op.output):
        return []
    rank = len(op.output.shape)
    inputs = [t for t in op.inputs if t is not None and not _may_turn(t, rank)]
    found = {id(t): _transposed_by(graph, t) for t in inputs}
    sources = [source for source in found.values() if source is not None]
    orders = {source.attributes.permutation for source in sources}
    alike = len(orders) == 1 and {len(t.shape) for t in inputs} == {rank}
    return sources if alike and len(sources) == len(found) else []


def _may_turn(tensor: Tensor, rank: int) -> bool:
    """Whether it is a constant that can be transposed now."""
    return tensor.constant and (tensor.size == 1 or len(tensor.shape) == rank)


def _leaves_fewer(graph: Graph, op: Op, sources: list[Op]) -> bool:
    """Whether fewer transposes are left when those before an operator become one after it."""
    order = sources[0].attributes.permutation
    removed = sum(graph.consumers(source.output) == [op] for source in sources)
    readers = graph.consumers(op.output)
    cancelled = sum(
        reader.kind == "TRANSPOSE" and _undoes(reader.attributes.permutation, order)
        for reader in readers
    )
    return removed + cancelled > int(cancelled < len(readers))


def _undoes(second: tuple[int, ...], first: tuple[int, ...]) -> bool:
    """Whether a permutation after another leaves the axes as they were."""
    return [first[axis] for axis in second] == list(range(len(first)))


def _sink(graph: Graph, op: Op, order: tuple[int, ...]) -> None:
    result = op.output
    for position, tensor in enumerate(op.inputs):
        source = _transposed_by(graph, tensor) if tensor is not None else None
        if tensor is not None and tensor.data is not None and len(tensor.shape) == len(order):
            op.inputs[position] = _turned(tensor, order)
        if source is not None:
            op.inputs[position] = source.input(0)
            if not graph.consumers(source.output) and not graph.is_result(source.output):
                graph.ops.remove(source)
    shape = tuple(result.shape[order.index(axis)] for axis in range(len(order)))
    inner = Tensor(f"{result.name}_before_{op.name}", shape, result.dtype, result.quantization)
    op.outputs = [inner]
    if op.kind == _JOINING:
        op.attributes = replace(op.attributes, axis=order[op.attributes.axis])
    below = Op("TRANSPOSE", f"{op.name}_transpose", [inner], [result], Transpose(order), op.index)
    graph.ops.insert(graph.ops.index(op) + 1, below)


def _turned(tensor: Tensor, order: tuple[int, ...]) -> Tensor:
    """A constant in the order before a transpose."""
    assert tensor.data is not None
    data = np.ascontiguousarray(tensor.data.transpose(np.argsort(order)))
    return replace(tensor, name=f"{tensor.name}_turned", shape=data.shape, data=data)


def _transposed_by(graph: Graph, tensor: Tensor) -> Op | None:
    producer = graph.producer(tensor)
    return producer if producer is not None and producer.kind == "TRANSPOSE" else None


def _replace(graph: Graph, old: Tensor, new: Tensor) -> None:
    for reader in graph.consumers(old):
        reader.inputs = [new if tensor is old else tensor for tensor in reader.inputs]
