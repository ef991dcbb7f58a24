"""CUMSUM and CUMPROD: sums and products of all elements before each one along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from covp.errors import ModelError
from covp.graph.attributes import Role
from covp.graph.graph import Op
from covp.graph.index_map import IndexMap, Space, everything
from covp.graph.ops.definition import (
    OPS,
    PLAIN_INTEGERS,
    Array,
    OpDefinition,
    Shape,
    given,
    ieee,
    of_one_type,
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


def _shape(op: Op) -> list[Shape]:
    if op.input(0).quantization is not None:
        raise ModelError(f"{op.kind} of quantized {op.input(0).dtype}; keep it in float32")
    if not op.input(0).shape:
        raise ModelError(f"{op.kind} of a scalar: it needs an axis")
    return [op.input(0).shape]


def _reference(op: Op, values: Sequence[Array | None]) -> list[Array]:
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


def _reads(op: Op) -> list[IndexMap]:
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
        _shape,
        _reference,
        types=of_one_type("float32", *PLAIN_INTEGERS),
        domains=lambda op: {1: (0, len(op.input(0).shape) - 1)},
        reads=_reads,
    )
