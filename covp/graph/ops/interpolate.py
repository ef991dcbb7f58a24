"""INTERPOLATE along one axis by tables, and RESIZE_TAPS: the tables of ONNX's Resize.

Resize works axis by axis: element y of the output is at x of the input (the coordinate
transformation mode says where), and a filter weighs the elements around x. Tables of constant
scales are folded; others are computed at run time, in double precision.

Source: the ONNX specification of Resize. The filters are functions of the distance d, which
antialiasing stretches by the scale where that is below 1:

    linear: 1 - d                                       d < 1
    cubic:  (a + 2) d**3 - (a + 3) d**2 + 1             d <= 1
            a d**3 - 5 a d**2 + 8 a d - 4 a             d < 2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from covp.errors import ModelError
from covp.graph.attributes import Axis
from covp.graph.graph import Op
from covp.graph.index_map import Chosen, IndexMap, Listed, Read, Space
from covp.graph.ops.definition import OPS, Array, OpDefinition, Shape, check_type, given, ieee

Coordinates = Literal[
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_crop_and_resize",
]
Rounding = Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
Policy = Literal["stretch", "not_larger", "not_smaller"]


@dataclass(frozen=True)
class Interpolate:
    """INTERPOLATE: the inputs are data, indices and weights, both (elements, taps).

    Attributes:
        axis: that is replaced (not negative).
        outside: what an index of -1 stands for.
    """

    axis: Axis
    outside: float = 0.0


@dataclass(frozen=True)
class ResizeTaps:
    """RESIZE_TAPS: the inputs are scales (float32) or sizes (int64), and the roi or None.

    The outputs are int32 indices and, but for "nearest", float32 weights, both (size, taps);
    indices of "nearest" are (size,).

    Attributes:
        extents: of the axes that the inputs are about.
        position: of the axis of this operator among them.
        size: of that axis in the output.
        taps: elements that are weighed.
        mode, coordinates, rounding, cubic, antialias, exclude_outside, policy: as Resize has them.
    """

    extents: tuple[int, ...]
    position: int
    size: int
    taps: int
    mode: Literal["nearest", "linear", "cubic"]
    coordinates: Coordinates = "half_pixel"
    rounding: Rounding = "round_prefer_floor"
    cubic: float = -0.75
    antialias: bool = False
    exclude_outside: bool = False
    policy: Policy = "stretch"

    @property
    def extent(self) -> int:
        """Extent of the axis in the input."""
        return self.extents[self.position]


def _interpolate_types(op: Op) -> None:
    for tensor, dtype in (
        (op.input(0), "float32"),
        (op.input(1), "int32"),
        (op.input(2), "float32"),
    ):
        check_type(tensor, dtype)


def _interpolate_shape(op: Op) -> list[Shape]:
    axis, source, table = op.attributes.axis, op.input(0).shape, op.input(1).shape
    if len(table) != 2 or table != op.input(2).shape:
        raise ModelError(f"tables of {table} and {op.input(2).shape} do not fit each other")
    return [(*source[:axis], table[0], *source[axis + 1 :])]


def _interpolate(op: Op, values: Sequence[Array | None]) -> list[Array]:
    a, x, indices = op.attributes, given(values, 0), given(values, 1)
    x = np.moveaxis(x, a.axis, 0)
    result = np.zeros((indices.shape[0], *x.shape[1:]), np.float32)
    ones = (1,) * (x.ndim - 1)
    for tap, weights in zip(indices.T, given(values, 2).T, strict=True):
        part = np.where(tap.reshape(-1, *ones) < 0, np.float32(a.outside), x[np.maximum(tap, 0)])
        result += part * weights.reshape(-1, *ones)
    return [np.ascontiguousarray(np.moveaxis(result, 0, a.axis))]


def _interpolate_reads(op: Op) -> list[IndexMap]:
    space, axis, table = Space(op), op.attributes.axis, op.input(1)
    at: Read = Chosen()
    if table.data is not None and table.size and table.data.min() >= 0:
        first, last = table.data.min(axis=1), table.data.max(axis=1)
        at = Listed(axis, tuple(first.tolist()), tuple(last.tolist()))
    entry = space.axes[axis], space.loop(table.shape[1])
    return [space.make_map((*space.axes[:axis], at, *space.axes[axis + 1 :]), entry, entry)]


def _taps_types(op: Op) -> None:
    check_type(op.input(0), "float32", "int64")
    if op.inputs[1] is not None:
        check_type(op.input(1), "float32")


def _taps_shape(op: Op) -> list[Shape]:
    a = op.attributes
    for tensor, count in zip(op.inputs, (1, 2), strict=True):
        if tensor is not None and tensor.size != count * len(a.extents):
            raise ModelError(
                f"{tensor.name} has {tensor.size} values for {len(a.extents)} axes",
                tensor=tensor.name,
            )
    return [(a.size,)] if a.mode == "nearest" else [(a.size, a.taps)] * 2


def _scale(a: ResizeTaps, wanted: Array) -> float:
    """Return the factor by which the axis grows."""
    if wanted.dtype == np.float32:
        return float(wanted.reshape(-1)[a.position])
    each = [int(n) / extent for n, extent in zip(wanted.reshape(-1), a.extents, strict=True)]
    if a.policy == "stretch":
        return each[a.position]
    return min(each) if a.policy == "not_larger" else max(each)


def _places(a: ResizeTaps, scale: float, roi: Array | None) -> Array:
    """Map each output index to its input coordinate, by the coordinate transformation mode."""
    y, width = np.arange(a.size, dtype=np.float64), scale * a.extent
    if a.coordinates == "align_corners":
        return y * 0 if width == 1 else y * (a.extent - 1) / (width - 1)
    if a.coordinates == "asymmetric":
        return y / scale
    if a.coordinates == "tf_crop_and_resize":
        assert roi is not None
        flat = roi.reshape(-1)
        start, end = (float(flat[n * len(a.extents) + a.position]) for n in (0, 1))
        if width == 1:
            return y * 0 + (start + end) * (a.extent - 1) / 2
        return start * (a.extent - 1) + y * (end - start) * (a.extent - 1) / (width - 1)
    middle = (y + 0.5) / scale - 0.5
    if a.coordinates == "pytorch_half_pixel" and width == 1:
        return y * 0 - 0.5
    if a.coordinates == "half_pixel_symmetric":
        return middle + a.extent / 2 * (1 - a.size / width)
    return middle


def _filter(a: ResizeTaps, distance: Array) -> Array:
    if a.mode == "linear":
        return np.asarray(np.maximum(1 - distance, 0))
    near = ((a.cubic + 2) * distance - (a.cubic + 3)) * distance**2 + 1
    far = ((a.cubic * distance - 5 * a.cubic) * distance + 8 * a.cubic) * distance - 4 * a.cubic
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0))


def _nearest(a: ResizeTaps, x: Array) -> Array:
    """Return the indices of the elements nearest to places."""
    nearest = {
        "floor": lambda: np.floor(x),
        "ceil": lambda: np.ceil(x),
        "round_prefer_floor": lambda: np.ceil(x - 0.5),
        "round_prefer_ceil": lambda: np.floor(x + 0.5),
    }[a.rounding]()
    return np.clip(nearest, 0, a.extent - 1).astype(np.int32)


def nearby(a: ResizeTaps, wanted: Array) -> tuple[int, ...]:
    """Return the indices of nearest elements where places are off by the precision of float32.

    Args:
        a: of a RESIZE_TAPS of nearest elements.
        wanted: its scales or sizes.
    """
    x = _places(a, _scale(a, wanted), None)
    off = 2.0**-21 * max(a.extent, a.size)
    ours, low, high = (_nearest(a, place) for place in (x, x - off, x + off))
    return tuple(np.where(low != ours, low, high).tolist())


def _taps(op: Op, values: Sequence[Array | None]) -> list[Array]:
    a = op.attributes
    scale = _scale(a, given(values, 0))
    x = _places(a, scale, values[1])
    if a.mode == "nearest":
        return [_nearest(a, x)]
    shrink = min(scale, 1.0) if a.antialias else 1.0
    first = np.floor(x - (1 if a.mode == "linear" else 2) / shrink) + 1
    at = first[:, None] + np.arange(a.taps)
    with ieee():
        weights = _filter(a, np.abs(at - x[:, None]) * shrink)
        if a.exclude_outside:
            weights = np.where((at < 0) | (at >= a.extent), 0, weights)
        weights = weights / weights.sum(axis=1, keepdims=True)
    indices = np.clip(at, 0, a.extent - 1)
    if a.coordinates == "tf_crop_and_resize":
        beyond = (x < 0) | (x > a.extent - 1)
        indices[beyond], weights[beyond] = -1, 1 / a.taps
    return [indices.astype(np.int32), weights.astype(np.float32)]


OPS["INTERPOLATE"] = OpDefinition(
    _interpolate_shape,
    _interpolate,
    types=_interpolate_types,
    domains=lambda op: {1: (0, op.input(0).shape[op.attributes.axis] - 1)},
    reads=_interpolate_reads,
)
# no map: a table of positions and weights follows from the scales and sizes as a whole
OPS["RESIZE_TAPS"] = OpDefinition(_taps_shape, _taps, types=_taps_types)
