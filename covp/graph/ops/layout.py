"""Operators that only move values: IDENTITY, RESHAPE, PAD, CONCATENATION, slices, RESIZE ..."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from covp.errors import ModelError
from covp.graph.graph import Op
from covp.graph.index_map import Index, IndexMap, Listed, Space, elementwise, regroup
from covp.graph.ops.definition import OPS, Array, OpDefinition, Shape, given, of_one_type

ELEMENT_TYPES = (
    *("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"),
    *("float32", "bool"),
)
"""Types of elements that can be moved: every type that C has a name for."""
MOVABLE = of_one_type(*ELEMENT_TYPES)
"""The rule of operators that move the elements of their first input."""


def _reshape_shape(op: Op) -> list[Shape]:
    source, out = op.input(0), op.output
    if source.size != out.size:
        raise ModelError(f"cannot reshape {source.shape} to {out.shape}")
    return [out.shape]


def _reshape(op: Op, values: Sequence[Array | None]) -> list[Array]:
    return [given(values, 0).reshape(op.output.shape)]


def _pad_shape(op: Op) -> list[Shape]:
    pads = op.attributes.paddings
    return [tuple(n + a + b for n, (a, b) in zip(op.input(0).shape, pads, strict=True))]


def _pad(op: Op, values: Sequence[Array | None]) -> list[Array]:
    x = given(values, 0)
    value = x.dtype.type(op.attributes.value)
    return [np.pad(x, op.attributes.paddings, constant_values=value)]


def _concatenation_shape(op: Op) -> list[Shape]:
    axis = op.attributes.axis
    shapes = [tensor.shape for tensor in op.inputs if tensor is not None]
    rest = {shape[:axis] + shape[axis + 1 :] for shape in shapes}
    if len(rest) != 1 or any(len(shape) <= axis for shape in shapes):
        raise ModelError(f"shapes {shapes} do not join along axis {axis}")
    joined = sum(shape[axis] for shape in shapes)
    return [(*shapes[0][:axis], joined, *shapes[0][axis + 1 :])]


def _concatenation(op: Op, values: Sequence[Array | None]) -> list[Array]:
    parts = [rescaled_part(op, i, given(values, i)) for i in range(len(op.inputs))]
    return [np.concatenate(parts, axis=op.attributes.axis)]


def rescaled_part(op: Op, position: int, x: Array) -> Array:
    """Convert an input of a CONCATENATION to the output's quantization, as QUANTIZE does."""
    source, target = op.input(position), op.output
    if x.dtype != np.int8 or source.quantization is None or target.quantization is None:
        return x
    if (source.scale, source.zero_point) == (target.scale, target.zero_point):
        return x
    quantize = Op("QUANTIZE", op.name, [source], [target], None, op.index, op.rounding)
    return OPS["QUANTIZE"].reference(quantize, [x])[0]


def _transpose_shape(op: Op) -> list[Shape]:
    return [tuple(op.input(0).shape[axis] for axis in op.attributes.permutation)]


def _transpose(op: Op, values: Sequence[Array | None]) -> list[Array]:
    return [given(values, 0).transpose(op.attributes.permutation).copy()]


def _slice_shape(op: Op) -> list[Shape]:
    return [_take_slices(op, np.broadcast_to(np.int8(0), op.input(0).shape)).shape]


def _slice(op: Op, values: Sequence[Array | None]) -> list[Array]:
    return [_take_slices(op, given(values, 0)).copy()]


def _take_slices(op: Op, x: Array) -> Array:
    a = op.attributes
    taken = x[tuple(slice(*bounds) for bounds in a.slices)]
    shape = [extent for axis, extent in enumerate(taken.shape) if axis not in a.shrink]
    for axis in a.new_axes:
        shape.insert(axis, 1)
    return taken.reshape(shape)


