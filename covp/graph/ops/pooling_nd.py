"""Pools with any number of axes: MAX_POOL, AVERAGE_POOL, LP_POOL and MAX_UNPOOL.

Images have their channels last: (batch, *space, channels). Formulas: the ONNX specification of
MaxPool, AveragePool, LpPool and MaxUnpool.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from covp.errors import ModelError
from covp.graph.attributes import Activation, Pair
from covp.graph.graph import Op
from covp.graph.index_map import IndexMap, Order, window
from covp.graph.ops.definition import (
    OPS,
    Array,
    OpDefinition,
    Shape,
    check_type,
    given,
    ieee,
    of_one_type,
)
from covp.graph.ops.windows import Extents, Slices, taps
from covp.graph.quantization import float_activation_range


@dataclass(frozen=True)
class PoolND:
    """MAX_POOL, AVERAGE_POOL and LP_POOL.

    MAX_POOL may have a second output, int64: where the largest elements are. That is an index of
    the image with its channels first, flattened.

    Attributes:
        filter, stride, dilation: for each axis of space.
        padding: (before, after) for each.
        size: of the output's axes of space; the last windows may reach beyond the padding.
        count_padding: whether an average divides by the elements of padding, too.
        p: of LP_POOL, the exponent of its norm.
        column_major: the indices count the first axis of space fastest.
    """

    filter: Extents
    stride: Extents
    dilation: Extents
    padding: tuple[Pair, ...]
    size: Extents
    count_padding: bool = False
    p: int = 2
    column_major: bool = False
    activation: Activation = "none"


@dataclass(frozen=True)
class MaxUnpool:
    """MAX_UNPOOL: elements go where the second input says, an index of the flattened output."""

    shape: Shape


def index_strides(source: Shape, column_major: bool) -> tuple[int, ...]:
    """Return the stride of each axis of space in the index of a largest element."""
    space = source[1:-1]
    if column_major:
        return tuple(math.prod(space[:axis]) for axis in range(len(space)))
    return tuple(math.prod(space[axis + 1 :]) for axis in range(len(space)))


def _shapes(op: Op) -> list[Shape]:
    a, source = op.attributes, op.input(0).shape
    rank = len(source) - 2
    if rank < 1 or not rank == len(a.filter) == len(a.size):
        raise ModelError(f"shape {source} does not fit a window of {a.filter}")
    if min(a.size) < 1:
        raise ModelError(f"a window of {a.filter} leaves nothing of {source}")
    return [(source[0], *a.size, source[-1])] * len(op.outputs)


def _inside(op: Op) -> Iterator[tuple[Extents, tuple[slice, ...], tuple[slice, ...]]]:
    """Yield each tap with its slices of output and image, batch and channels included."""
    a = op.attributes
    before = tuple(pads[0] for pads in a.padding)
    space = op.input(0).shape[1:-1]
    for tap, ours, theirs in taps(a.filter, a.size, space, a.stride, a.dilation, before):
        yield tap, (slice(None), *ours), (slice(None), *theirs)


def _clamp(op: Op, values: Array) -> list[Array]:
    low, high = float_activation_range(op.attributes.activation)
    return [np.clip(values, low, high).astype(op.output.dtype)]


def lowest(dtype: np.dtype[Any]) -> float:
    """Return the least value of a type."""
    return -np.inf if dtype.kind == "f" else int(np.iinfo(dtype).min)


def _max(op: Op, values: Sequence[Array | None]) -> list[Array]:
    x, a = given(values, 0), op.attributes
    result = np.full(_shapes(op)[0], lowest(x.dtype), x.dtype)
    where = np.full(result.shape, -1, np.int64)
    places = _flat_indices(x.shape, a.column_major)
    for _, ours, theirs in _inside(op):
        part = x[theirs]
        larger = (part > result[ours]) | (where[ours] < 0)
        result[ours] = np.where(larger, part, result[ours])
        where[ours] = np.where(larger, places[theirs], where[ours])
    if x.dtype.kind == "f":
        (result,) = _clamp(op, result)
    return [result, where][: len(op.outputs)]


def _flat_indices(shape: Shape, column_major: bool) -> Array:
    """Return the index of every element of an image, as if its channels came first."""
    batch, channels = shape[0], shape[-1]
    place = np.zeros(shape[1:-1], np.int64)
    for axis, stride in enumerate(index_strides(shape, column_major)):
        extents = [1] * (len(shape) - 2)
        extents[axis] = shape[axis + 1]
        place = place + np.arange(shape[axis + 1]).reshape(extents) * stride
    planes = np.arange(batch * channels).reshape(batch, *[1] * place.ndim, channels)
    return planes * place.size + place[None, ..., None]


def counts(op: Op) -> Array:
    """Return the elements that each average divides by, (1, *space, 1)."""
    a, space = op.attributes, op.input(0).shape[1:-1]
    before = tuple(pads[0] for pads in a.padding)
    if a.count_padding:
        space = tuple(n + sum(pads) for n, pads in zip(space, a.padding, strict=True))
        before = (0,) * len(space)
    found = np.zeros((1, *a.size, 1), np.int64)
    ours: Slices
    for _, ours, _ in taps(a.filter, a.size, space, a.stride, a.dilation, before):
        at = (slice(None), *ours)
        found[at] += 1
    return np.maximum(found, 1)


def _average(op: Op, values: Sequence[Array | None]) -> list[Array]:
    x = given(values, 0)
    total = np.zeros(_shapes(op)[0], np.float32)
    with ieee():
        for _, ours, theirs in _inside(op):
            total[ours] += x[theirs]
        return _clamp(op, total / counts(op).astype(np.float32))


def _norm(op: Op, values: Sequence[Array | None]) -> list[Array]:
    x, p = given(values, 0), op.attributes.p
    total = np.zeros(_shapes(op)[0], np.float32)
    with ieee():
        for _, ours, theirs in _inside(op):
            total[ours] += np.abs(x[theirs]) ** np.float32(p)
        return _clamp(op, total ** np.float32(1 / p))


def _max_types(op: Op) -> None:
    of_one_type("float32", "int8", "uint8", "int16", "int32")(
        Op(op.kind, op.name, op.inputs, op.outputs[:1], op.attributes)
    )
    for tensor in op.outputs[1:]:
        check_type(tensor, "int64")


def _unpool_shape(op: Op) -> list[Shape]:
    if op.input(0).shape != op.input(1).shape:
        raise ModelError(f"data {op.input(0).shape} and indices {op.input(1).shape} differ")
    return [op.attributes.shape]


def _unpool(op: Op, values: Sequence[Array | None]) -> list[Array]:
    x, where = given(values, 0), given(values, 1)
    result = np.zeros(op.attributes.shape, x.dtype)
    result.reshape(-1)[np.clip(where, 0, result.size - 1).reshape(-1)] = x.reshape(-1)
    return [result]


def _reads(op: Op) -> list[IndexMap]:
    a = op.attributes
    before = [pads[0] for pads in a.padding]
    order: Order = "any order" if op.kind == "MAX_POOL" else "sum"
    return window(op, a.filter, a.stride, before, a.dilation, order)


def _positional(op: Op) -> range:
    """Return the positional outputs: the second says where the largest are."""
    return range(len(op.output.shape) if len(op.outputs) > 1 else 0)


_FLOAT = of_one_type("float32")
OPS["MAX_POOL"] = OpDefinition(
    _shapes, _max, types=_max_types, reads=_reads, positional=_positional
)
OPS["AVERAGE_POOL"] = OpDefinition(_shapes, _average, types=_FLOAT, reads=_reads, clamps=True)
OPS["LP_POOL"] = OpDefinition(_shapes, _norm, types=_FLOAT, reads=_reads)
# no map: the values of the second input say where an element of the first one goes
OPS["MAX_UNPOOL"] = OpDefinition(
    _unpool_shape,
    _unpool,
    types=of_one_type("float32", "int8"),
    domains=lambda op: {1: (0, math.prod(op.attributes.shape) - 1)},
)
