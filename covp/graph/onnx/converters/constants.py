"""Operators that the reader computes, constants and shapes; and those that change a shape alone."""

from __future__ import annotations

import math

import numpy as np

from covp.errors import ModelError
from covp.graph.graph import Tensor
from covp.graph.onnx.converters.registry import register
from covp.graph.onnx.importer import MOST_FOLDED, Importer
from covp.graph.onnx.node import OnnxNode
from covp.graph.onnx.values import check_size


@register("Constant")
def _constant(node: OnnxNode, importer: Importer) -> Tensor:
    a = node.attributes
    if "value" in a:
        return importer.constant(np.asarray(a["value"]))
    for name, dtype in (("value_float", np.float32), ("value_int", np.int64)):
        for given in (name, f"{name}s"):
            if given in a:
                return importer.constant(np.array(a[given], dtype))
    raise ModelError(f"a constant without a numeric value; it has {', '.join(a) or 'none'}")


@register("ConstantOfShape")
def _constant_of_shape(node: OnnxNode, importer: Importer) -> Tensor:
    late = node.input(0).data is None
    shape = node.stated_shape("the shape") if late else node.integers(0, "the shape")
    value = np.asarray(node.get("value", np.zeros(1, np.float32))).reshape(-1)[0]
    check_size(shape, value.dtype, MOST_FOLDED, "a constant")
    return importer.constant(np.full(shape, value))


@register("Identity")
def _identity(node: OnnxNode, importer: Importer) -> Tensor:
    return node.input(0)


@register("Dropout")
def _dropout(node: OnnxNode, importer: Importer) -> list[Tensor]:
    """Convert Dropout, which drops nothing in inference: the mask is true everywhere."""
    source = node.input(0)
    mask = [importer.constant(np.ones(source.shape, np.bool_))] if node.wants(1) else []
    return [source, *mask]


@register("Shape")
def _shape(node: OnnxNode, importer: Importer) -> Tensor:
    shape = node.input(0).shape
    return importer.constant(np.array(shape[node.get("start", 0) : node.get("end")], np.int64))


@register("Size")
def _size(node: OnnxNode, importer: Importer) -> Tensor:
    return importer.constant(np.array(node.input(0).size, np.int64))


@register("Reshape")
def _reshape(node: OnnxNode, importer: Importer) -> Tensor:
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
def _flatten(node: OnnxNode, importer: Importer) -> Tensor:
    source = node.input(0)
    axis = node.get("axis", 1)
    rows = math.prod(source.shape[:axis])
    return importer.reshape(source, (rows, source.size // rows if rows else 0))


@register("Squeeze")
def _squeeze(node: OnnxNode, importer: Importer) -> Tensor:
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
def _unsqueeze(node: OnnxNode, importer: Importer) -> Tensor:
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
def _transpose(node: OnnxNode, importer: Importer) -> Tensor:
    source = node.input(0)
    rank = len(source.shape)
    return importer.transpose(source, node.get("perm", list(reversed(range(rank)))))
