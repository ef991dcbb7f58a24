"""Operators that find elements by indices, which may come at run time.

Indices are int32 or int64. A negative one counts from the end of its axis, as in ONNX; one beyond
the axis, which both formats leave undefined, is taken as the nearest element, so that no index of
a user's input reads or writes outside a tensor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from covp.errors import ModelError
from covp.graph.attributes import Axis
from covp.graph.graph import Op
from covp.graph.index_map import Chosen, IndexMap, Listed, Read, Space
from covp.graph.ops.definition import (
    OPS,
    Array,
    Domains,
    OpDefinition,
    Shape,
    check_type,
    given,
    of_one_type,
)
from covp.graph.ops.layout import ELEMENT_TYPES

Reduction = Literal["none", "add", "mul", "max", "min"]


@dataclass(frozen=True)
class Gather:
    """GATHER: elements along an axis (not negative) of data, the first input.

    Attributes:
        axis: of data.
        batches: leading axes that data and indices share; at most ``axis``.
        nearby: of constant indices that are rounded places, the ones that a place computed with
            less precision could give; empty where they are none.
    """

    axis: Axis
    batches: int = 0
    nearby: tuple[int, ...] = ()


@dataclass(frozen=True)
class GatherND:
    """GATHER_ND: the last axis of the indices holds coordinates after the shared leading axes."""

    batches: int = 0


@dataclass(frozen=True)
class GatherElements:
    """GATHER_ELEMENTS: each index replaces the coordinate along one axis (not negative)."""

    axis: Axis


@dataclass(frozen=True)
class Scatter:
    """SCATTER_ELEMENTS and SCATTER_ND: the inputs are data, indices, updates.

    Attributes:
        axis: of SCATTER_ELEMENTS (not negative).
        reduction: how an update and what was there become one.
    """

    axis: Axis = 0
    reduction: Reduction = "none"


@dataclass(frozen=True)
class ReverseSequence:
    """REVERSE_SEQUENCE: the second input has the length of each sequence of the batch."""

    time_axis: Axis
    batch_axis: Axis


@dataclass(frozen=True)
class OneHot:
    """ONE_HOT: the inputs are indices and two values, "off" and "on", in one tensor of two.

    Attributes:
        axis: of the output, new (not negative).
        depth: its extent.
    """

    axis: int
    depth: int


def wrap(indices: Array, extent: int | Array) -> Array:
    """Return the indices from 0 to ``extent`` - 1, as the file's head says."""
    found = indices.astype(np.int64)
    found = np.where(found < 0, found + extent, found)
    return np.clip(found, 0, np.asarray(extent) - 1)


def _demand_elements(source: Shape, indices: Shape) -> None:
    """Raise ModelError if there are indices and no element to find."""
    if 0 in source and 0 not in indices:
        raise ModelError(f"there are {indices} indices for {source}, which has no element")


def _check_indices(op: Op, position: int = 1) -> None:
    check_type(op.input(position), "int32", "int64")


def _types(op: Op) -> None:
    of_one_type(*ELEMENT_TYPES)(op)
    _check_indices(op)


def _scatter_types(op: Op) -> None:
    of_one_type(*ELEMENT_TYPES, data=(0, 2))(op)
    _check_indices(op)
    if op.attributes.reduction != "none" and op.output.dtype == np.bool_:
        raise ModelError("a reduction of bool is not supported")


def _gather_shape(op: Op) -> list[Shape]:
    a, source, indices = op.attributes, op.input(0).shape, op.input(1).shape
    shared = a.batches
    _demand_elements(source, indices)
    if not shared <= a.axis < len(source) or source[:shared] != indices[:shared]:
        raise ModelError(f"indices {indices} do not fit axis {a.axis} of {source}")
    if source[a.axis] == 0 and math.prod(indices):
        raise ModelError(f"axis {a.axis} of {source} has no element to take")
    return [source[: a.axis] + indices[shared:] + source[a.axis + 1 :]]


def _gather(op: Op, values: Sequence[Array | None]) -> list[Array]:
    a, x = op.attributes, given(values, 0)
    indices = wrap(given(values, 1), x.shape[a.axis])
    if a.batches == 0:
        return [np.take(x, indices, axis=a.axis)]
    leading = x.shape[: a.batches]
    rows = x.reshape(-1, *x.shape[a.batches :])
    chosen = indices.reshape(-1, *indices.shape[a.batches :])
    parts = [np.take(r, i, axis=a.axis - a.batches) for r, i in zip(rows, chosen, strict=True)]
    return [np.stack(parts).reshape(*leading, *parts[0].shape)]


def _gather_nd_shape(op: Op) -> list[Shape]:
    shared, source, indices = op.attributes.batches, op.input(0).shape, op.input(1).shape
    depth = indices[-1] if indices else 0
    _demand_elements(source, indices)
    if not indices or shared + depth > len(source) or source[:shared] != indices[:shared]:
        raise ModelError(f"indices {indices} do not fit data {source}")
    return [indices[:-1] + source[shared + depth :]]


