"""Operators that put every element somewhere else: PACK, TILE, DEPTH_TO_SPACE ..."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from covp.errors import ModelError
from covp.graph.attributes import Axes, Axis, Pair, Role
from covp.graph.graph import Op
from covp.graph.index_map import Index, IndexMap, Space, elementwise
from covp.graph.ops.definition import OPS, Array, OpDefinition, Shape, given
from covp.graph.ops.layout import MOVABLE, split_reads


@dataclass(frozen=True)
class SplitV:
    """SPLIT_V into parts of so many elements along an axis (not negative)."""

    axis: Axis
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Pack:
    """PACK: the inputs side by side along a new axis of the output; UNPACK: the reverse."""

    axis: int


@dataclass(frozen=True)
class Tile:
    """TILE: copies along each axis."""

    multiples: Annotated[tuple[int, ...], Role.EACH_AXIS]


@dataclass(frozen=True)
class BroadcastTo:
    """BROADCAST_TO: the shape of the output, with numpy's rules."""

    shape: Annotated[Shape, Role.EACH_AXIS]


@dataclass(frozen=True)
class Reverse:
    """REVERSE_V2 along axes (sorted, not negative)."""

    axes: Axes


@dataclass(frozen=True)
class Blocks:
    """DEPTH_TO_SPACE and SPACE_TO_DEPTH on NHWC images.

    Attributes:
        size: rows and columns of a block.
        order: of the channels of a pixel with depth: "dcr" (TFLite's) has the pixels of a block
            outside and the channels inside, "crd" the reverse.
    """

    size: int
    order: Literal["dcr", "crd"] = "dcr"


@dataclass(frozen=True)
class BatchBlocks:
    """SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND.

    Attributes:
        sizes: of a block along axis 1, 2 ...
        margins: (before, after) along each: paddings of the former, crops of the latter.
        value: of the padding, in stored units.
    """

    sizes: tuple[int, ...]
    margins: tuple[Pair, ...]
    value: float = 0.0


@dataclass(frozen=True)
class Triangle:
    """TRILU of the last two axes: what is above (or below) diagonal ``k`` stays, the rest is 0.

    A second input, an integer, stands for ``k``.
    """

    upper: bool = True
    k: int = 0


def _split_shape(op: Op) -> list[Shape]:
    a, source = op.attributes, op.input(0).shape
    if sum(a.sizes) != source[a.axis] or min(a.sizes) < 0:
        raise ModelError(f"axis {a.axis} of {source} does not split into {list(a.sizes)}")
    return [(*source[: a.axis], size, *source[a.axis + 1 :]) for size in a.sizes]


def _split(op: Op, values: Sequence[Array | None]) -> list[Array]:
    ends = np.cumsum(op.attributes.sizes)[:-1]
    parts = np.split(given(values, 0), ends, axis=op.attributes.axis)
    return [np.ascontiguousarray(part) for part in parts]


def _pack_shape(op: Op) -> list[Shape]:
    shapes = {tensor.shape for tensor in op.inputs if tensor is not None}
    if len(shapes) != 1:
        raise ModelError(f"inputs of the shapes {sorted(shapes)} cannot be packed")
    (shape,) = shapes
    axis = op.attributes.axis
    return [(*shape[:axis], len(op.inputs), *shape[axis:])]


def _pack(op: Op, values: Sequence[Array | None]) -> list[Array]:
    parts = [given(values, position) for position in range(len(values))]
    return [np.stack(parts, axis=op.attributes.axis)]


def _unpack_shape(op: Op) -> list[Shape]:
    axis, source = op.attributes.axis, op.input(0).shape
    if source[axis] != len(op.outputs):
        raise ModelError(f"axis {axis} of {source} does not give {len(op.outputs)} outputs")
    return [source[:axis] + source[axis + 1 :]] * len(op.outputs)


def _unpack(op: Op, values: Sequence[Array | None]) -> list[Array]:
    parts = np.moveaxis(given(values, 0), op.attributes.axis, 0)
    return [np.ascontiguousarray(part).reshape(part.shape) for part in parts]


