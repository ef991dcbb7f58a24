"""Operators whose input lies in memory with its axes in another order, by their index maps.

An order is the permutation of a TRANSPOSE: axis i of what the model means (outer) is axis order[i]
of what is there (inner). The operator for inner axes has the attributes that speak of axes changed
by their roles. It is taken if its own maps read the inner axes as the plain operator's maps read
the outer ones; equal maps alone would not prove that loops may change places, so these do so only
where an attribute names their axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args, get_type_hints

import numpy as np

from covp.errors import ModelError
from covp.graph.attributes import Role
from covp.graph.graph import Op, Tensor
from covp.graph.index_map import Chosen, Index, IndexMap, Listed, Read, elementwise
from covp.graph.ops.definition import OPS, definition

Order = tuple[int, ...]


@dataclass(frozen=True)
class Permuted:
    """The operator in the permuted layout.

    Attributes:
        attributes: with inner axes.
        order: of its outputs.
    """

    attributes: Any
    order: Order


def is_elementwise(op: Op) -> bool:
    """Return whether the order of the elements is irrelevant, if all inputs have the same."""
    rule = OPS.known(op.kind)
    if rule is None or op.kind == "RESHAPE" or _roles(op.attributes) or rule.positional(op):
        return False
    shapes = [tensor.shape for tensor in op.inputs if tensor is not None]
    whole = np.broadcast_shapes(*shapes) if rule.reads(op) == elementwise(op) else None
    return whole == op.output.shape


def data_positions(op: Op) -> Sequence[int]:
    """Return the inputs whose axes are those of the output, or else the first that is read."""
    rule = OPS.known(op.kind)
    reads = rule.reads(op)[0].inputs if rule else ()
    read = [position for position, own in enumerate(reads) if own is not None]
    return read if all(_is_aligned(op, reads[p] or (), p) for p in read) else read[:1]


def _is_aligned(op: Op, reads: Sequence[Read], position: int) -> bool:
    rank = len(op.input(position).shape)
    behind = len(op.output.shape) - rank
    return len(reads) == rank and all(
        not isinstance(read, Chosen) and read.loops() <= {behind + axis}
        for axis, read in enumerate(reads)
    )


def permute(op: Op, order: Order) -> Permuted | None:
    """Return the operator for inputs in an order; None where it depends on the order."""
    positions, rule = data_positions(op), definition(op.kind)
    ranks = {len(op.input(position).shape) for position in positions}
    if not ranks or max(ranks) != len(order) or rule.is_product:
        return None  # rows of matrices that become batches would be computed one by one
    maps, same = rule.reads(op), tuple(range(len(order)))
    first = (maps[0].inputs[positions[0]] or ())[: len(order)]
    chosen = {axis for axis, read in enumerate(first) if isinstance(read, Chosen)}
    if any(order[axis] != axis for axis in chosen - _named_axes(op.attributes)):
        return None
    attributes = _permute_attributes(op.attributes, order)
    for outer in _candidates(op, first, order):
        if any(outer[axis] != axis for axis in range(len(outer)) if axis in rule.positional(op)):
            continue
        inner = _permute_tensors(replace(op, attributes=attributes), positions, order, outer)
        if inner is not None:
            wanted = _named_reads(op, maps, positions, order, outer)
            identity = tuple(range(len(outer)))
            if wanted == _named_reads(inner, rule.reads(inner), positions, same, identity):
                return Permuted(attributes, outer)
    return None


def undoes(second: Order, first: Order) -> bool:
    """Return whether a permutation after another leaves the axes as they were."""
    return compose(first, second) == tuple(range(len(first)))


def compose(first: Order, second: Order) -> Order:
    """Return the permutation of a TRANSPOSE after another."""
    return tuple(first[axis] for axis in second)


def moves_nothing(shape: Sequence[int], order: Order) -> bool:
    """Return whether memory stays as it is because only axes of extent 1 change places.

    Args:
        shape: of the input.
        order: of a TRANSPOSE.
    """
    kept = [axis for axis in order if shape[axis] != 1]
    return kept == sorted(kept)


def _roles(attributes: Any) -> dict[str, Role]:
    """Return the roles of the fields that have one."""
    hints = get_type_hints(type(attributes), include_extras=True)
    return {n: a for n, hint in hints.items() for a in get_args(hint) if isinstance(a, Role)}


def _named_axes(attributes: Any) -> set[int]:
    """Return the axes of the input that attributes name."""
    found: set[int] = set()
    for name, role in _roles(attributes).items():
        value = getattr(attributes, name)
        if value is not None and role is not Role.EACH_AXIS:
            found |= {value} if role is Role.AXIS else set(value)
    return found


def _permute_attributes(attributes: Any, order: Order) -> Any:
    changes: dict[str, Any] = {}
    for name, role in _roles(attributes).items():
        value = getattr(attributes, name)
        if value is None:
            continue
        if role is Role.AXIS:
            changes[name] = order[value]
        elif role is Role.AXES:
            changes[name] = tuple(sorted(order[axis] for axis in value))
        elif len(value) == len(order):
            changes[name] = _inner(value, order)
    return replace(attributes, **changes) if changes else attributes


def _inner(entries: Sequence[Any], order: Order) -> tuple[Any, ...]:
    return tuple(entries[order.index(axis)] for axis in range(len(order)))


def _candidates(op: Op, reads: Sequence[Read], order: Order) -> Iterator[Order]:
    """Yield orders that the outputs may have: the inputs', and that of the axes that are read.

    Axes of extent 1 that come from nowhere lie before the one that follows them outside.
    """
    shape, rank = [0 if read.loops() else 1 for read in reads], len(op.output.shape)
    if rank == len(order) and op.kind != "RESHAPE":
        yield order
    origins = {number: axis for axis, read in enumerate(reads) for number in read.loops()}
    at = 0
    for axis in range(rank):
        if axis not in origins and shape[at : at + 1] == [op.output.shape[axis]]:
            origins[axis] = at
        at = max(at, origins.get(axis, -1) + 1)
    known = [axis for axis in range(rank) if axis in origins]
    inner = sorted(known, key=lambda axis: order[origins[axis]])
    for axis in reversed([axis for axis in range(rank) if axis not in origins]):
        inner.insert(inner.index(axis + 1) if axis + 1 in inner else len(inner), axis)
    yield tuple(inner.index(axis) for axis in range(rank))


def _permute_tensors(op: Op, positions: Sequence[int], order: Order, outer: Order) -> Op | None:
    """Return the operator on inner tensors; None where its shapes do not fit."""
    if any(len(tensor.shape) != len(outer) for tensor in op.outputs):
        return None
    inputs = [
        replace(t, shape=_inner(_whole(t, t.shape, order, 1), order), data=None)
        if t and position in positions and not _is_single(t, order)
        else t
        for position, t in enumerate(op.inputs)
    ]
    outputs = [replace(tensor, shape=_inner(tensor.shape, outer)) for tensor in op.outputs]
    inner = replace(op, inputs=inputs, outputs=outputs)
    try:
        shapes = definition(op.kind).infer_shapes(inner)
    except (ModelError, ValueError, IndexError):
        return None
    return inner if shapes == [tensor.shape for tensor in outputs] else None


def _is_single(tensor: Tensor, order: Order) -> bool:
    """Return whether an input is one element, which has no axes to permute."""
    return tensor.size == 1 and len(tensor.shape) < len(order)


def _whole(tensor: Tensor, entries: Sequence[Any], order: Order, fill: Any) -> tuple[Any, ...]:
    """Return entries for a tensor's axes, and before them for those it is broadcast along."""
    return (*(fill,) * (len(order) - len(tensor.shape)), *entries)


