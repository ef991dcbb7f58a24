"""Resize and Upsample: one INTERPOLATE, or GATHER of the nearest elements, for each axis."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from covp.errors import ModelError
from covp.graph.graph import Tensor
from covp.graph.onnx.converters.moves import axis_of
from covp.graph.onnx.converters.registry import register
from covp.graph.onnx.importer import Importer
from covp.graph.onnx.node import OnnxNode
from covp.graph.ops.gather import Gather
from covp.graph.ops.interpolate import (
    Coordinates,
    Interpolate,
    Policy,
    ResizeTaps,
    Rounding,
    nearby,
)


@dataclass(frozen=True)
class _Wanted:
    """The inputs of RESIZE_TAPS, the axes that they are about, the output's extents."""

    values: Tensor
    roi: Tensor | None
    axes: tuple[int, ...]
    extents: tuple[int, ...]

    @property
    def is_scale(self) -> bool:
        """True if the values are scales; else they are sizes."""
        return self.values.dtype == np.float32


@register("Resize", "Upsample")
def _resize(node: OnnxNode, importer: Importer) -> Tensor:
    source = node.input(0)
    wanted = _read_inputs(node, importer)
    mode: Any = node.get("mode", "nearest")
    mode = "linear" if mode == "bilinear" else mode
    if mode not in ("nearest", "linear", "cubic"):
        raise ModelError(f"mode {mode} is not supported; known: nearest, linear, cubic")
    rule = ResizeTaps(
        extents=tuple(source.shape[axis] for axis in wanted.axes),
        position=0,
        size=0,
        taps=0,
        mode=mode,
        cubic=float(node.get("cubic_coeff_a", -0.75)),
        antialias=bool(node.get("antialias", 0)),
        exclude_outside=bool(node.get("exclude_outside", 0)),
        policy=node.get("keep_aspect_ratio_policy", "stretch"),
    )
    if node.kind == "Upsample" or node.opset < 11:
        rule = replace(rule, coordinates="asymmetric", rounding="floor")
    else:
        rule = replace(
            rule,
            coordinates=node.get("coordinate_transformation_mode", "half_pixel"),
            rounding=node.get("nearest_mode", "round_prefer_floor"),
        )
    _check(rule)
    result = source
    for position, axis in enumerate(wanted.axes):
        size = wanted.extents[axis]
        if source.shape[axis] == size and (size == 1 or _known_as_one(wanted, rule, position)):
            continue
        own = replace(rule, position=position, size=size)
        outside = float(node.get("extrapolation_value", 0.0))
        result = _along(importer, result, axis, own, wanted, outside)
    return result


def _check(rule: ResizeTaps) -> None:
    for value, known in (
        (rule.coordinates, get_args(Coordinates)),
        (rule.rounding, get_args(Rounding)),
        (rule.policy, get_args(Policy)),
    ):
        if value not in known:
            raise ModelError(f"{value} is not supported; known: {', '.join(known)}")
    if rule.mode == "nearest" and rule.coordinates == "tf_crop_and_resize":
        raise ModelError("tf_crop_and_resize of the nearest elements is not supported; use linear")


def _read_inputs(node: OnnxNode, importer: Importer) -> _Wanted:
    source = node.input(0)
    rank = len(source.shape)
    axes = tuple(axis_of(axis, rank) for axis in node.get("axes", range(rank)))
    roi = scales = sizes = None
    if "scales" in node.attributes:
        scales = importer.constant(np.array(node.get("scales"), np.float32))
    elif node.kind == "Upsample" or node.opset < 11:
        scales = node.input(1)
    else:
        roi, scales, sizes = (_nonempty(node, position) for position in (1, 2, 3))
    if (scales is None) == (sizes is None):
        raise ModelError("scales or sizes are needed, and not both")
    if node.get("coordinate_transformation_mode") != "tf_crop_and_resize":
        roi = None
    elif roi is None:
        raise ModelError("tf_crop_and_resize needs a roi")
    wanted = scales if scales is not None else sizes
    assert wanted is not None
    if wanted.data is None:
        return _Wanted(wanted, roi, axes, node.stated_shape("the size"))
    extents = list(source.shape)
    values = wanted.data.reshape(-1)
    if (values <= 0).any() or source.size == 0:
        raise ModelError(f"{wanted.name} {values.tolist()} of {source.shape} leave nothing")
    if len(values) != len(axes):
        raise ModelError(f"{wanted.name} has {len(values)} values for {len(axes)} axes")
    policy = node.get("keep_aspect_ratio_policy", "stretch")
    ratios = [float(v) / max(source.shape[axis], 1) for v, axis in zip(values, axes, strict=True)]
    common = {"not_larger": min, "not_smaller": max}.get(policy)
    for n, axis in enumerate(axes):
        if scales is not None:
            extents[axis] = math.floor(source.shape[axis] * float(values[n]))
        elif common is not None:
            extents[axis] = math.floor(common(ratios) * source.shape[axis] + 0.5)
        else:
            extents[axis] = int(values[n])
    if min(extents) < 1:
        raise ModelError(f"{wanted.name} {values.tolist()} leave nothing of {source.shape}")
    return _Wanted(wanted, roi, axes, tuple(extents))


def _nonempty(node: OnnxNode, position: int) -> Tensor | None:
    """Return an input that has values; older exporters write empty ones for none."""
    tensor = node.optional(position)
    return tensor if tensor is not None and tensor.size else None


def _known_as_one(wanted: _Wanted, rule: ResizeTaps, position: int) -> bool:
    """Return whether an axis certainly stays as it is."""
    if wanted.roi is not None or rule.policy != "stretch" or wanted.values.data is None:
        return False
    return not wanted.is_scale or float(wanted.values.data.reshape(-1)[position]) == 1.0


def _along(
    importer: Importer,
    source: Tensor,
    axis: int,
    rule: ResizeTaps,
    wanted: _Wanted,
    outside: float,
) -> Tensor:
    inputs = wanted.values, wanted.roi
    if rule.mode == "nearest":
        indices = importer.add("RESIZE_TAPS", *inputs, attributes=rule, dtype=np.int32)
        known = wanted.values.data
        beside = () if known is None else nearby(rule, known)
        return importer.add("GATHER", source, indices, attributes=Gather(axis, nearby=beside))
    rule = replace(rule, taps=_taps(rule))
    tables = importer.add_many(
        "RESIZE_TAPS", *inputs, attributes=rule, dtypes=[np.int32, np.float32]
    )
    return importer.add("INTERPOLATE", source, *tables, attributes=Interpolate(axis, outside))


def _taps(rule: ResizeTaps) -> int:
    """Return how many elements a filter reaches at most, with scales that may be rounded down."""
    reach = 1 if rule.mode == "linear" else 2
    if not rule.antialias:
        return 2 * reach
    size = rule.size - (0.5 if rule.policy != "stretch" else 0.0)
    return 2 * math.ceil(reach * max(1.0, rule.extent / size))
