"""Minimize transposes: pairs that cancel are removed, the others sink below the rest.

Operators are visited in order. One whose inputs are transposes in one order computes on what lies
before them instead, and a transpose follows it. What would need a transpose of its own stays. A way
of sinking is taken only where it leaves less to move.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from covp.graph.attributes import Transpose
from covp.graph.graph import Graph, Op, Tensor, copy_graph
from covp.graph.passes.axis_orders import (
    Order,
    compose,
    data_positions,
    moves_nothing,
    permute,
    undoes,
)

Choice = Callable[[Graph, Op, list[Op], Order], bool]
"""Rule that decides if transposes before an operator become one of that order after it."""


def remove_transposes(graph: Graph) -> None:
    """Cancel TRANSPOSE pairs, and sink the others where fewer elements are then moved."""
    if any(op.kind == "TRANSPOSE" for op in graph.ops):
        best = min((_sink_all(graph, choice) for choice in (_always, _fewer)), key=_cost)
        while _cost(best) < _cost(graph):
            graph.ops = best.ops
            best = _sink_all(graph, _fewer)


def reshape_for_transposes(graph: Graph) -> None:
    """Replace each TRANSPOSE that only moves axes of extent 1 by a RESHAPE, which is free."""
    for op in graph.ops:
        if op.kind == "TRANSPOSE" and not graph.is_result(op.output):
            source = op.input(0)
            if moves_nothing(source.shape, _order(op)) and source.data is None:
                op.kind, op.attributes, op.inputs = "RESHAPE", None, [source]


def transpose(source: Tensor, permutation: tuple[int, ...], name: str, index: int) -> Op:
    """Return a TRANSPOSE with a new output tensor; output axis i is input axis permutation[i].

    Quantization along an axis is not supported: activations have one scale.
    """
    shape = tuple(source.shape[axis] for axis in permutation)
    output = Tensor(f"{source.name}_{name}", shape, source.dtype, source.quantization)
    return Op("TRANSPOSE", name, [source], [output], Transpose(permutation), index)


def _cost(graph: Graph) -> tuple[int, int]:
    """Return how many elements transposes move, and how many transposes there are."""
    orders = [op for op in graph.ops if op.kind == "TRANSPOSE"]
    moved = [op for op in orders if not moves_nothing(op.input(0).shape, _order(op))]
    return sum(op.output.size for op in moved), len(orders)


def _order(op: Op) -> Order:
    order: Order = op.attributes.permutation
    return order


def _always(graph: Graph, op: Op, sources: list[Op], order: Order) -> bool:
    return True


def _fewer(graph: Graph, op: Op, sources: list[Op], order: Order) -> bool:
    """Return whether fewer transposes are left."""
    removed = sum(graph.consumers(source.output) == [op] for source in sources)
    readers = graph.consumers(op.output)
    cancelled = sum(
        reader.kind == "TRANSPOSE" and undoes(_order(reader), order) for reader in readers
    )
    return removed + cancelled > int(cancelled < len(readers))


def _sink_all(graph: Graph, choice: Choice) -> Graph:
    """Return a copy of the graph with transposes sunk where the choice allows it."""
    return _Sinking(copy_graph(graph), choice).graph


class _Sinking:
    """One walk over a graph, which it changes."""

    def __init__(self, graph: Graph, choice: Choice) -> None:
        self.graph = graph
        self._choice = choice
        self._before = graph.ops
        self._ops: list[Op] = []
        self._same: dict[int, Tensor] = {}  # what is read in the place of a tensor
        self._made: dict[tuple[int, Order], Op] = {}  # by input and order
        self._turned: dict[int, Op] = {}  # by output
        self._constants: dict[tuple[int, Order, int], Tensor] = {}
        for op in self._before:
            op.inputs = [t if t is None else self._same.get(id(t), t) for t in op.inputs]
            if op.kind == "TRANSPOSE":
                self._transpose(op)
            elif not self._sink(op):
                self._ops.append(op)
        graph.ops = self._drop_unread()

    def _drop_unread(self) -> list[Op]:
        """Return the operators without transposes that nothing reads."""
        read: set[int] = {id(tensor) for tensor in self.graph.results}
        used = []
        for op in reversed(self._ops):
            if op.kind != "TRANSPOSE" or id(op.output) in read:
                used.append(op)
                read |= {id(tensor) for tensor in op.inputs}
        return used[::-1]

    def _transpose(self, op: Op) -> None:
        """Transpose a tensor, joined with a transpose before it; reuse an equal one."""
        inner, order = op.input(0), _order(op)
        first = self._turned.get(id(inner))
        if first is not None:
            inner, order = first.input(0), compose(_order(first), order)
        result = self.graph.is_result(op.output)
        if not result and order == tuple(range(len(order))):
            self._same[id(op.output)] = inner
        elif not result and (id(inner), order) in self._made:
            self._same[id(op.output)] = self._made[id(inner), order].output
        elif result and order == tuple(range(len(order))):
            self._ops.append(op)  # an output needs memory of its own
        else:
            self._add(replace(op, inputs=[inner], attributes=Transpose(order)))

    def _add(self, op: Op) -> None:
        self._ops.append(op)
        self._turned[id(op.output)] = op
        self._made.setdefault((id(op.input(0)), _order(op)), op)

    def _sink(self, op: Op) -> bool:
        """Compute on what is before the transposes, if any; return whether that was done."""
        positions = [p for p in data_positions(op) if op.inputs[p] is not None]
        found = [self._turned.get(id(op.inputs[p])) for p in positions]
        sources = [source for source in found if source is not None]
        if not sources or any(t.quantization and t.quantization.per_channel for t in op.outputs):
            return False
        order = _order(sources[0])
        rank = len(order)
        inner = [self._inner(op.input(p), order, rank) for p in positions]
        change = permute(op, order)
        if change is None or any(t is None for t in inner):
            return False
        if not self._choice(self.graph, op, sources, change.order):
            return False
        for position, tensor in zip(positions, inner, strict=True):
            op.inputs[position] = tensor
        if op.kind == "RESHAPE":
            op.inputs = op.inputs[:1]
        op.attributes = change.attributes
        self._ops.append(op)
        self._turn_outputs(op, change.order)
        return True

    def _turn_outputs(self, op: Op, order: Order) -> None:
        if order == tuple(range(len(order))):
            return
        outer = op.outputs
        op.outputs = []
        for result in outer:
            shape = tuple(result.shape[order.index(axis)] for axis in range(len(order)))
            name = f"{result.name}_before_{op.name}"
            op.outputs.append(Tensor(name, shape, result.dtype, result.quantization))
        for number, (inner, result) in enumerate(zip(op.outputs, outer, strict=True)):
            name = f"{op.name}_transpose{f'_{number}' if number else ''}"
            self._add(Op("TRANSPOSE", name, [inner], [result], Transpose(order), op.index))

    def _inner(self, tensor: Tensor, order: Order, rank: int) -> Tensor | None:
        """Return the tensor before a transpose of that order; None where it does not exist."""
        source = self._turned.get(id(tensor))
        if source is not None and _order(source) == order:
            return source.input(0)
        if tensor.data is not None and len(tensor.shape) <= rank:
            return self._constant(tensor, order, rank)
        if tensor.size == 1 and len(tensor.shape) < rank:
            return tensor
        back = self._made.get((id(tensor), tuple(int(axis) for axis in np.argsort(order))))
        return back.output if back is not None else None

    def _constant(self, tensor: Tensor, order: Order, rank: int) -> Tensor:
        """Return a constant, broadcast from the right, in the order before a transpose."""
        if tensor.size == 1:
            return tensor
        key = id(tensor), order, rank
        if key not in self._constants:
            assert tensor.data is not None
            whole = tensor.data.reshape((1,) * (rank - tensor.data.ndim) + tensor.data.shape)
            data = np.ascontiguousarray(whole.transpose(np.argsort(order)))
            name = f"{tensor.name}_{''.join(map(str, order))}"
            self._constants[key] = replace(tensor, name=name, shape=data.shape, data=data)
        return self._constants[key]
