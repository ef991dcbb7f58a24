"""Operators that find elements by indices, and those that make tensors of a rule."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from covp.errors import ModelError
from covp.graph.graph import Tensor
from covp.graph.onnx.converters.moves import axis_of, known
from covp.graph.onnx.converters.registry import register
from covp.graph.onnx.importer import MOST_FOLDED, Importer
from covp.graph.onnx.node import OnnxNode
from covp.graph.onnx.values import check_size
from covp.graph.ops.gather import Gather, GatherElements, GatherND, OneHot, Scatter
from covp.graph.ops.generate import Compress, Generated


@register("Gather")
def _gather(node: OnnxNode, importer: Importer) -> Tensor:
    source = node.input(0)
    attributes = Gather(axis_of(node.get("axis", 0), len(source.shape)))
    return importer.add("GATHER", source, node.input(1), attributes=attributes)


@register("GatherND")
def _gather_nd(node: OnnxNode, importer: Importer) -> Tensor:
    batches = int(node.get("batch_dims", 0))
    most = min(len(node.input(0).shape), len(node.input(1).shape)) - 1
    if not 0 <= batches <= most:
        raise ModelError(f"batch_dims is {batches}; 0 to {most} fit its inputs")
    attributes = GatherND(batches)
    return importer.add("GATHER_ND", node.input(0), node.input(1), attributes=attributes)


@register("GatherElements")
def _gather_elements(node: OnnxNode, importer: Importer) -> Tensor:
    source = node.input(0)
    attributes = GatherElements(axis_of(node.get("axis", 0), len(source.shape)))
    return importer.add("GATHER_ELEMENTS", source, node.input(1), attributes=attributes)


@register("Scatter", "ScatterElements", "ScatterND")
def _scatter(node: OnnxNode, importer: Importer) -> Tensor:
    reduction = node.get("reduction", "none")
    if reduction not in ("none", "add", "mul", "max", "min"):
        raise ModelError(f"reduction {reduction} is not supported")
    kind = "SCATTER_ND" if node.kind == "ScatterND" else "SCATTER_ELEMENTS"
    axis = axis_of(node.get("axis", 0), len(node.input(0).shape))
    inputs = (node.input(position) for position in range(3))
    return importer.add(kind, *inputs, attributes=Scatter(axis, reduction))


@register("Compress")
def _compress(node: OnnxNode, importer: Importer) -> Tensor:
    source = node.input(0)
    if "axis" not in node.attributes:
        source = importer.reshape(source, (source.size,))
    axis = axis_of(node.get("axis", 0), len(source.shape))
    if node.input(1).data is None:
        count = node.stated_shape("the condition")[axis]
        return importer.add("COMPRESS", source, node.input(1), attributes=Compress(axis, count))
    (chosen,) = np.nonzero(np.asarray(node.constant(1, "the condition")).reshape(-1))
    indices = importer.constant(chosen.astype(np.int32))
    return importer.add("GATHER", source, indices, attributes=Gather(axis))


@register("OneHot")
def _one_hot(node: OnnxNode, importer: Importer) -> Tensor:
    indices, depth = node.input(0), node.optional(1)
    rank = len(indices.shape) + 1
    axis = axis_of(node.get("axis", -1), rank)
    if depth is not None and depth.data is None:
        extent = node.stated_shape("the depth")[axis]
    else:
        extent = int(np.asarray(node.constant(1, "the depth")).reshape(-1)[0])
    values = node.input(2)
    indices = _whole(indices, importer)
    attributes = OneHot(axis, extent)
    return importer.add("ONE_HOT", indices, values, attributes=attributes, dtype=values.dtype)


def _whole(indices: Tensor, importer: Importer) -> Tensor:
    """Return the indices as int32 or int64; ONNX allows other numbers, which are cast."""
    if indices.dtype in (np.int32, np.int64):
        return indices
    return importer.add("CAST", indices, dtype=np.int32)


@register("EyeLike")
def _eye(node: OnnxNode, importer: Importer) -> Tensor:
    import onnx

    rows, columns = node.input(0).shape
    number = node.get("dtype")
    dtype: Any = node.input(0).dtype
    if number is not None and number in onnx.TensorProto.DataType.values():
        dtype = onnx.helper.tensor_dtype_to_np_dtype(number)
    check_size((rows, columns), np.dtype(dtype), MOST_FOLDED, "an identity matrix")
    return importer.constant(np.eye(rows, columns, node.get("k", 0), dtype))


@register("Range")
def _range(node: OnnxNode, importer: Importer) -> Tensor:
    if not known(node, 0, 1, 2):
        inputs = (node.input(position) for position in range(3))
        attributes = Generated(node.stated_shape("the range"))
        return importer.add("RANGE", *inputs, attributes=attributes)
    start, limit, delta = (
        np.asarray(node.constant(position, "an end of the range")).reshape(-1)[0]
        for position in range(3)
    )
    if delta == 0 or not np.isfinite((limit - start) / delta):
        raise ModelError(f"{start} to {limit} by {delta} is not a range")
    count = max(math.ceil((float(limit) - float(start)) / float(delta)), 0)
    check_size((count,), node.input(0).dtype, MOST_FOLDED, "a range")
    return importer.constant(np.arange(start, limit, delta, dtype=node.input(0).dtype))
