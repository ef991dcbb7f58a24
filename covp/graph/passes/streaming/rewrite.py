"""`Rewriter`: a graph on whole windows becomes one on new rows, along one axis of its input."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from covp.graph.attributes import StridedSlice
from covp.graph.graph import Graph, Op, State, Streaming, Tensor
from covp.graph.ops import macs
from covp.graph.ops.circular_buffer import CircularBuffer
from covp.graph.passes.streaming.rows import Plan, Refused, Rows, with_rows
from covp.graph.passes.streaming.rules import plan

_OPERANDS_IN_ATTRIBUTES = frozenset({"RESHAPE", "SLICE", "STRIDED_SLICE"})
"""Kinds whose other inputs repeat the attributes, for the shapes of the plain network."""


class Rewriter:
    """The rewriting of one graph.

    Args:
        graph: with one input.
        axis: of time in the input.
        hop: rows of it that are new in each inference.

    Attributes:
        streamed: operators so far that compute new rows from new rows.
    """

    def __init__(self, graph: Graph, axis: int, hop: int) -> None:
        self.graph, self.axis, self.hop = graph, axis, hop
        self.streamed = 0
        self._rows: dict[int, Rows] = {}
        self._made: dict[int, Tensor] = {}
        self._buffers: dict[tuple[int, int], Tensor] = {}
        self._ops: list[Op] = []
        self._states: list[State] = []
        self._whole = ""

    def run(self) -> Graph:
        """Return the graph on new rows.

        Raises:
            Refused: with the reason.
        """
        source = self.graph.inputs[0]
        rows = Rows(self.axis, source.shape[self.axis], 1, self.hop)
        if rows.extent <= self.hop:
            raise Refused(f"its {rows.extent} rows are no more than the {self.hop} new ones")
        self._keep(source, with_rows(source, rows, self.hop), rows)
        for op in self.graph.ops:
            self._rewrite(op)
        outputs = [self._made.get(id(tensor), tensor) for tensor in self.graph.outputs]
        ops = [replace(op, index=index) for index, op in enumerate(self._ops)]
        changed = replace(
            self.graph,
            inputs=[self._made[id(source)]],
            outputs=outputs,
            ops=ops,
            states=self._states,
            streaming=Streaming(self.graph, self.axis, self.hop),
        )
        if macs(changed) >= macs(self.graph):
            raise Refused(f"nothing is saved{self._whole}")
        return changed

    def _rewrite(self, op: Op) -> None:
        rows = [None if t is None else self._rows.get(id(t)) for t in op.inputs]
        found = Plan(tuple(0 for _ in rows), None, op.attributes)
        if any(rows):
            own = plan(op, rows, self.hop)
            self.streamed += own is not None
            found = own or self._from_whole(op, rows)
        inputs = [
            None if tensor is None else self._newest(tensor, count)
            for tensor, count in zip(op.inputs, found.needs, strict=True)
        ]
        if any(rows) and op.kind in _OPERANDS_IN_ATTRIBUTES:
            inputs = inputs[:1]
        outputs = []
        for tensor in op.outputs:
            made = tensor if found.rows is None else with_rows(tensor, found.rows, found.rows.new)
            self._keep(tensor, made, found.rows)
            outputs.append(made)
        self._ops.append(replace(op, inputs=inputs, outputs=outputs, attributes=found.attributes))

    def _from_whole(self, op: Op, rows: Sequence[Rows | None]) -> Plan:
        """Return the operator as it was, on buffers that hold all rows of a window."""
        self._whole = self._whole or f": {op.name} ({op.kind}) needs all rows of each window"
        return Plan(tuple(own.extent if own else 0 for own in rows), None, op.attributes)

    def _keep(self, tensor: Tensor, made: Tensor, rows: Rows | None) -> None:
        self._made[id(tensor)] = made
        if rows is not None:
            self._rows[id(tensor)] = rows

    def _newest(self, tensor: Tensor, count: int) -> Tensor:
        """Return the last rows of a tensor of the plain network, new or kept."""
        made, rows = self._made.get(id(tensor), tensor), self._rows.get(id(tensor))
        if rows is None or count == rows.new:
            return made
        key = id(tensor), count
        if key not in self._buffers:
            part = self._buffer if count > rows.new else self._last
            self._buffers[key] = part(tensor, made, rows, count)
        return self._buffers[key]

    def _buffer(self, tensor: Tensor, made: Tensor, rows: Rows, count: int) -> Tensor:
        """Return the last ``count`` rows, kept in a state, after the new ones were put into it."""
        producer = self.graph.producer(tensor)
        name = self._unused_name(f"{producer.name if producer else 'input'}_rows", count)
        before = replace(with_rows(tensor, rows, count), name=f"{name}_before")
        after = replace(before, name=f"{name}_after")
        zero = 0 if tensor.quantization is None else tensor.zero_point
        initial = np.full(before.shape, zero, before.dtype)
        self._states.append(State(name, before, after, initial))
        self._ops.append(
            Op("CIRCULAR_BUFFER", name, [before, made], [after], CircularBuffer(rows.axis))
        )
        return after

    def _unused_name(self, name: str, count: int) -> str:
        """Return a name that no operator has: several outputs of one operator may be kept."""
        taken = {op.name for op in (*self.graph.ops, *self._ops)}
        choices = (f"{name}_{number}" for number in itertools.count(count))
        return next(choice for choice in itertools.chain([name], choices) if choice not in taken)

    def _last(self, tensor: Tensor, made: Tensor, rows: Rows, count: int) -> Tensor:
        """Return the last of the new rows."""
        part = replace(with_rows(tensor, rows, count), name=f"{tensor.name}_last_{count}")
        bounds = [(0, extent, 1) for extent in made.shape]
        bounds[rows.axis] = (rows.new - count, rows.new, 1)
        attributes = StridedSlice(tuple(bounds))
        self._ops.append(Op("STRIDED_SLICE", part.name, [made], [part], attributes))
        return part
