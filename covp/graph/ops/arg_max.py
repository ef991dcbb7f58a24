"""ARG_MAX and ARG_MIN: where along an axis the largest or least element is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from covp.graph.attributes import Axis
from covp.graph.graph import Op
from covp.graph.index_map import reduce_axes
from covp.graph.ops.definition import (
    OPS,
    PLAIN_INTEGERS,
    Array,
    OpDefinition,
    Shape,
    check_type,
    given,
    ieee,
)


@dataclass(frozen=True)
class ArgMax:
    """Along an axis (not negative); of equal elements the first counts, or the last."""

    axis: Axis
    keep_dims: bool = False
    last: bool = False


def _shape(op: Op) -> list[Shape]:
    a, source = op.attributes, op.input(0).shape
    kept = (1,) if a.keep_dims else ()
    return [(*source[: a.axis], *kept, *source[a.axis + 1 :])]


def _reference(op: Op, values: Sequence[Array | None]) -> list[Array]:
    """Element by element from the first, as reference_ops::ArgMinMax: a NaN never wins."""
    a, x = op.attributes, np.moveaxis(given(values, 0), op.attributes.axis, 0)
    best, index = x[0], np.zeros(x.shape[1:], op.output.dtype)
    with ieee():
        for position in range(1, x.shape[0]):
            more = x[position] > best if op.kind == "ARG_MAX" else x[position] < best
            better = more | (a.last & (x[position] == best))
            best, index = np.where(better, x[position], best), np.where(better, position, index)
    return [index.astype(op.output.dtype).reshape(op.output.shape)]


def _types(op: Op) -> None:
    check_type(op.input(0), "float32", *PLAIN_INTEGERS)
    check_type(op.output, "int64", "int32")


for _kind in ("ARG_MAX", "ARG_MIN"):
    OPS[_kind] = OpDefinition(
        _shape,
        _reference,
        types=_types,
        reads=lambda op: reduce_axes(
            op, (op.attributes.axis,), op.attributes.keep_dims, "any order"
        ),
    )
