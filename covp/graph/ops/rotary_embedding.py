"""ROTARY_EMBEDDING: pairs of elements turned by an angle that depends on their position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from covp.errors import ModelError
from covp.graph.graph import Op
from covp.graph.index_map import Chosen, IndexMap, Space
from covp.graph.ops.definition import OPS, Array, OpDefinition, Shape, check_type, given, ieee

POSITIONS = 3
"""Position of the optional input."""


@dataclass(frozen=True)
class RotaryEmbedding:
    """ROTARY_EMBEDDING of (batch, heads, sequence, size) or (batch, sequence, heads * size).

    The inputs are the tensor, cosines and sines, and the positions (batch, sequence). With
    positions the tables are (positions, turned / 2), without (batch, sequence, turned / 2).

    Attributes:
        heads: of the tensor.
        turned: elements of each head that are turned, the first ones.
        interleaved: element 2i is paired with 2i + 1; else i with i + turned / 2.
    """

    heads: int
    turned: int
    interleaved: bool = False


def split(op: Op) -> Shape:
    """Return the tensor's extents: batch, heads, sequence, size of a head."""
    a: RotaryEmbedding = op.attributes
    shape = op.input(0).shape
    if len(shape) == 4 and shape[1] == a.heads:
        return shape
    if len(shape) == 3 and a.heads and shape[2] % a.heads == 0:
        return (shape[0], a.heads, shape[1], shape[2] // a.heads)
    raise ModelError(f"a tensor of shape {shape} does not have {a.heads} heads")


def _shape(op: Op) -> list[Shape]:
    a: RotaryEmbedding = op.attributes
    batch, _, sequence, size = split(op)
    half = a.turned // 2
    if a.turned % 2 or not 0 < a.turned <= size:
        raise ModelError(f"{a.turned} of {size} elements cannot be turned in pairs")
    has_positions = len(op.inputs) > POSITIONS and op.inputs[POSITIONS] is not None
    for table in (op.input(1), op.input(2)):
        rows = table.shape[:-1]
        fits = len(rows) == 1 if has_positions else rows == (batch, sequence)
        if not fits or table.shape[-1] != half:
            raise ModelError(
                f"tensor {table.name} of shape {table.shape} does not fit {half} pairs",
                tensor=table.name,
            )
    if has_positions and op.input(POSITIONS).shape != (batch, sequence):
        raise ModelError(f"positions of shape {op.input(POSITIONS).shape} do not fit the tensor")
    return [op.input(0).shape]


def _types(op: Op) -> None:
    for tensor in (*op.inputs[:3], op.output):
        if tensor is not None:
            check_type(tensor, "float32")
    if len(op.inputs) > POSITIONS and op.inputs[POSITIONS] is not None:
        check_type(op.input(POSITIONS), "int64", "int32")


def _reference(op: Op, values: Sequence[Array | None]) -> list[Array]:
    a: RotaryEmbedding = op.attributes
    x = given(values, 0)
    x = (
        np.swapaxes(x, 1, 2)
        if x.ndim == 4
        else x.reshape(*x.shape[:2], a.heads, x.shape[2] // a.heads)
    )
    positions = values[POSITIONS] if len(values) > POSITIONS else None
    cos, sin = (
        given(values, i) if positions is None else given(values, i)[positions] for i in (1, 2)
    )
    cos, sin = cos[:, :, None], sin[:, :, None]
    result = np.array(x)
    pairs = (slice(0, a.turned, 2), slice(1, a.turned, 2))
    if not a.interleaved:
        pairs = (slice(0, a.turned // 2), slice(a.turned // 2, a.turned))
    one, two = (x[..., part] for part in pairs)
    with ieee():
        result[..., pairs[0]] = cos * one - sin * two
        result[..., pairs[1]] = sin * one + cos * two
    if len(op.output.shape) == 4:
        result = np.swapaxes(result, 1, 2)
    return [np.ascontiguousarray(result).reshape(op.output.shape)]


def _reads(op: Op) -> list[IndexMap]:
    a: RotaryEmbedding = op.attributes
    space, size, half = Space(op), split(op)[3], a.turned // 2
    *outside, last = space.axes
    batch, at = outside[0], outside[-1]
    head = last // size * size  # where it begins, if heads are packed
    if a.turned < size:  # the first are paired, the others copied
        pair, angle = head + space.loop(size), space.loop(half)
    elif a.interleaved:
        pair, angle = last // 2 * 2 + space.loop(2), last // 2 % half
    else:
        pair, angle = head + last % half + space.loop(2) * half, last % half
    has_positions = len(op.inputs) > POSITIONS and op.inputs[POSITIONS] is not None
    table = (Chosen(), angle) if has_positions else (batch, at, angle)
    positions = (batch, at) if has_positions else None
    return [space.make_map((*outside, pair), table, table, positions)]


def _macs(op: Op) -> int:
    batch, heads, sequence, _ = split(op)
    turned: int = op.attributes.turned
    return 2 * batch * heads * sequence * turned


OPS["ROTARY_EMBEDDING"] = OpDefinition(
    _shape, _reference, _macs, _types, lambda op: {POSITIONS: (0, op.input(1).shape[0] - 1)}, _reads
)
