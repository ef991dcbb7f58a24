"""TOPK_V2: the largest or least elements of each row, with where they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from covp.errors import ModelError
from covp.graph.graph import Op
from covp.graph.index_map import rows_of
from covp.graph.ops.definition import (
    OPS,
    PLAIN_INTEGERS,
    Array,
    OpDefinition,
    Shape,
    check_type,
    given,
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


def _shapes(op: Op) -> list[Shape]:
    source, count = op.input(0).shape, op.attributes.count
    if not source or not 0 <= count <= source[-1]:
        raise ModelError(f"{count} elements cannot be taken from rows of {source[-1:]}")
    return [(*source[:-1], count)] * 2


def _reference(op: Op, values: Sequence[Array | None]) -> list[Array]:
    a: TopK = op.attributes
    x = given(values, 0)
    rows = x.reshape(-1, x.shape[-1])
    # ~ keeps the order of integers the other way round, without overflow
    keys = rows if not a.largest else -rows if rows.dtype.kind == "f" else ~rows
    places = np.argsort(keys, axis=1, kind="stable")[:, : a.count]
    found = np.take_along_axis(rows, places, axis=1)
    shape = op.output.shape
    return [found.reshape(shape), places.reshape(shape).astype(op.outputs[1].dtype)]


def _types(op: Op) -> None:
    for tensor in (op.input(0), op.output):
        check_type(tensor, "float32", *PLAIN_INTEGERS)
    check_type(op.outputs[1], "int64", "int32")


OPS["TOPK_V2"] = OpDefinition(
    _shapes, _reference, types=_types, reads=lambda op: rows_of(op, -1, "any order")
)
