"""Operators that move values."""

from __future__ import annotations

from typing import Any

import numpy as np
import tflite

from covp.errors import ModelError
from covp.graph.attributes import Concatenation, Pad, ResizeNearest, Split, StridedSlice, Transpose
from covp.graph.graph import Op
from covp.graph.tflite.converters.common import (
    checked_axis,
    constant_integers,
    image_size,
    no_attributes,
    options_of,
    positive,
    register,
)


@register("PAD", "PADV2")
def _pad(op: Op, table: Any) -> Pad:
    source = op.input(0)
    flat = constant_integers(op, 1, "the paddings")
    if len(flat) != 2 * len(source.shape) or min(flat, default=0) < 0:
        raise ModelError(f"paddings {flat} do not fit the shape {source.shape}")
    # bytes are copied: the real 0 is what the output's quantization says
    out = op.output
    value: float = out.zero_point if out.quantization is not None else 0.0
    if len(op.inputs) > 2 and op.inputs[2] is not None:
        constant = op.input(2)
        if constant.data is None:
            raise ModelError(f"the padding value ({constant.name}) must be constant")
        value = float(np.asarray(constant.data).reshape(-1)[0])
    return Pad(tuple(zip(flat[::2], flat[1::2], strict=True)), value)


@register("CONCATENATION")
def _concatenation(op: Op, table: Any) -> Concatenation:
    options = options_of(tflite.ConcatenationOptions, table)
    axis = checked_axis(options.Axis(), len(op.output.shape))
    if options.FusedActivationFunction() != tflite.ActivationFunctionType.NONE:
        raise ModelError("a fused activation is not supported; use a RELU operator")
    return Concatenation(axis)


@register("TRANSPOSE")
def _transpose(op: Op, table: Any) -> Transpose:
    rank = len(op.input(0).shape)
    permutation = [checked_axis(axis, rank) for axis in constant_integers(op, 1, "the permutation")]
    if sorted(permutation) != list(range(rank)):
        raise ModelError(f"permutation {permutation} does not fit rank {rank}")
    return Transpose(tuple(permutation))


@register("SPLIT")
def _split(op: Op, table: Any) -> Split:
    axis = constant_integers(op, 0, "the axis")
    return Split(checked_axis(axis[0], len(op.input(1).shape)))


@register("RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR")
def _resize(op: Op, table: Any) -> ResizeNearest:
    nearest = op.kind == "RESIZE_NEAREST_NEIGHBOR"
    kind = tflite.ResizeNearestNeighborOptions if nearest else tflite.ResizeBilinearOptions
    options = options_of(kind, table)
    image_size(op.input(0))
    size = constant_integers(op, 1, "the size")
    if len(size) != 2:
        raise ModelError(f"the size {size} is not (height, width)")
    return ResizeNearest(
        positive((size[0], size[1]), "the size"),
        bool(options.AlignCorners()),
        bool(options.HalfPixelCenters()),
    )


@register("STRIDED_SLICE")
def _strided_slice(op: Op, table: Any) -> StridedSlice:
    options = options_of(tflite.StridedSliceOptions, table)
    shape = op.input(0).shape
    begin, end, stride = (
        constant_integers(op, position, what)
        for position, what in ((1, "begin"), (2, "end"), (3, "the strides"))
    )
    if not len(begin) == len(end) == len(stride):
        raise ModelError("begin, end and strides are not of one length")
    slices: list[tuple[int, int | None, int]] = []
    shrink, new_axes, position = [], [], 0  # the position is in the output
    for entry, axis in _entries(options, len(begin), len(shape)):
        if axis is None:
            new_axes.append(position)
        elif entry is None:
            slices.append((0, shape[axis], 1))
        elif options.ShrinkAxisMask() & 1 << entry:
            at = checked_axis(begin[entry], shape[axis])
            slices.append((at, at + 1, 1))
            shrink.append(axis)
            continue
        else:
            first = None if options.BeginMask() & 1 << entry else begin[entry]
            last = None if options.EndMask() & 1 << entry else end[entry]
            if options.Offset() and last is not None:  # it counts from the first element
                last += _resolve(slice(first, None, stride[entry]), shape[axis], axis)[0]
            slices.append(_resolve(slice(first, last, stride[entry]), shape[axis], axis))
        position += 1
    return StridedSlice(tuple(slices), tuple(shrink), tuple(new_axes))


def _entries(options: Any, count: int, rank: int) -> list[tuple[int | None, int | None]]:
    """Pair slice entries with input axes; no entry means a whole axis, no axis a new one.

    An ellipsis stands for as many whole axes as the others leave; without one it is at the end.
    """
    ellipsis, new = int(options.EllipsisMask()), int(options.NewAxisMask())
    given = [e for e in range(count) if not ellipsis & 1 << e and not new & 1 << e]
    rest = rank - len(given)
    if rest < 0 or bin(ellipsis).count("1") > 1:
        raise ModelError(f"{len(given)} slices for {rank} axes")
    entries: list[tuple[int | None, int | None]] = []
    axis = 0
    for entry in range(count):
        if ellipsis & 1 << entry:
            entries += [(None, axis + i) for i in range(rest)]
            axis += rest
        elif new & 1 << entry:
            entries.append((entry, None))
        else:
            entries.append((entry, axis))
            axis += 1
    return entries + [(None, i) for i in range(axis, rank)]


def _resolve(wanted: slice, extent: int, axis: int) -> tuple[int, int | None, int]:
    if wanted.step == 0:
        raise ModelError(f"stride 0 on axis {axis}")
    start, stop, step = wanted.indices(extent)
    return start, None if stop < 0 else stop, step


register("RESHAPE")(no_attributes)