def _gather_nd(op: Op, values: Sequence[Array | None]) -> list[Array]:
    x, indices, shared = given(values, 0), given(values, 1), op.attributes.batches
    depth = indices.shape[-1]
    rows = x.reshape(math.prod(x.shape[:shared]), *x.shape[shared:])
    flat = indices.reshape(rows.shape[0], -1, depth)
    extents = np.array(x.shape[shared : shared + depth])
    parts = [
        r[tuple(np.moveaxis(wrap(i, extents), -1, 0))] for r, i in zip(rows, flat, strict=True)
    ]
    return [np.stack(parts).reshape(_gather_nd_shape(op)[0])]


def _elements_shape(op: Op) -> list[Shape]:
    source, indices = op.input(0).shape, op.input(1).shape
    axis = op.attributes.axis
    _demand_elements(source, indices)
    fits = len(source) == len(indices) and all(
        i <= n or position == axis
        for position, (n, i) in enumerate(zip(source, indices, strict=False))
    )
    if not fits:
        raise ModelError(f"indices {indices} do not fit axis {axis} of {source}")
    return [indices]


def _coordinates(indices: Array, shape: Shape, axis: int) -> tuple[Array, ...]:
    """Return each index's element: its own coordinates, with the index along one axis."""
    grid: list[Any] = list(np.ogrid[tuple(slice(n) for n in indices.shape)])
    grid[axis] = wrap(indices, shape[axis])
    return tuple(grid)


def _elements(op: Op, values: Sequence[Array | None]) -> list[Array]:
    x, indices = given(values, 0), given(values, 1)
    return [np.asarray(x[_coordinates(indices, x.shape, op.attributes.axis)])]


_REDUCE: dict[str, Any] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


def _scatter(op: Op, x: Array, where: Any, updates: Array) -> list[Array]:
    result = x.copy()
    reduce = _REDUCE.get(op.attributes.reduction)
    if reduce is None:
        result[where] = updates
    else:
        reduce.at(result, where, updates)
    return [result]


def _scatter_elements_shape(op: Op) -> list[Shape]:
    _elements_shape(op)
    if op.input(1).shape != op.input(2).shape:
        raise ModelError(f"indices {op.input(1).shape} and updates {op.input(2).shape} differ")
    return [op.input(0).shape]


def _scatter_elements(op: Op, values: Sequence[Array | None]) -> list[Array]:
    x = given(values, 0)
    where = _coordinates(given(values, 1), x.shape, op.attributes.axis)
    return _scatter(op, x, where, given(values, 2))


def _scatter_nd_shape(op: Op) -> list[Shape]:
    source, indices, updates = (op.input(position).shape for position in range(3))
    _demand_elements(source, indices)
    if not indices or indices[:-1] + source[indices[-1] :] != updates:
        raise ModelError(f"updates {updates} do not fit indices {indices} of {source}")
    return [source]


def _scatter_nd(op: Op, values: Sequence[Array | None]) -> list[Array]:
    x, indices = given(values, 0), given(values, 1)
    extents = np.array(x.shape[: indices.shape[-1]])
    where = tuple(np.moveaxis(wrap(indices, extents), -1, 0))
    return _scatter(op, x, where, given(values, 2))


def _sequence_shape(op: Op) -> list[Shape]:
    a, source, lengths = op.attributes, op.input(0).shape, op.input(1).shape
    if a.time_axis == a.batch_axis or lengths != (source[a.batch_axis],):
        raise ModelError(f"lengths {lengths} do not fit axis {a.batch_axis} of {source}")
    return [source]


def _sequence(op: Op, values: Sequence[Array | None]) -> list[Array]:
    a, x = op.attributes, given(values, 0)
    result = x.copy()
    source = np.moveaxis(x, (a.batch_axis, a.time_axis), (0, 1))
    target = np.moveaxis(result, (a.batch_axis, a.time_axis), (0, 1))
    lengths = np.clip(given(values, 1), 0, x.shape[a.time_axis])
    for row, length in enumerate(lengths):
        target[row, :length] = source[row, :length][::-1]
    return [result]


def _one_hot_types(op: Op) -> None:
    check_type(op.input(0), "int32", "int64")
    of_one_type(*ELEMENT_TYPES, data=(1,))(op)


def _one_hot_shape(op: Op) -> list[Shape]:
    a, indices = op.attributes, op.input(0).shape
    if op.input(1).size != 2:
        raise ModelError(f"values of shape {op.input(1).shape} are not two")
    return [(*indices[: a.axis], a.depth, *indices[a.axis :])]