def _tile_shape(op: Op) -> list[Shape]:
    source, multiples = op.input(0).shape, op.attributes.multiples
    if len(source) != len(multiples) or min(multiples, default=0) < 0:
        raise ModelError(f"multiples {list(multiples)} do not fit the shape {source}")
    return [tuple(n * m for n, m in zip(source, multiples, strict=True))]


def _tile(op: Op, values: Sequence[Array | None]) -> list[Array]:
    return [np.tile(given(values, 0), op.attributes.multiples)]


def _broadcast_shape(op: Op) -> list[Shape]:
    source, shape = op.input(0).shape, op.attributes.shape
    try:
        if tuple(np.broadcast_shapes(source, shape)) == shape:
            return [shape]
    except ValueError:
        pass
    raise ModelError(f"shape {source} cannot be broadcast to {shape}")


def _broadcast(op: Op, values: Sequence[Array | None]) -> list[Array]:
    return [np.broadcast_to(given(values, 0), op.attributes.shape).copy()]


def _same_shape(op: Op) -> list[Shape]:
    return [op.input(0).shape]


def _reverse(op: Op, values: Sequence[Array | None]) -> list[Array]:
    return [np.ascontiguousarray(np.flip(given(values, 0), op.attributes.axes))]


def _image(op: Op) -> tuple[int, int, int, int]:
    shape = op.input(0).shape
    if len(shape) != 4:
        raise ModelError(f"shape {shape} is not NHWC")
    return shape[0], shape[1], shape[2], shape[3]


