"""As few transposes as possible: pairs that undo each other go, the others sink behind sums."""

from __future__ import annotations

from covp.graph.attributes import Transpose
from covp.graph.graph import Graph, Op, Tensor

ELEMENTWISE = frozenset({"ADD", "SUB", "MUL", "RELU", "RELU6", "LEAKY_RELU", "LOGISTIC", "TANH"})
"""Operators that do not care for the order of the elements, if it is the same in all inputs."""


def remove_transposes(graph: Graph) -> None:
    """Cancel TRANSPOSE pairs and move transposes behind elementwise operators, until none moves.

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
        if [order[axis] for axis in op.attributes.permutation] != list(range(len(order))):
            continue
        if any(op.output is output for output in graph.outputs):
            continue
        _replace(graph, op.output, first.input(0))
        graph.ops.remove(op)
        if not graph.consumers(first.output) and not any(first.output is o for o in graph.outputs):
            graph.ops.remove(first)
        return True
    return False


def _sink_one(graph: Graph) -> bool:
    for op in graph.ops:
        if op.kind not in ELEMENTWISE or any(op.output is output for output in graph.outputs):
            continue
        inputs = [t for t in op.inputs if t is not None and not (t.constant and t.size == 1)]
        sources = [_transposed_by(graph, tensor) for tensor in inputs]
        moved = {id(source): source for source in sources if source is not None}
        orders = {source.attributes.permutation for source in moved.values()}
        if None in sources or len(orders) != 1 or len({t.shape for t in inputs}) != 1:
            continue
        (order,) = orders
        if not _worth_it(graph, op, list(moved.values()), order):
            continue
        _sink(graph, op, order)
        return True
    return False


def _worth_it(graph: Graph, op: Op, moved: list[Op], order: tuple[int, ...]) -> bool:
    """Whether fewer transposes are left: those only this operator reads, those that cancel then."""
    gone = sum(graph.consumers(source.output) == [op] for source in moved)
    undone = [
        reader
        for reader in graph.consumers(op.output)
        if reader.kind == "TRANSPOSE"
        and [order[axis] for axis in reader.attributes.permutation] == list(range(len(order)))
    ]
    stays = len(undone) < len(graph.consumers(op.output))
    return gone + len(undone) > int(stays)


def _sink(graph: Graph, op: Op, order: tuple[int, ...]) -> None:
    result = op.output
    for position, tensor in enumerate(op.inputs):
        source = _transposed_by(graph, tensor) if tensor is not None else None
        if source is not None:
            op.inputs[position] = source.input(0)
            if not graph.consumers(source.output) and not any(
                source.output is output for output in graph.outputs
            ):
                graph.ops.remove(source)
    shape = tuple(result.shape[order.index(axis)] for axis in range(len(order)))
    inner = Tensor(f"{result.name}_before_{op.name}", shape, result.dtype, result.quantization)
    op.outputs = [inner]
    behind = Op("TRANSPOSE", f"{op.name}_transpose", [inner], [result], Transpose(order), op.index)
    graph.ops.insert(graph.ops.index(op) + 1, behind)


def _transposed_by(graph: Graph, tensor: Tensor) -> Op | None:
    producer = graph.producer(tensor)
    return producer if producer is not None and producer.kind == "TRANSPOSE" else None


def _replace(graph: Graph, old: Tensor, new: Tensor) -> None:
    for reader in graph.consumers(old):
        reader.inputs = [new if tensor is old else tensor for tensor in reader.inputs]