def _one_hot(op: Op, values: Sequence[Array | None]) -> list[Array]:
    """Compute ONE_HOT; an index outside the depth has no "on", a negative one is from the end."""
    a, indices = op.attributes, given(values, 0).astype(np.int64)
    off, on = given(values, 1).reshape(-1)
    at = np.expand_dims(np.where(indices < 0, indices + a.depth, indices), a.axis)
    shape = [1] * at.ndim
    shape[a.axis] = a.depth
    return [np.where(at == np.arange(a.depth).reshape(shape), on, off)]


def _gather_reads(op: Op) -> list[IndexMap]:
    a, indices, space = op.attributes, op.input(1), Space(op)
    own = len(indices.shape) - a.batches
    outside, found, rest = (
        space.axes[: a.axis],
        space.axes[a.axis :][:own],
        space.axes[a.axis + own :],
    )
    place: Read = Chosen()
    if indices.data is not None and len(indices.shape) == 1 and not a.batches:
        constant = tuple(wrap(indices.data, op.input(0).shape[a.axis]).tolist())
        place = Listed(a.axis, constant, constant)
    return [space.make_map((*outside, place, *rest), (*space.axes[: a.batches], *found))]


def _gather_nd_reads(op: Op) -> list[IndexMap]:
    shared, (*_, depth), space = op.attributes.batches, op.input(1).shape, Space(op)
    found = space.axes[: len(op.input(1).shape) - 1]
    rest = space.axes[len(found) :]
    return [
        space.make_map(
            (*found[:shared], *[Chosen()] * depth, *rest), (*found, space.loop(depth, "any order"))
        )
    ]


def _elements_reads(op: Op) -> list[IndexMap]:
    space = Space(op)
    data: list[Read] = list(space.axes)
    data[op.attributes.axis] = Chosen()
    return [space.make_map(tuple(data), space.axes)]


def _scatter_elements_reads(op: Op) -> list[IndexMap]:
    space, axis = Space(op), op.attributes.axis
    updates = list(space.axes)
    updates[axis] = space.loop(op.input(1).shape[axis])
    return [space.make_map(space.axes, tuple(updates), tuple(updates))]


def _scatter_nd_reads(op: Op) -> list[IndexMap]:
    space, (*numbers, depth) = Space(op), op.input(1).shape
    places = space.loops(numbers)
    return [
        space.make_map(
            space.axes,
            (*places, space.loop(depth, "any order")),
            (*places, *space.axes[depth:]),
        )
    ]


def _sequence_reads(op: Op) -> list[IndexMap]:
    space, a = Space(op), op.attributes
    data: list[Read] = list(space.axes)
    data[a.time_axis] = Chosen()
    return [space.make_map(tuple(data), (space.axes[a.batch_axis],))]


def _one_hot_reads(op: Op) -> list[IndexMap]:
    space, axis = Space(op), op.attributes.axis
    return [space.make_map((*space.axes[:axis], *space.axes[axis + 1 :]), *space.whole(1))]


def _of_axis(op: Op) -> Domains:
    return {1: (0, op.input(0).shape[op.attributes.axis] - 1)}


def _of_coordinates(op: Op) -> Domains:
    first = getattr(op.attributes, "batches", 0)
    extents = op.input(0).shape[first : first + op.input(1).shape[-1]]
    return {1: (0, np.array(extents) - 1)}


def _of_lengths(op: Op) -> Domains:
    return {1: (1, op.input(0).shape[op.attributes.time_axis])}


OPS["GATHER"] = OpDefinition(
    _gather_shape, _gather, types=_types, domains=_of_axis, reads=_gather_reads
)
OPS["GATHER_ND"] = OpDefinition(
    _gather_nd_shape, _gather_nd, types=_types, domains=_of_coordinates, reads=_gather_nd_reads
)
OPS["GATHER_ELEMENTS"] = OpDefinition(
    _elements_shape, _elements, types=_types, domains=_of_axis, reads=_elements_reads
)
OPS["SCATTER_ELEMENTS"] = OpDefinition(
    _scatter_elements_shape,
    _scatter_elements,
    types=_scatter_types,
    domains=_of_axis,
    reads=_scatter_elements_reads,
    positional=lambda op: (op.attributes.axis,),
)
OPS["SCATTER_ND"] = OpDefinition(
    _scatter_nd_shape,
    _scatter_nd,
    types=_scatter_types,
    domains=_of_coordinates,
    reads=_scatter_nd_reads,
    positional=lambda op: range(op.input(1).shape[-1]),
)
OPS["REVERSE_SEQUENCE"] = OpDefinition(
    _sequence_shape,
    _sequence,
    types=_types,
    domains=_of_lengths,
    reads=_sequence_reads,
    positional=lambda op: (op.attributes.time_axis,),
)
OPS["ONE_HOT"] = OpDefinition(
    _one_hot_shape,
    _one_hot,
    types=_one_hot_types,
    domains=lambda op: {0: (0, op.attributes.depth - 1)},
    reads=_one_hot_reads,
    positional=lambda op: (op.attributes.axis,),
)
