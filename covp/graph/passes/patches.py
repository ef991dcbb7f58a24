"""Patches: the first layers of a network are computed strip by strip, all of them for each strip.

So their large tensors never exist whole. A window that reaches above a strip reads rows of the
strip before, which are kept: nothing is computed twice, and the halos of patches cost copies only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from covp.graph.attributes import JoinedRows, RowsOf, StridedSlice
from covp.graph.cuts import can_be_cut, on_rows, row_bytes, window_of
from covp.graph.graph import Graph, Op, Strip, Tensor

_ALIGNMENT = 4
"""Divisor of the bytes of a row: kernels load words."""


@dataclass(frozen=True)
class Patches:
    """A plan to compute part of a network in patches.

    Attributes:
        depth: so many of its first operators are computed strip by strip.
        rows: of the last one's output in a strip.
        strips: how many there are.
    """

    depth: int
    rows: int
    strips: int


def find_patches(graph: Graph) -> Iterator[Patches]:
    """Yield each depth and each number of strips that a graph can be computed in."""
    for depth in _depths(graph):
        height, rows = graph.ops[depth - 1].output.shape[1], 0
        for count in range(height, 1, -1):
            if -(-height // count) != rows:
                rows = -(-height // count)
                yield Patches(depth, rows, -(-height // rows))


def patch(graph: Graph, patches: Patches) -> Graph:
    """Return a graph that computes the same, its first operators strip by strip.

    Args:
        graph: after covp's other passes; it stays as it is.
        patches: one of `find_patches`.
    """
    return _Roll(graph, patches).run()


def _depths(graph: Graph) -> Iterator[int]:
    """Yield how many first operators lead to one tensor, and can all be cut into rows."""
    if len(graph.inputs) != 1 or graph.states or graph.is_result(graph.inputs[0]):
        return
    inside, open_tensors = {id(graph.inputs[0])}, {id(graph.inputs[0])}
    readers: dict[int, int] = {}
    for op in graph.ops:
        for tensor in _read(op):
            readers[id(tensor)] = readers.get(id(tensor), 0) + 1
    for number, op in enumerate(graph.ops):
        read = _read(op)
        if not can_be_cut(op) or not read or any(id(tensor) not in inside for tensor in read):
            return
        if any(row_bytes(tensor) % _ALIGNMENT for tensor in (*read, op.output)):
            return
        for tensor in read:
            readers[id(tensor)] -= 1
            if not readers[id(tensor)] and not graph.is_result(tensor):
                open_tensors.discard(id(tensor))
        inside.add(id(op.output))
        open_tensors.add(id(op.output))
        if number and open_tensors == {id(op.output)}:
            yield number + 1


def _read(op: Op) -> list[Tensor]:
    """Return the tensors that an operator reads, each once."""
    found = {id(t): t for t in op.inputs if t is not None and not t.constant}
    return list(found.values())


@dataclass(frozen=True, eq=False)
class _Held:
    """Rows of a tensor that exist: from ``first`` on."""

    tensor: Tensor
    first: int

    @property
    def end(self) -> int:
        return self.first + self.tensor.shape[1]


class _Roll:
    """The strips of a graph, from the top to the bottom.

    Args:
        graph, patches: as of `patch`.
    """

    def __init__(self, graph: Graph, patches: Patches) -> None:
        self._graph, self._patches = graph, patches
        self._chain = graph.ops[: patches.depth]
        self._windows = {id(op): window_of(op) for op in self._chain}
        self._source, self._target = graph.inputs[0], self._chain[-1].output
        self._ops: list[Op] = []
        self._parts: list[Tensor] = []
        self._done = {id(op.output): 0 for op in self._chain}
        self._ends: dict[int, int] = {}
        self._held = {id(self._source): _Held(self._source, 0)}

    def run(self) -> Graph:
        """Return the graph."""
        height, rows = self._target.shape[1], self._patches.rows
        for end in range(rows, height + rows, rows):
            self._ends = self._find_ends(min(end, height))
            for op in self._chain:
                if self._done[id(op.output)] < self._ends[id(op.output)]:
                    self._compute(op)
        self._join(self._chain[-1], self._parts, self._target)
        return replace(self._graph, ops=[*self._ops, *self._graph.ops[self._patches.depth :]])

    def _find_ends(self, end: int) -> dict[int, int]:
        """Return one past the last row of each tensor that the target's rows need."""
        ends = dict(self._done) | {id(self._target): end}
        ends[id(self._source)] = 0
        for op in reversed(self._chain):
            wanted = ends[id(op.output)]
            reach = self._windows[id(op)].rows(0, wanted)[1] if wanted else 0
            for tensor in _read(op):
                ends[id(tensor)] = max(ends[id(tensor)], min(reach, tensor.shape[1]))
        return ends

    def _compute(self, op: Op) -> None:
        """Add an operator for the wanted rows that are missing, and the rows that it needs."""
        output = op.output
        first, end = self._done[id(output)], self._ends[id(output)]
        start, stop = self._windows[id(op)].rows(first, end - first)
        height = _read(op)[0].shape[1]
        top, bottom = max(0, -start), max(0, stop - height)
        views = {id(t): self._view(op, t, start + top, stop - bottom) for t in _read(op)}
        inputs = [t if t is None else views.get(id(t), t) for t in op.inputs]
        made = _rows_of(output, first, end)
        kept = self._held.get(id(output))
        head = None if kept is None else self._copy(op, kept, kept.first, " and more")
        part = on_rows(op, inputs, made, top, bottom)
        name = f"{op.name} rows {first} to {end - 1}"
        fields = {n: getattr(part, n) for n in Op.__dataclass_fields__ if n != "name"}
        self._ops.append(Strip(**fields, name=name, whole=op))
        self._done[id(output)] = end
        if output is self._target:
            self._parts.append(made)
        elif kept is None or head is None:
            self._held[id(output)] = _Held(made, first)
        else:
            whole = _rows_of(output, kept.first, end)
            self._join(op, [head, made], whole)
            self._held[id(output)] = _Held(whole, kept.first)
        for tensor in _read(op):
            self._drop(tensor)

    def _drop(self, tensor: Tensor) -> None:
        """Keep only the rows that later strips read, once this strip's readers are done."""
        readers = [op for op in self._chain if tensor in op.inputs]
        if tensor is self._source or any(
            self._done[id(op.output)] < self._ends[id(op.output)] for op in readers
        ):
            return
        held = self._held[id(tensor)]
        first = min(
            self._windows[id(op)].rows(self._done[id(op.output)], 1)[0]
            if self._done[id(op.output)] < op.output.shape[1]
            else tensor.shape[1]
            for op in readers
        )
        if first >= held.end:
            del self._held[id(tensor)]
        elif first > held.first:
            writer = next(op for op in self._chain if op.output is tensor)
            copy = self._copy(writer, held, first, " kept")
            self._held[id(tensor)] = _Held(copy, first)

    def _view(self, op: Op, tensor: Tensor, start: int, stop: int) -> Tensor:
        """Return rows of a tensor, which are read where they are."""
        held = self._held[id(tensor)]
        if (start, stop) == (held.first, held.end):
            return held.tensor
        at = self._done[id(op.output)]
        made = _rows_of(tensor, start, stop, f" for {op.name} from {at}")
        slices = _slices(held.tensor, start - held.first, stop - held.first)
        name = f"{made.name} of {held.tensor.name}"
        self._ops.append(Op("STRIDED_SLICE", name, [held.tensor], [made], RowsOf(slices), op.index))
        return made

    def _copy(self, op: Op, held: _Held, first: int, why: str) -> Tensor:
        """Return a copy of the last rows that are held of an operator's output."""
        made = replace(held.tensor, name=f"{held.tensor.name}{why}", shape=_shape(held, first))
        attributes = StridedSlice(_slices(held.tensor, first - held.first, held.tensor.shape[1]))
        given, name = [held.tensor], f"copy {made.name}"
        self._ops.append(
            Strip("STRIDED_SLICE", name, [*given], [made], attributes, op.index, whole=op)
        )
        return made

    def _join(self, op: Op, parts: Sequence[Tensor], whole: Tensor) -> None:
        name = f"join {whole.name}"
        self._ops.append(Op("CONCATENATION", name, list(parts), [whole], JoinedRows(1), op.index))


def _shape(held: _Held, first: int) -> tuple[int, ...]:
    return (1, held.end - first, *held.tensor.shape[2:])


def _rows_of(tensor: Tensor, first: int, end: int, why: str = "") -> Tensor:
    name = f"{tensor.name} rows {first} to {end - 1}{why}"
    return replace(tensor, name=name, shape=(1, end - first, *tensor.shape[2:]))


def _slices(tensor: Tensor, first: int, end: int) -> tuple[tuple[int, int | None, int], ...]:
    _, _, width, channels = tensor.shape
    return ((0, 1, 1), (first, end, 1), (0, width, 1), (0, channels, 1))