def _split_shape(op: Op) -> list[Shape]:
    axis, source, parts = op.attributes.axis, op.input(1).shape, len(op.outputs)
    if source[axis] % parts:
        raise ModelError(f"axis {axis} of {source} does not split into {parts} equal parts")
    return [(*source[:axis], source[axis] // parts, *source[axis + 1 :])] * parts


def _split(op: Op, values: Sequence[Array | None]) -> list[Array]:
    parts = np.split(given(values, 1), len(op.outputs), axis=op.attributes.axis)
    return [np.ascontiguousarray(part) for part in parts]


def nearest_indices(
    source: int, target: int, align_corners: bool, half_pixel_centers: bool
) -> list[int]:
    """Return the source row (or column) of each target row: reference_ops::GetNearestNeighbor.

    Args:
        source, target: rows before and after, positive.
        align_corners: the first and last rows of both coincide.
        half_pixel_centers: rows are compared at their middle; not with ``align_corners``.
    """
    if align_corners and target > 1:
        scale = np.float32(source - 1) / np.float32(target - 1)
    else:
        scale = np.float32(source) / np.float32(target)
    offset = np.float32(0.5 if half_pixel_centers else 0.0)
    indices = []
    for i in range(target):
        at = (np.float32(i) + offset) * scale
        # TfLiteRound: half away from zero
        index = int(np.floor(at + np.float32(0.5))) if align_corners else int(np.floor(at))
        indices.append(max(min(index, source - 1), 0))
    return indices


def _resize_shape(op: Op) -> list[Shape]:
    batch, _, _, channels = op.input(0).shape
    return [(batch, *op.attributes.size, channels)]


def _resize(op: Op, values: Sequence[Array | None]) -> list[Array]:
    a, x = op.attributes, given(values, 0)
    rows, columns = (
        nearest_indices(x.shape[i + 1], a.size[i], a.align_corners, a.half_pixel_centers)
        for i in (0, 1)
    )
    return [np.ascontiguousarray(x[:, rows][:, :, columns])]


def _reshape_reads(op: Op) -> list[IndexMap]:
    space = Space(op)
    return [space.make_map(regroup(op.output.shape, space.axes, op.input(0).shape))]


def _pad_reads(op: Op) -> list[IndexMap]:
    space = Space(op)
    pairs = zip(space.axes, op.attributes.paddings, strict=True)
    return [space.make_map(tuple(axis - before for axis, (before, _) in pairs))]


def placed_along(space: Space, axis: int, start: int) -> tuple[Index, ...]:
    """Return the output's axes as indices, shifted along one axis by where a part begins."""
    return (*space.axes[:axis], space.axes[axis] - start, *space.axes[axis + 1 :])


def _concatenation_reads(op: Op) -> list[IndexMap]:
    space, axis, start = Space(op), op.attributes.axis, 0
    found = []
    for position in range(len(op.inputs)):
        found.append(placed_along(space, axis, start))
        start += op.input(position).shape[axis]
    return [space.make_map(*found)]


def _transpose_reads(op: Op) -> list[IndexMap]:
    space, order = Space(op), op.attributes.permutation
    return [space.make_map(tuple(space.axes[order.index(axis)] for axis in range(len(order))))]


def _slice_reads(op: Op) -> list[IndexMap]:
    space, a = Space(op), op.attributes
    axes = iter([axis for number, axis in enumerate(space.axes) if number not in a.new_axes])
    found = []
    for axis, (bounds, extent) in enumerate(zip(a.slices, op.input(0).shape, strict=True)):
        taken = range(*slice(*bounds).indices(extent))
        found.append((Index() if axis in a.shrink else next(axes)) * taken.step + taken.start)
    return [space.make_map(tuple(found))]


def split_reads(op: Op, data: int, axis: int) -> list[IndexMap]:
    """Return the map for outputs that lie one after the other along an axis of an input."""
    maps, start = [], 0
    for number, output in enumerate(op.outputs):
        space = Space(op, number)
        maps.append(space.make_map(*[None] * data, placed_along(space, axis, -start)))
        start += output.shape[axis]
    return maps


def _resize_reads(op: Op) -> list[IndexMap]:
    a, space, read = op.attributes, Space(op), []
    for i in (0, 1):
        extents = op.input(0).shape[i + 1], a.size[i]
        at = tuple(nearest_indices(*extents, a.align_corners, a.half_pixel_centers))
        read.append(Listed(i + 1, at, at))
    return [space.make_map((space.axes[0], *read, space.axes[3]))]


OPS["RESHAPE"] = OpDefinition(_reshape_shape, _reshape, types=MOVABLE, reads=_reshape_reads)
OPS["PAD"] = OPS["PADV2"] = OpDefinition(_pad_shape, _pad, types=MOVABLE, reads=_pad_reads)
OPS["CONCATENATION"] = OpDefinition(
    _concatenation_shape,
    _concatenation,
    types=of_one_type(*ELEMENT_TYPES, data=None),
    reads=_concatenation_reads,
)
OPS["TRANSPOSE"] = OpDefinition(_transpose_shape, _transpose, types=MOVABLE, reads=_transpose_reads)
OPS["STRIDED_SLICE"] = OPS["SLICE"] = OpDefinition(
    _slice_shape, _slice, types=MOVABLE, reads=_slice_reads
)
OPS["SPLIT"] = OpDefinition(
    _split_shape,
    _split,
    types=of_one_type(*ELEMENT_TYPES, data=(1,)),
    reads=lambda op: split_reads(op, 1, op.attributes.axis),
)
OPS["RESIZE_NEAREST_NEIGHBOR"] = OpDefinition(
    _resize_shape, _resize, types=MOVABLE, reads=_resize_reads
)


def _identity_shape(op: Op) -> list[Shape]:
    return [op.input(0).shape]


def _identity_reference(op: Op, values: Sequence[Array | None]) -> list[Array]:
    return [given(values, 0).copy()]


def _any_type(op: Op) -> None:
    """Accept every type: the bytes are copied whatever they mean."""


OPS["IDENTITY"] = OpDefinition(
    _identity_shape, _identity_reference, types=_any_type, reads=elementwise
)
