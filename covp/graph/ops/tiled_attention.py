"""ATTENTION_TILED: BATCH_MATMUL, scale, SOFTMAX, BATCH_MATMUL in one, made by a pass.

It computes to the bit what the operators that it stands for compute; only the memory between them
goes away. Inputs: queries, keys and values as they lie in memory, before any TRANSPOSE.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from covp.errors import ModelError
from covp.graph.graph import Op, Tensor
from covp.graph.index_map import Index, IndexMap, Reads, Space
from covp.graph.ops.definition import (
    OPS,
    Array,
    OpDefinition,
    Shape,
    definition,
    of_one_type,
)

Strides = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class TiledAttention:
    """The operators that one ATTENTION_TILED stands for.

    Attributes:
        ops: in execution order: TRANSPOSEs of the inputs, BATCH_MATMUL, perhaps MUL by a constant,
            SOFTMAX, BATCH_MATMUL, perhaps the TRANSPOSE of the output.
    """

    ops: tuple[Op, ...]

    def _of(self, kind: str) -> list[Op]:
        return [op for op in self.ops if op.kind == kind]

    @property
    def scores(self) -> Op:
        """Queries times keys."""
        return self._of("BATCH_MATMUL")[0]

    @property
    def scale(self) -> Op | None:
        """The MUL of the scores by a constant, if there is one."""
        return next(iter(self._of("MUL")), None)

    @property
    def softmax(self) -> Op:
        """Scores to weights of the values."""
        return self._of("SOFTMAX")[0]

    @property
    def mix(self) -> Op:
        """Weights times values."""
        return self._of("BATCH_MATMUL")[1]

    @cached_property
    def shape(self) -> AttentionShape:
        """Extents and strides."""
        return AttentionShape.of(self)


@dataclass(frozen=True)
class AttentionShape:
    """Extents, and the strides, in elements, with which the tensors are read where they lie.

    Attributes:
        batches: extents of the index space of independent attentions (batch, heads).
        queries, keys, depth, width: rows of the first product, its columns, its k; the columns of
            the second product.
        q, k, v, output: strides along each of ``batches``, then along queries and depth of q, keys
            and depth of k, keys and width of v, queries and width of the output.
    """

    batches: tuple[int, ...]
    queries: int
    keys: int
    depth: int
    width: int
    q: Strides
    k: Strides
    v: Strides
    output: Strides

    @staticmethod
    def of(attention: TiledAttention) -> AttentionShape:
        """Return the shape of an operator."""
        scores, mix = attention.scores, attention.mix
        *batches, queries, width = mix.output.shape
        keys = scores.output.shape[-1]
        q = _view(attention, scores.input(0), scores.attributes.adj_x)
        k = _view(attention, scores.input(1), not scores.attributes.adj_y)
        v = _view(attention, mix.input(1), mix.attributes.adj_y)
        return AttentionShape(
            tuple(batches),
            queries,
            keys,
            _extents(scores.input(0), scores.attributes.adj_x)[-1],
            width,
            _broadcast(q, batches),
            _broadcast(k, batches),
            _broadcast(v, batches),
            _result(attention),
        )


def _extents(tensor: Tensor, swapped: bool) -> Shape:
    *batch, rows, columns = tensor.shape
    return (*batch, columns, rows) if swapped else tensor.shape


def _dense(shape: Shape) -> Strides:
    return tuple(int(np.prod(shape[axis + 1 :], dtype=np.int64)) for axis in range(len(shape)))


def _view(attention: TiledAttention, tensor: Tensor, swapped: bool) -> tuple[Shape, Strides]:
    """Return the extents and strides of an operand, its transpositions undone."""
    before = next((op for op in attention.ops if op.output is tensor), None)
    strides = _dense(tensor.shape)
    if before is not None:
        source = _dense(before.input(0).shape)
        strides = tuple(source[axis] for axis in before.attributes.permutation)
    if swapped:
        strides = (*strides[:-2], strides[-1], strides[-2])
    return _extents(tensor, swapped), strides


def _broadcast(view: tuple[Shape, Strides], batches: Sequence[int]) -> Strides:
    shape, strides = view
    own = [0 if n == 1 else step for n, step in zip(shape[:-2], strides[:-2], strict=True)]
    return (*(0,) * (len(batches) - len(own)), *own, *strides[-2:])


def _result(attention: TiledAttention) -> Strides:
    """Return the strides of the output along the axes of the second product."""
    last = attention.ops[-1]
    strides = _dense(last.output.shape)
    if last.kind != "TRANSPOSE":
        return strides
    order = last.attributes.permutation
    return tuple(strides[order.index(axis)] for axis in range(len(order)))


def _reference(op: Op, values: Sequence[Array | None]) -> list[Array]:
    """Run the operators one after the other."""
    attributes: TiledAttention = op.attributes
    known = {id(tensor): value for tensor, value in zip(op.inputs, values, strict=True) if tensor}
    for part in attributes.ops:
        arguments = [None if t is None else known.get(id(t), t.data) for t in part.inputs]
        known[id(part.output)] = definition(part.kind).reference(part, arguments)[0]
    return [known[id(attributes.ops[-1].output)]]  # type: ignore[list-item]  # just computed


def _shape(op: Op) -> list[Shape]:
    known = {t.shape for part in op.attributes.ops for t in part.inputs if t is not None}
    if any(tensor is not None and tensor.shape not in known for tensor in op.inputs):
        raise ModelError("its inputs do not have the shapes of the operators that it stands for")
    return [op.attributes.ops[-1].output.shape]


def _macs(op: Op) -> int:
    attributes: TiledAttention = op.attributes
    return sum(definition(p.kind).macs(p) for p in (attributes.scores, attributes.mix))


def _reads(op: Op) -> list[IndexMap]:
    """Return the reads; axes are found by their strides: a tensor is read where it lies."""
    n, space = op.attributes.shape, Space(op)
    axes = dict(zip(_dense(op.output.shape), space.axes, strict=True))
    *batches, query, column = (axes.get(stride, Index()) for stride in n.output)
    key, element = space.loops((n.keys, n.depth))
    operands = (query, element), (key, element), (key, column)
    found: list[Reads] = []
    for tensor, pair, strides in zip(op.inputs, operands, (n.q, n.k, n.v), strict=False):
        assert tensor is not None
        there = dict(zip(strides, (*batches, *pair), strict=True))
        own = zip(tensor.shape, _dense(tensor.shape), strict=True)
        found.append(tuple(Index() if extent == 1 else there[stride] for extent, stride in own))
    return [space.make_map(*found)]


OPS["ATTENTION_TILED"] = OpDefinition(
    _shape, _reference, _macs, of_one_type("int8", data=None), reads=_reads
)