def _named_reads(
    op: Op, maps: Sequence[IndexMap], positions: Sequence[int], order: Order, outer: Order
) -> list[Any]:
    """Return what maps read of inner axes, by loops that have the names of inner axes.

    Loops beside the outputs' axes are named by the axis that they run along, if an attribute names
    that: those of means and sums, whose floats may be added in another order. Elsewhere the order
    counts where floats are added.
    """
    found: list[Any] = []
    tensors = (*op.inputs, *op.outputs)
    floats = any(t is not None and t.dtype.kind == "f" for t in tensors)
    for output, own in zip(op.outputs, maps, strict=True):
        extents = (*output.shape, *(loop.extent for loop in own.loops))
        names = [*outer, *range(len(outer), len(extents))]
        for axis in _named_axes(op.attributes):
            for number in (own.inputs[positions[0]] or ())[axis].loops():
                names[number] = -1 - order[axis] if number >= len(outer) else names[number]
        every = zip(names[len(outer) :], own.loops, strict=True)
        loops = [(name, loop) for name, loop in every if loop.extent != 1]
        if not floats or all(name < 0 or loop.order == "any order" for name, loop in loops):
            loops.sort(key=lambda named: named[0])
        reads: list[Any] = []
        for position, (tensor, each) in enumerate(zip(op.inputs, own.inputs, strict=True)):
            inner = [_rename(read, names, extents) for read in each or ()]
            if tensor and each and position in positions and not _is_single(tensor, order):
                inner = list(_whole(tensor, inner, order, Index()))
                inner[: len(order)] = _inner(inner[: len(order)], order)
            reads.append(inner)
        found.append((loops, reads))
    return found


def _rename(read: Read, names: Sequence[int], extents: Sequence[int]) -> Read:
    """Return a read with other names of loops, without loops of one step."""
    if isinstance(read, Listed):
        return replace(read, loop=names[read.loop])
    if isinstance(read, Chosen):
        return read
    found = Index()
    for term in read.terms:
        loops = tuple(sorted((names[n], c) for n, c in term.loops if extents[n] != 1))
        moved = replace(term, loops=loops)
        found += Index((moved,)) if loops else int(moved.at({}))
    return found
