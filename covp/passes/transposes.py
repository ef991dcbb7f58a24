"""As few transposes as possible: pairs that cancel are removed, the others sink below operators."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from covp.graph.attributes import Concatenation, Mean, Pad, Transpose
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.ops.pointwise import POINTWISE

Order = tuple[int, ...]
ELEMENTWISE = frozenset(POINTWISE) | {
    *("ADD", "SUB", "MUL", "RELU", "RELU6", "LEAKY_RELU", "LOGISTIC", "TANH"),
    *("QUANTIZE", "DEQUANTIZE", "LOOKUP_TABLE", "CAST"),
}
"""Operators for which the order of the elements is irrelevant, if all inputs have the same."""


def remove_transposes(graph: Graph) -> None:
    """Cancel TRANSPOSE pairs and move transposes after other operators, until none moves.

    A transpose is moved only where that leaves no more of them.
    """
    while _cancel_one(graph) or _sink_one(graph):
        pass


def reshape_for_transposes(graph: Graph) -> None:
    """A TRANSPOSE that moves axes of extent 1 alone is a RESHAPE, which costs nothing."""
    for op in graph.ops:
        if op.kind == "TRANSPOSE" and not graph.is_result(op.output):
            shape = op.input(0).shape
            moved = [axis for axis in op.attributes.permutation if shape[axis] != 1]
            if moved == sorted(moved) and op.input(0).data is None:
                op.kind, op.attributes = "RESHAPE", None


def transpose(source: Tensor, permutation: Order, name: str, index: int) -> Op:
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
        if not sources:
            continue
        order = sources[0].attributes.permutation
        moved = _before(op, order)
        if moved is not None and _leaves_no_more(graph, op, sources, moved[1]):
            _sink(graph, op, order, *moved)
            return True
    return False


def _common_transposes(graph: Graph, op: Op) -> list[Op]:
    """The transposes before an operator, if one after it could replace them all."""
    if len(op.outputs) != 1 or graph.is_result(op.output):
        return []
    inputs = [t for t in op.inputs if t is not None and t.data is None]
    found = {id(t): _transposed_by(graph, t) for t in inputs}
    sources = [source for source in found.values() if source is not None]
    orders = {source.attributes.permutation for source in sources}
    return sources if len(orders) == 1 and len(sources) == len(found) else []


def _before(op: Op, order: Order) -> tuple[Any, Order] | None:
    """An operator moved before the transposes of its inputs.

    Returns:
        Its attributes there, and the permutation of its output; None where it cannot be moved.
    """
    a = op.attributes
    ranks = {len(t.shape) for t in op.inputs if t is not None and t.data is None}
    if ranks != {len(order)}:
        return None
    if op.kind in ELEMENTWISE and len(op.output.shape) == len(order):
        return a, order
    if op.kind == "CONCATENATION" and isinstance(a, Concatenation):
        return replace(a, axis=order[a.axis]), order
    if op.kind in ("PAD", "PADV2") and isinstance(a, Pad):
        paddings = tuple(a.paddings[order.index(axis)] for axis in range(len(order)))
        return replace(a, paddings=paddings), order
    if isinstance(a, Mean) and a.axes is not None:
        axes = a.axes
        below = order
        if not a.keep_dims:
            kept = [order[axis] for axis in range(len(order)) if axis not in axes]
            below = tuple(sorted(kept).index(axis) for axis in kept)
        return replace(a, axes=tuple(sorted(order[axis] for axis in axes))), below
    return None


def _leaves_no_more(graph: Graph, op: Op, sources: list[Op], below: Order) -> bool:
    """Whether no more transposes are left when those before become one after the operator."""
    removed = sum(
        graph.consumers(source.output) == [op] and not graph.is_result(source.output)
        for source in sources
    )
    readers = graph.consumers(op.output)
    cancelled = sum(
        reader.kind == "TRANSPOSE" and _undoes(reader.attributes.permutation, below)
        for reader in readers
    )
    needed = cancelled < len(readers) and list(below) != sorted(below)
    return removed + cancelled >= max(int(needed), 1)


def _undoes(second: Order, first: Order) -> bool:
    """Whether a permutation after another leaves the axes as they were."""
    return len(second) == len(first) and [first[axis] for axis in second] == list(range(len(first)))


def _sink(graph: Graph, op: Op, order: Order, attributes: Any, below: Order) -> None:
    result = op.output
    for position, tensor in enumerate(op.inputs):
        if tensor is None:
            continue
        if tensor.data is not None:
            op.inputs[position] = _constant_before(op, tensor, order)
            continue
        source = _transposed_by(graph, tensor)
        if source is not None:
            op.inputs[position] = source.input(0)
            if not graph.consumers(source.output) and not graph.is_result(source.output):
                graph.ops.remove(source)
    op.attributes = attributes
    if list(below) == sorted(below):
        return
    shape = tuple(result.shape[below.index(axis)] for axis in range(len(below)))
    inner = Tensor(f"{result.name}_before_{op.name}", shape, result.dtype, result.quantization)
    op.outputs = [inner]
    after = Op("TRANSPOSE", f"{op.name}_transpose", [inner], [result], Transpose(below), op.index)
    graph.ops.insert(graph.ops.index(op) + 1, after)


def _constant_before(op: Op, tensor: Tensor, order: Order) -> Tensor:
    """A constant operand, broadcast or not, with its axes as they are before the transpose."""
    assert tensor.data is not None
    if tensor.size == 1 and op.kind != "CONCATENATION":
        return tensor
    full = tensor.data.reshape((1,) * (len(order) - tensor.data.ndim) + tensor.data.shape)
    data = np.ascontiguousarray(np.transpose(full, [order.index(a) for a in range(len(order))]))
    name = f"{tensor.name}_before_{op.name}"
    return Tensor(name, data.shape, tensor.dtype, tensor.quantization, data)


def _transposed_by(graph: Graph, tensor: Tensor) -> Op | None:
    producer = graph.producer(tensor)
    return producer if producer is not None and producer.kind == "TRANSPOSE" else None


def _replace(graph: Graph, old: Tensor, new: Tensor) -> None:
    for reader in graph.consumers(old):
        reader.inputs = [new if tensor is old else tensor for tensor in reader.inputs]
