"""Operators that the reader computes: constants and shapes."""

from __future__ import annotations

import numpy as np

from covp.errors import ModelError
from covp.graph.graph import Tensor
from covp.graph.onnx.converters.registry import register
from covp.graph.onnx.importer import MOST_FOLDED, Importer
from covp.graph.onnx.node import Node
from covp.graph.onnx.values import check_size


@register("Constant")
def _constant(node: Node, importer: Importer) -> Tensor:
    a = node.attributes
    if "value" in a:
        return importer.constant(np.asarray(a["value"]))
    for name, dtype in (("value_float", np.float32), ("value_int", np.int64)):
        for given in (name, f"{name}s"):
            if given in a:
                return importer.constant(np.array(a[given], dtype))
    raise ModelError(f"a constant without a numeric value; it has {', '.join(a) or 'none'}")


@register("ConstantOfShape")
def _constant_of_shape(node: Node, importer: Importer) -> Tensor:
    late = node.input(0).data is None
    shape = node.stated_shape("the shape") if late else node.integers(0, "the shape")
    value = np.asarray(node.get("value", np.zeros(1, np.float32))).reshape(-1)[0]
    check_size(shape, value.dtype, MOST_FOLDED, "a constant")
    return importer.constant(np.full(shape, value))


@register("Identity")
def _identity(node: Node, importer: Importer) -> Tensor:
    return node.input(0)


@register("Dropout")
def _dropout(node: Node, importer: Importer) -> list[Tensor]:
    """Nothing is dropped in an inference: the mask is true everywhere."""
    source = node.input(0)
    mask = [importer.constant(np.ones(source.shape, np.bool_))] if node.wants(1) else []
    return [source, *mask]


@register("Shape")
def _shape(node: Node, importer: Importer) -> Tensor:
    shape = node.input(0).shape
    return importer.constant(np.array(shape[node.get("start", 0) : node.get("end")], np.int64))


@register("Size")
def _size(node: Node, importer: Importer) -> Tensor:
    return importer.constant(np.array(node.input(0).size, np.int64))
