"""Operators that make tensors by a rule: RANGE, FILL, SHAPE; and COMPRESS, by a mask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from covp.errors import ModelError
from covp.graph.graph import Op
from covp.graph.index_map import Chosen, IndexMap, Read, Space
from covp.graph.ops.definition import (
    OPS,
    Array,
    OpDefinition,
    Shape,
    check_type,
    given,
    of_one_type,
)
from covp.graph.ops.layout import ELEMENT_TYPES, MOVABLE


@dataclass(frozen=True)
class Generated:
    """RANGE (the inputs are start, limit, delta) and FILL (the input is a value).

    Attributes:
        shape: of the output, static.
    """

    shape: Shape


@dataclass(frozen=True)
class Compress:
    """COMPRESS: the elements along an axis (not negative) for which the second input is true.

    Attributes:
        count: of them, static; less than that leaves zeros, more are left out.
    """

    axis: int
    count: int


def _shape(op: Op) -> list[Shape]:
    return [op.attributes.shape]


def _range(op: Op, values: Sequence[Array | None]) -> list[Array]:
    start, delta = given(values, 0).reshape(-1)[0], given(values, 2).reshape(-1)[0]
    count = np.arange(op.attributes.shape[0])
    if op.output.dtype.kind == "f":
        return [(start + count.astype(np.float32) * delta).astype(np.float32)]
    return [(int(start) + count * int(delta)).astype(op.output.dtype)]


def _fill(op: Op, values: Sequence[Array | None]) -> list[Array]:
    return [np.full(op.attributes.shape, given(values, 0).reshape(-1)[0])]


def _shape_of(op: Op, values: Sequence[Array | None]) -> list[Array]:
    return [np.array(op.input(0).shape, op.output.dtype)]


def _shape_types(op: Op) -> None:
    check_type(op.output, "int32", "int64")


def _compress_shape(op: Op) -> list[Shape]:
    a, source = op.attributes, op.input(0).shape
    if op.input(1).size > source[a.axis]:
        raise ModelError(f"{op.input(1).size} conditions for axis {a.axis} of {source}")
    return [(*source[: a.axis], a.count, *source[a.axis + 1 :])]


def _compress(op: Op, values: Sequence[Array | None]) -> list[Array]:
    a, x = op.attributes, given(values, 0)
    (chosen,) = np.nonzero(given(values, 1).reshape(-1))
    result = np.zeros(_compress_shape(op)[0], x.dtype)
    kept = np.take(x, chosen[: a.count], axis=a.axis)
    target = [slice(None)] * x.ndim
    target[a.axis] = slice(0, kept.shape[a.axis])
    result[tuple(target)] = kept
    return [result]


def _compress_types(op: Op) -> None:
    MOVABLE(op)
    check_type(op.input(1), "bool")


def _compress_reads(op: Op) -> list[IndexMap]:
    space = Space(op)
    data: list[Read] = list(space.axes)
    data[op.attributes.axis] = Chosen()
    return [space.make_map(tuple(data), *space.whole(1))]


_NUMBERS = of_one_type("float32", "int16", "int32", "int64", data=None)
# no maps: RANGE has three scalars as inputs, FILL one and a shape; all of them make each element
OPS["RANGE"] = OpDefinition(_shape, _range, types=_NUMBERS, positional=lambda op: (0,))
OPS["FILL"] = OpDefinition(_shape, _fill, types=of_one_type(*ELEMENT_TYPES))
OPS["SHAPE"] = OpDefinition(
    lambda op: [(len(op.input(0).shape),)],
    _shape_of,
    types=_shape_types,
    reads=lambda op: [Space(op).make_map()],
    positional=lambda op: (0,),
)
OPS["COMPRESS"] = OpDefinition(
    _compress_shape,
    _compress,
    types=_compress_types,
    reads=_compress_reads,
    positional=lambda op: (op.attributes.axis,),
)
