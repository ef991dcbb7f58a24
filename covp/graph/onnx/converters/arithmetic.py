"""Add, Sub and Mul."""

from __future__ import annotations

from covp.graph.attributes import Elementwise
from covp.graph.graph import Tensor
from covp.graph.onnx.converters.registry import register
from covp.graph.onnx.importer import Importer
from covp.graph.onnx.node import Node


@register("Add", "Sub", "Mul")
def _binary(node: Node, importer: Importer) -> Tensor:
    return importer.add(node.kind.upper(), node.input(0), node.input(1), attributes=Elementwise())
