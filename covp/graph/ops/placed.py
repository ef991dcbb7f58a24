"""Operators that look up each axis on its own: MIRROR_PAD, pads and slices known at run time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from covp.errors import ModelError
from covp.graph.attributes import Pair, Role
from covp.graph.graph import Op
from covp.graph.index_map import Chosen, IndexMap, Listed, Space
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

PadMode = Literal["constant", "reflect", "symmetric", "edge", "wrap"]
"""Modes of numpy.pad; ONNX's reflect and TFLite's REFLECT do not repeat the edge."""


@dataclass(frozen=True)
class MirrorPad:
    """MIRROR_PAD: (before, after) for each axis, filled from the tensor itself."""

    paddings: Annotated[tuple[Pair, ...], Role.EACH_AXIS]
    mode: PadMode


@dataclass(frozen=True)
class DynamicPad:
    """DYNAMIC_PAD: the inputs are data, pads, value (None: 0) and axes (None: all), as ONNX's Pad.

    Attributes:
        shape: of the output; pads that give another one are cut or continued.
        mode: what fills the margins.
    """

    shape: Shape
    mode: PadMode = "constant"


@dataclass(frozen=True)
class DynamicSlice:
    """DYNAMIC_SLICE: the inputs are data, starts, axes (None: the first) and steps (None: 1).

    Attributes:
        shape: of the output; ONNX's ends say no more.
    """

    shape: Shape


def places(mode: PadMode, start: int, count: int, extent: int) -> Array:
    """Return the element of an axis that each of ``count`` positions from ``start`` on shows.

    Position 0 is element 0; -1 stands for the value of a constant margin.
    """
    at = np.arange(start, start + count)
    if mode == "constant":
        return np.where((at >= 0) & (at < extent), at, -1)
    if mode == "edge" or extent == 1:
        return np.clip(at, 0, extent - 1)
    if mode == "wrap":
        return at % extent
    period = 2 * extent - 2 if mode == "reflect" else 2 * extent
    at = at % period
    return np.where(at < extent, at, period - at - (mode == "symmetric"))


def _mirror_shape(op: Op) -> list[Shape]:
    source, pads = op.input(0).shape, op.attributes.paddings
    if len(source) != len(pads) or min(min(pair, default=0) for pair in pads) < 0:
        raise ModelError(f"paddings {pads} do not fit the shape {source}")
    if any(n == 0 and sum(pair) for n, pair in zip(source, pads, strict=True)):
        raise ModelError(f"{source} has nothing to fill its margins from")
    return [tuple(n + sum(pair) for n, pair in zip(source, pads, strict=True))]


def _mirror(op: Op, values: Sequence[Array | None]) -> list[Array]:
    return [np.pad(given(values, 0), op.attributes.paddings, op.attributes.mode)]


def _chosen_axes(axes: Array | None, rank: int) -> list[int]:
    return list(range(rank)) if axes is None else [int(axis) % rank for axis in axes.reshape(-1)]


def _stated_shape(op: Op) -> list[Shape]:
    shape, source = op.attributes.shape, op.input(0).shape
    if len(shape) != len(source):
        raise ModelError(f"{source} cannot become {shape}")
    axes = op.input(1).size // (2 if op.kind == "DYNAMIC_PAD" else 1)
    counts = {len(source) if op.kind == "DYNAMIC_PAD" else axes}
    if len(op.inputs) > 3 and op.inputs[3] is not None and op.kind == "DYNAMIC_PAD":
        counts = {op.input(3).size}
    if op.kind == "DYNAMIC_SLICE":
        counts |= {t.size for t in op.inputs[2:] if t is not None}
        if any(n and not m for n, m in zip(shape, source, strict=True)):
            raise ModelError(f"{source} has no element")
    if counts != {axes} or axes > len(source):
        raise ModelError(f"operands for {axes} axes do not fit the shape {source}")
    return [shape]


def _pad_types(op: Op) -> None:
    value = len(op.inputs) > 2 and op.inputs[2] is not None
    if value and op.input(2).size != 1:
        raise ModelError(f"the value of the padding is of shape {op.input(2).shape}, not one value")
    of_one_type(*ELEMENT_TYPES, data=(0, 2) if value else (0,))(op)
    for position in (1, 3):
        if len(op.inputs) > position and op.inputs[position] is not None:
            check_type(op.input(position), "int32", "int64")


def _pad(op: Op, values: Sequence[Array | None]) -> list[Array]:
    x, pads, value, axes = (*values, None, None)[:4]
    assert x is not None and pads is not None
    chosen = _chosen_axes(axes, x.ndim)
    before = [0] * x.ndim
    for axis, count in zip(chosen, pads.reshape(-1)[: len(chosen)], strict=True):
        before[axis] = int(count)
    shown = [
        places(op.attributes.mode, -start, count, extent)
        for start, count, extent in zip(before, op.attributes.shape, x.shape, strict=True)
    ]
    at = np.ix_(*shown)
    outside = np.zeros(op.attributes.shape, bool)
    for part in at:
        outside = outside | (part < 0)
    fill = x.dtype.type(0) if value is None else value.reshape(-1)[0]
    return [np.where(outside, fill, x[at]) if x.size else np.full(op.attributes.shape, fill)]


def _slice_types(op: Op) -> None:
    MOVABLE(op)
    for position in range(1, len(op.inputs)):
        if op.inputs[position] is not None:
            check_type(op.input(position), "int32", "int64")


def _slice(op: Op, values: Sequence[Array | None]) -> list[Array]:
    x, starts, axes, steps = (*values, None, None)[:4]
    assert x is not None and starts is not None
    shown = [
        np.minimum(np.arange(count), extent - 1)
        for count, extent in zip(op.attributes.shape, x.shape, strict=True)
    ]
    strides = np.ones(starts.size, int) if steps is None else steps.reshape(-1)
    chosen = _chosen_axes(axes, x.ndim)[: starts.size]
    for axis, start, step in zip(chosen, starts.reshape(-1), strides, strict=True):
        extent = x.shape[axis]
        first = int(start) + (extent if start < 0 else 0)
        first = min(max(first, 0), extent - (step < 0))
        shown[axis] = np.clip(first + shown[axis] * int(step), 0, max(extent - 1, 0))
    return [x[np.ix_(*shown)]]


def _mirror_reads(op: Op) -> list[IndexMap]:
    space, a, found = Space(op), op.attributes, []
    extents = zip(op.input(0).shape, op.output.shape, a.paddings, strict=True)
    for axis, (extent, wide, (before, after)) in enumerate(extents):
        at = tuple(places(a.mode, -before, wide, extent).tolist())
        found.append(Listed(axis, at, at) if before or after else space.axes[axis])
    return [space.make_map(tuple(found))]


def _dynamic_reads(op: Op) -> list[IndexMap]:
    space = Space(op)
    return [space.make_map((Chosen(),) * len(space.axes), *space.whole(*range(1, len(op.inputs))))]


def _all_axes(op: Op) -> range:
    return range(len(op.output.shape))


OPS["MIRROR_PAD"] = OpDefinition(_mirror_shape, _mirror, types=MOVABLE, reads=_mirror_reads)
OPS["DYNAMIC_PAD"] = OpDefinition(
    _stated_shape, _pad, types=_pad_types, reads=_dynamic_reads, positional=_all_axes
)
OPS["DYNAMIC_SLICE"] = OpDefinition(
    _stated_shape, _slice, types=_slice_types, reads=_dynamic_reads, positional=_all_axes
)
