"""RESIZE_BILINEAR as TFLite has it: reference_ops::ResizeBilinear and ResizeBilinearInteger.

Integers are weighed with 10 bits for each axis; the sum of 20 bits is rounded half away from zero.
Its attributes are those of RESIZE_NEAREST_NEIGHBOR.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from covp.errors import ModelError
from covp.graph.graph import Op
from covp.graph.index_map import IndexMap, Listed, Space
from covp.graph.ops.definition import OPS, Array, OpDefinition, Shape, given, ieee, of_one_type

BITS = 10


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The neighbours along one axis of each element of the output.

    Attributes:
        lower, upper: the elements of the input that it lies between.
        weight: of the upper one; float32, or an integer of 10 bits. The lower one has the rest.
    """

    lower: Array
    upper: Array
    weight: Array


def neighbours(op: Op, axis: int) -> Neighbours:
    """Return the neighbours of each row (axis 0) or column (axis 1)."""
    a = op.attributes
    source, target = op.input(0).shape[axis + 1], a.size[axis]
    apart = a.align_corners and target > 1
    extents = (source - 1, target - 1) if apart else (source, target)
    if op.output.dtype == np.float32:
        return _float(source, target, extents, a.half_pixel_centers)
    return _fixed_point(source, target, extents, a.half_pixel_centers)


def _float(source: int, target: int, extents: tuple[int, int], half_pixel: bool) -> Neighbours:
    scale = np.float32(extents[0]) / np.float32(extents[1])
    y = np.arange(target, dtype=np.float32)
    half = np.float32(0.5)
    at = (y + half) * scale - half if half_pixel else y * scale
    lower = np.maximum(np.floor(at), 0).astype(np.int64)
    upper = np.minimum(np.ceil(at), source - 1).astype(np.int64)
    return Neighbours(lower, upper, at - lower.astype(np.float32))


def _fixed_point(
    source: int, target: int, extents: tuple[int, int], half_pixel: bool
) -> Neighbours:
    one = 1 << BITS
    scale = (one * extents[0] + extents[1] // 2) // extents[1]
    at = np.arange(target, dtype=np.int64) * scale
    if half_pixel:
        at = at + scale // 2 - one // 2
    # a negative coordinate is truncated towards zero, as in C
    lower = np.maximum(at, 0) // one
    upper = np.minimum(np.maximum(at + one - 1, 0) // one, source - 1)
    return Neighbours(lower, upper, at - one * lower)


def _shape(op: Op) -> list[Shape]:
    shape = op.input(0).shape
    if len(shape) != 4:
        raise ModelError(f"shape {shape} is not NHWC")
    if op.attributes.align_corners and op.attributes.half_pixel_centers:
        raise ModelError("align_corners and half_pixel_centers exclude each other")
    return [(shape[0], *op.attributes.size, shape[3])]


def _reference(op: Op, values: Sequence[Array | None]) -> list[Array]:
    x = given(values, 0)
    rows, columns = neighbours(op, 0), neighbours(op, 1)
    floating = x.dtype == np.float32
    one = np.float32(1) if floating else np.int64(1 << BITS)
    source = x if floating else x.astype(np.int64)
    wy, wx = rows.weight[:, None, None], columns.weight[:, None]

    def part(at: Array, beside: Array) -> Array:
        return source[:, at][:, :, beside]

    with ieee():
        total = (
            part(rows.lower, columns.lower) * (one - wy) * (one - wx)
            + part(rows.upper, columns.lower) * wy * (one - wx)
            + part(rows.lower, columns.upper) * (one - wy) * wx
            + part(rows.upper, columns.upper) * wy * wx
        )
    if floating:
        return [total.astype(np.float32)]
    magnitude = (np.abs(total) + (1 << (2 * BITS - 1))) >> (2 * BITS)
    return [(np.sign(total) * magnitude).astype(x.dtype)]


def _reads(op: Op) -> list[IndexMap]:
    space, (rows, columns) = Space(op), (neighbours(op, 0), neighbours(op, 1))
    read = [
        Listed(1 + axis, tuple(map(int, at.lower)), tuple(map(int, at.upper)))
        for axis, at in enumerate((rows, columns))
    ]
    return [space.make_map((space.axes[0], *read, space.axes[3]))]


OPS["RESIZE_BILINEAR"] = OpDefinition(
    _shape,
    _reference,
    types=of_one_type("int8", "uint8", "int16", "float32"),
    reads=_reads,
    positional=lambda op: (1, 2),  # weights depend on the phase
)
