"""Reshape, Flatten, Squeeze, Unsqueeze and Transpose."""

from __future__ import annotations

import math

from covp.errors import ModelError
from covp.graph.graph import Tensor
from covp.graph.onnx.converters.registry import register
from covp.graph.onnx.importer import Importer
from covp.graph.onnx.node import Node


@register("Reshape")
def _reshape(node: Node, importer: Importer) -> Tensor:
    source = node.input(0)
    if not node.input(1).constant:
        return importer.reshape(source, node.stated_shape("the shape"))
    wanted = node.integers(1, "the shape")
    keep_zero = bool(node.get("allowzero", 0))
    shape = [
        source.shape[i] if extent == 0 and not keep_zero else extent
        for i, extent in enumerate(wanted)
    ]
    if shape.count(-1) == 1:
        known = math.prod(extent for extent in shape if extent != -1)
        shape[shape.index(-1)] = source.size // known if known else 0
    if math.prod(shape) != source.size:
        raise ModelError(f"cannot reshape {source.shape} to {tuple(wanted)}")
    return importer.reshape(source, shape)


@register("Flatten")
def _flatten(node: Node, importer: Importer) -> Tensor:
    source = node.input(0)
    axis = node.get("axis", 1)
    rows = math.prod(source.shape[:axis])
    return importer.reshape(source, (rows, source.size // rows if rows else 0))


@register("Squeeze")
def _squeeze(node: Node, importer: Importer) -> Tensor:
    source = node.input(0)
    axes_given = node.optional(1)
    if axes_given is not None and not axes_given.constant:
        return importer.reshape(source, node.stated_shape("the axes"))
    rank = len(source.shape)
    axes = node.integers_of("axes", 1, "the axes")
    if axes is None:
        axes = [axis for axis, extent in enumerate(source.shape) if extent == 1]
    dropped = {axis % rank for axis in axes}
    if any(source.shape[axis] != 1 for axis in dropped):
        raise ModelError(f"axes {axes} of {source.shape} are not all 1")
    return importer.reshape(source, [n for i, n in enumerate(source.shape) if i not in dropped])


@register("Unsqueeze")
def _unsqueeze(node: Node, importer: Importer) -> Tensor:
    source = node.input(0)
    axes_given = node.optional(1)
    if axes_given is not None and not axes_given.constant:
        return importer.reshape(source, node.stated_shape("the axes"))
    axes = node.integers_of("axes", 1, "the axes") or []
    rank = len(source.shape) + len(axes)
    new = {axis % rank for axis in axes}
    extents = iter(source.shape)
    return importer.reshape(source, [1 if i in new else next(extents) for i in range(rank)])


@register("Transpose")
def _transpose(node: Node, importer: Importer) -> Tensor:
    source = node.input(0)
    rank = len(source.shape)
    return importer.transpose(source, node.get("perm", list(reversed(range(rank)))))
