"""Gemm and MatMul."""

from __future__ import annotations

import numpy as np

from covp.errors import ModelError
from covp.frontend.onnx.converters.registry import register
from covp.frontend.onnx.importer import Importer
from covp.frontend.onnx.node import Node
from covp.graph.attributes import FullyConnected
from covp.graph.graph import Tensor


@register("Gemm")
def _gemm(node: Node, importer: Importer) -> Tensor:
    source = node.input(0)
    if node.get("transA", 0):
        source = importer.transpose(source, (1, 0))
    weights = np.asarray(node.constant(1, "the weights"))
    columns = weights if node.get("transB", 0) else weights.T
    scaled = np.ascontiguousarray(columns * weights.dtype.type(node.get("alpha", 1.0)))
    bias = None
    if node.optional(2) is not None:
        values = node.constant(2, "the bias") * weights.dtype.type(node.get("beta", 1.0))
        if values.size not in (1, columns.shape[0]):
            raise ModelError(f"a bias of shape {values.shape} is not supported")
        bias = importer.constant(
            np.broadcast_to(values.reshape(-1), (columns.shape[0],)).astype(weights.dtype)
        )
    return importer.add(
        "FULLY_CONNECTED", source, importer.constant(scaled), bias, attributes=FullyConnected()
    )
