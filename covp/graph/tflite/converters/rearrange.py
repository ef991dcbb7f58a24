"""Operators that put every element somewhere else: SLICE, PACK, TILE, DEPTH_TO_SPACE ..."""

from __future__ import annotations

from typing import Any

import tflite

from covp.errors import ModelError
from covp.graph.attributes import Pair, StridedSlice
from covp.graph.graph import Op
from covp.graph.ops.rearrange import (
    BatchBlocks,
    Blocks,
    BroadcastTo,
    Pack,
    Reverse,
    SplitV,
    Tile,
)
from covp.graph.tflite.converters.common import (
    checked_axis,
    constant_axes,
    constant_integers,
    options_of,
    register,
)


@register("SLICE")
def _slice(op: Op, table: Any) -> StridedSlice:
    shape = op.input(0).shape
    begin, size = constant_integers(op, 1, "begin"), constant_integers(op, 2, "the size")
    if not len(begin) == len(size) == len(shape):
        raise ModelError(f"begin and size do not have the rank of {shape}")
    slices: list[tuple[int, int | None, int]] = []
    for axis, extent in enumerate(shape):
        count = extent - begin[axis] if size[axis] == -1 else size[axis]
        if begin[axis] < 0 or count < 0 or begin[axis] + count > extent:
            raise ModelError(f"begin {begin} and size {size} leave the shape {shape}")
        slices.append((begin[axis], begin[axis] + count, 1))
    return StridedSlice(tuple(slices))


@register("SPLIT_V")
def _split(op: Op, table: Any) -> SplitV:
    shape = op.input(0).shape
    axis = checked_axis(constant_integers(op, 2, "the axis")[0], len(shape))
    sizes = constant_integers(op, 1, "the sizes")
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = shape[axis] - sum(sizes) - 1
    if len(sizes) != len(op.outputs):
        raise ModelError(f"{len(sizes)} sizes for {len(op.outputs)} outputs")
    return SplitV(axis, tuple(sizes))


@register("PACK")
def _pack(op: Op, table: Any) -> Pack:
    axis = options_of(tflite.PackOptions, table).Axis() if table is not None else 0
    return Pack(checked_axis(axis, len(op.input(0).shape) + 1))


@register("UNPACK")
def _unpack(op: Op, table: Any) -> Pack:
    axis = options_of(tflite.UnpackOptions, table).Axis() if table is not None else 0
    return Pack(checked_axis(axis, len(op.input(0).shape)))


@register("TILE")
def _tile(op: Op, table: Any) -> Tile:
    return Tile(tuple(constant_integers(op, 1, "the multiples")))


@register("BROADCAST_TO")
def _broadcast(op: Op, table: Any) -> BroadcastTo:
    return BroadcastTo(tuple(constant_integers(op, 1, "the shape")))


@register("REVERSE_V2")
def _reverse(op: Op, table: Any) -> Reverse:
    return Reverse(constant_axes(op, 1, len(op.input(0).shape)))


@register("DEPTH_TO_SPACE")
def _depth_to_space(op: Op, table: Any) -> Blocks:
    return Blocks(int(options_of(tflite.DepthToSpaceOptions, table).BlockSize()))


@register("SPACE_TO_DEPTH")
def _space_to_depth(op: Op, table: Any) -> Blocks:
    return Blocks(int(options_of(tflite.SpaceToDepthOptions, table).BlockSize()))


@register("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND")
def _batch_blocks(op: Op, table: Any) -> BatchBlocks:
    sizes = constant_integers(op, 1, "the block's sizes")
    flat = constant_integers(op, 2, "the margins")
    if len(flat) != 2 * len(sizes) or min(sizes) < 1 or min(flat) < 0:
        raise ModelError(f"blocks {sizes} and margins {flat} do not fit each other")
    margins: tuple[Pair, ...] = tuple(zip(flat[::2], flat[1::2], strict=True))
    out = op.output
    return BatchBlocks(tuple(sizes), margins, 0.0 if out.quantization is None else out.zero_point)