def _depth_to_space_shape(op: Op) -> list[Shape]:
    batch, height, width, channels = _image(op)
    n = op.attributes.size
    if n < 1 or channels % (n * n):
        raise ModelError(f"{channels} channels do not give blocks of {n}x{n}")
    return [(batch, height * n, width * n, channels // (n * n))]


def _depth_to_space(op: Op, values: Sequence[Array | None]) -> list[Array]:
    batch, height, width, channels = _image(op)
    n, depth = op.attributes.size, channels // op.attributes.size**2
    if op.attributes.order == "dcr":
        parts = given(values, 0).reshape(batch, height, width, n, n, depth)
        moved = parts.transpose(0, 1, 3, 2, 4, 5)
    else:
        parts = given(values, 0).reshape(batch, height, width, depth, n, n)
        moved = parts.transpose(0, 1, 4, 2, 5, 3)
    return [moved.reshape(batch, height * n, width * n, depth)]


def _space_to_depth_shape(op: Op) -> list[Shape]:
    batch, height, width, channels = _image(op)
    n = op.attributes.size
    if n < 1 or height % n or width % n:
        raise ModelError(f"an image of {height}x{width} has no blocks of {n}x{n}")
    return [(batch, height // n, width // n, channels * n * n)]


def _space_to_depth(op: Op, values: Sequence[Array | None]) -> list[Array]:
    batch, height, width, channels = _image(op)
    n = op.attributes.size
    parts = given(values, 0).reshape(batch, height // n, n, width // n, n, channels)
    order = (0, 1, 3, 2, 4, 5) if op.attributes.order == "dcr" else (0, 1, 3, 5, 2, 4)
    return [parts.transpose(order).reshape(_space_to_depth_shape(op)[0])]


def _space_to_batch_shape(op: Op) -> list[Shape]:
    a, source = op.attributes, op.input(0).shape
    wide = [n + sum(m) for n, m in zip(source[1:], a.margins, strict=False)]
    if len(wide) != len(a.sizes) or any(n % size for n, size in zip(wide, a.sizes, strict=True)):
        raise ModelError(f"{source} padded by {a.margins} has no blocks of {a.sizes}")
    inner = (n // size for n, size in zip(wide, a.sizes, strict=True))
    return [(source[0] * math.prod(a.sizes), *inner, *source[1 + len(a.sizes) :])]


def _space_to_batch(op: Op, values: Sequence[Array | None]) -> list[Array]:
    a, x = op.attributes, given(values, 0)
    count = len(a.sizes)
    margins = ((0, 0), *a.margins, *((0, 0),) * (x.ndim - 1 - count))
    x = np.pad(x, margins, constant_values=x.dtype.type(a.value))
    shape = [x.shape[0]]
    for extent, size in zip(x.shape[1:], a.sizes, strict=False):
        shape += [extent // size, size]
    x = x.reshape(*shape, *x.shape[1 + count :])
    blocks, inner = range(2, 2 + 2 * count, 2), range(1, 1 + 2 * count, 2)
    x = x.transpose(*blocks, 0, *inner, *range(1 + 2 * count, x.ndim))
    return [x.reshape(_space_to_batch_shape(op)[0])]


def _batch_to_space_shape(op: Op) -> list[Shape]:
    a, source = op.attributes, op.input(0).shape
    count = len(a.sizes)
    if source[0] % math.prod(a.sizes) or len(source) <= count:
        raise ModelError(f"a batch of {source[0]} has no blocks of {a.sizes}")
    inner = [n * s - sum(m) for n, s, m in zip(source[1:], a.sizes, a.margins, strict=False)]
    if min(inner, default=1) < 1:
        raise ModelError(f"crops {a.margins} leave nothing of {source}")
    return [(source[0] // math.prod(a.sizes), *inner, *source[1 + count :])]


def _batch_to_space(op: Op, values: Sequence[Array | None]) -> list[Array]:
    a, x = op.attributes, given(values, 0)
    count = len(a.sizes)
    batch = x.shape[0] // math.prod(a.sizes)
    parts = x.reshape(*a.sizes, batch, *x.shape[1:])
    order = [count]
    for axis in range(count):
        order += [count + 1 + axis, axis]
    parts = parts.transpose(*order, *range(2 * count + 1, parts.ndim))
    wide = [n * s for n, s in zip(x.shape[1:], a.sizes, strict=False)]
    whole = parts.reshape(batch, *wide, *x.shape[1 + count :])
    middle = (slice(m[0], n - m[1]) for n, m in zip(wide, a.margins, strict=True))
    kept = (slice(None), *middle)
    return [np.ascontiguousarray(whole[kept])]


def _triangle_shape(op: Op) -> list[Shape]:
    if len(op.input(0).shape) < 2:
        raise ModelError(f"shape {op.input(0).shape} is not a matrix")
    return _same_shape(op)


def _triangle(op: Op, values: Sequence[Array | None]) -> list[Array]:
    a, x = op.attributes, given(values, 0)
    given_k = values[1] if len(values) > 1 else None
    k = a.k if given_k is None else int(given_k.reshape(-1)[0])
    rows, columns = np.ogrid[: x.shape[-2], : x.shape[-1]]
    kept = columns - rows >= k if a.upper else columns - rows <= k
    return [np.where(kept, x, x.dtype.type(0))]


def _pack_reads(op: Op) -> list[IndexMap]:
    space, axis = Space(op), op.attributes.axis
    rest = (*space.axes[:axis], *space.axes[axis + 1 :])
    return [space.make_map(*((*rest, space.axes[axis] - n) for n in range(len(op.inputs))))]


def _unpack_reads(op: Op) -> list[IndexMap]:
    axis, maps = op.attributes.axis, []
    for number in range(len(op.outputs)):
        space = Space(op, number)
        maps.append(space.make_map((*space.axes[:axis], Index() + number, *space.axes[axis:])))
    return maps


def _tile_reads(op: Op) -> list[IndexMap]:
    space = Space(op)
    extents = zip(space.axes, op.input(0).shape, op.attributes.multiples, strict=True)
    return [space.make_map(tuple(axis % n if m > 1 and n else axis for axis, n, m in extents))]


def _reverse_reads(op: Op) -> list[IndexMap]:
    space, found = Space(op), []
    for number, (axis, extent) in enumerate(zip(space.axes, op.output.shape, strict=True)):
        found.append(axis * -1 + (extent - 1) if number in op.attributes.axes else axis)
    return [space.make_map(tuple(found))]


def _depth_to_space_reads(op: Op) -> list[IndexMap]:
    space, n, depth = Space(op), op.attributes.size, op.output.shape[3]
    batch, row, column, channel = space.axes
    block = row % n * n + column % n
    dcr = op.attributes.order == "dcr"
    source = block * depth + channel if dcr else channel * (n * n) + block
    return [space.make_map((batch, row // n, column // n, source))]


def _space_to_depth_reads(op: Op) -> list[IndexMap]:
    space, n, depth = Space(op), op.attributes.size, op.input(0).shape[3]
    batch, row, column, channel = space.axes
    if op.attributes.order == "dcr":
        block, source = channel // depth, channel % depth
        down, right = channel // (depth * n), block % n
    else:
        down, right, source = channel // n % n, channel % n, channel // (n * n)
    return [space.make_map((batch, row * n + down, column * n + right, source))]


def _space_to_batch_reads(op: Op) -> list[IndexMap]:
    space, a, batch = Space(op), op.attributes, op.input(0).shape[0]
    outside, count = space.axes[0], len(a.sizes)
    found = [outside % batch]
    for i, (size, (before, _)) in enumerate(zip(a.sizes, a.margins, strict=True)):
        block = outside // (batch * math.prod(a.sizes[i + 1 :])) % size
        found.append(space.axes[1 + i] * size + block - before)
    return [space.make_map((*found, *space.axes[1 + count :]))]


def _batch_to_space_reads(op: Op) -> list[IndexMap]:
    space, a, batch = Space(op), op.attributes, op.output.shape[0]
    count, outside, found = len(a.sizes), space.axes[0], []
    for i, (size, (before, _)) in enumerate(zip(a.sizes, a.margins, strict=True)):
        wide = space.axes[1 + i] + before
        outside += wide % size * (batch * math.prod(a.sizes[i + 1 :]))
        found.append(wide // size)
    return [space.make_map((outside, *found, *space.axes[1 + count :]))]


def _triangle_reads(op: Op) -> list[IndexMap]:
    space = Space(op)
    return [space.make_map(space.axes, *space.whole(1))]


def _last_two(op: Op) -> tuple[int, int]:
    rank = len(op.output.shape)
    return rank - 2, rank - 1


OPS["SPLIT_V"] = OpDefinition(
    _split_shape, _split, types=MOVABLE, reads=lambda op: split_reads(op, 0, op.attributes.axis)
)
OPS["PACK"] = OpDefinition(_pack_shape, _pack, types=MOVABLE, reads=_pack_reads)
OPS["UNPACK"] = OpDefinition(_unpack_shape, _unpack, types=MOVABLE, reads=_unpack_reads)
OPS["TILE"] = OpDefinition(_tile_shape, _tile, types=MOVABLE, reads=_tile_reads)
OPS["BROADCAST_TO"] = OpDefinition(_broadcast_shape, _broadcast, types=MOVABLE, reads=elementwise)
OPS["REVERSE_V2"] = OpDefinition(_same_shape, _reverse, types=MOVABLE, reads=_reverse_reads)
OPS["DEPTH_TO_SPACE"] = OpDefinition(
    _depth_to_space_shape, _depth_to_space, types=MOVABLE, reads=_depth_to_space_reads
)
OPS["SPACE_TO_DEPTH"] = OpDefinition(
    _space_to_depth_shape, _space_to_depth, types=MOVABLE, reads=_space_to_depth_reads
)
OPS["SPACE_TO_BATCH_ND"] = OpDefinition(
    _space_to_batch_shape, _space_to_batch, types=MOVABLE, reads=_space_to_batch_reads
)
OPS["BATCH_TO_SPACE_ND"] = OpDefinition(
    _batch_to_space_shape, _batch_to_space, types=MOVABLE, reads=_batch_to_space_reads
)
OPS["TRILU"] = OpDefinition(
    _triangle_shape, _triangle, types=MOVABLE, reads=_triangle_reads, positional=_last_two
)
