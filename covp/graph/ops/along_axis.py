"""Along an axis: the place of the extreme, the largest elements, running sums.

ARG_MAX, ARG_MIN, TOPK_V2, CUMSUM and CUMPROD.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from covp.errors import ModelError
from covp.graph.attributes import Axis, Role
from covp.graph.graph import Op
from covp.graph.index_map import IndexMap, Space, everything, reduce_axes, rows_of
from covp.graph.ops.definition import (
    OPS,
    PLAIN_INTEGERS,
    Array,
    OpDefinition,
    Shape,
    check_type,
    given,
    ieee,
    of_one_type,
)


@dataclass(frozen=True)
class ArgMax:
    """Along an axis (not negative); of equal elements the first counts, or the last."""

    axis: Axis
    keep_dims: bool = False
    last: bool = False


def _arg_shape(op: Op) -> list[Shape]:
    a, source = op.attributes, op.input(0).shape
    kept = (1,) if a.keep_dims else ()
    return [(*source[: a.axis], *kept, *source[a.axis + 1 :])]


def _arg_reference(op: Op, values: Sequence[Array | None]) -> list[Array]:
    """Compare elements in order from the first, as reference_ops::ArgMinMax: a NaN never wins."""
    a, x = op.attributes, np.moveaxis(given(values, 0), op.attributes.axis, 0)
    best, index = x[0], np.zeros(x.shape[1:], op.output.dtype)
    with ieee():
        for position in range(1, x.shape[0]):
            more = x[position] > best if op.kind == "ARG_MAX" else x[position] < best
            better = more | (a.last & (x[position] == best))
            best, index = np.where(better, x[position], best), np.where(better, position, index)
    return [index.astype(op.output.dtype).reshape(op.output.shape)]


def _arg_types(op: Op) -> None:
    check_type(op.input(0), "float32", *PLAIN_INTEGERS)
    check_type(op.output, "int64", "int32")


for _kind in ("ARG_MAX", "ARG_MIN"):
    OPS[_kind] = OpDefinition(
        _arg_shape,
        _arg_reference,
        types=_arg_types,
        reads=lambda op: reduce_axes(
            op, (op.attributes.axis,), op.attributes.keep_dims, "any order"
        ),
    )


@dataclass(frozen=True)
class TopK:
    """Along the last axis, in order; of equal elements the first counts.

    Attributes:
        count: of each row.
        largest: else the least.
    """

    count: int
    largest: bool = True


def _top_shapes(op: Op) -> list[Shape]:
    source, count = op.input(0).shape, op.attributes.count
    if not source or not 0 <= count <= source[-1]:
        raise ModelError(f"{count} elements cannot be taken from rows of {source[-1:]}")
    return [(*source[:-1], count)] * 2


def _top_reference(op: Op, values: Sequence[Array | None]) -> list[Array]:
    a: TopK = op.attributes
    x = given(values, 0)
    rows = x.reshape(-1, x.shape[-1])
    # ~ keeps the order of integers the other way round, without overflow
    keys = rows if not a.largest else -rows if rows.dtype.kind == "f" else ~rows
    places = np.argsort(keys, axis=1, kind="stable")[:, : a.count]
    found = np.take_along_axis(rows, places, axis=1)
    shape = op.output.shape
    return [found.reshape(shape), places.reshape(shape).astype(op.outputs[1].dtype)]


def _top_types(op: Op) -> None:
    for tensor in (op.input(0), op.output):
        check_type(tensor, "float32", *PLAIN_INTEGERS)
    check_type(op.outputs[1], "int64", "int32")


OPS["TOPK_V2"] = OpDefinition(
    _top_shapes, _top_reference, types=_top_types, reads=lambda op: rows_of(op, -1, "any order")
)


@dataclass(frozen=True)
class Cumulative:
    """Along an axis (not negative); None: computed at run time, the second input.

    Attributes:
        axis: along which is summed.
        exclusive: an element itself does not count.
        reverse: from the end to the beginning.
    """

    axis: Annotated[int | None, Role.AXIS]
    exclusive: bool = False
    reverse: bool = False


def _running_shape(op: Op) -> list[Shape]:
    if op.input(0).quantization is not None:
        raise ModelError(f"{op.kind} of quantized {op.input(0).dtype}; keep it in float32")
    if not op.input(0).shape:
        raise ModelError(f"{op.kind} of a scalar: it needs an axis")
    return [op.input(0).shape]


def _running_reference(op: Op, values: Sequence[Array | None]) -> list[Array]:
    a, x = op.attributes, given(values, 0)
    axis = a.axis if a.axis is not None else int(given(values, 1).reshape(-1)[0])
    if a.reverse:
        x = np.flip(x, axis)
    with ieee():
        accumulate = np.cumsum if op.kind == "CUMSUM" else np.cumprod
        result = accumulate(x, axis=axis, dtype=x.dtype)
    if a.exclusive:
        neutral = 0 if op.kind == "CUMSUM" else 1
        rolled = np.moveaxis(np.roll(result, 1, axis), axis, 0)
        rolled[:1] = neutral
        result = np.moveaxis(rolled, 0, axis)
    return [np.ascontiguousarray(np.flip(result, axis) if a.reverse else result)]


def _running_reads(op: Op) -> list[IndexMap]:
    a = op.attributes
    if a.axis is None:
        return everything(op)
    space = Space(op)
    back = space.loop(op.input(0).shape[a.axis], "scan") + a.exclusive
    read = list(space.axes)
    read[a.axis] = read[a.axis] + back if a.reverse else read[a.axis] - back
    return [space.make_map(tuple(read))]


for _kind in ("CUMSUM", "CUMPROD"):
    OPS[_kind] = OpDefinition(
        _running_shape,
        _running_reference,
        types=of_one_type("float32", *PLAIN_INTEGERS),
        domains=lambda op: {1: (0, len(op.input(0).shape) - 1)},
        reads=_running_reads,
    )
