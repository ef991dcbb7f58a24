"""An image is flattened in another order before a fully connected layer: its weights are reordered.

ONNX flattens (batch, channels, height, width), and the image lies in memory channels last.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from covp.graph.graph import Graph, Op


def reorder_flattened_weights(graph: Graph) -> None:
    """Remove the TRANSPOSE of TRANSPOSE, RESHAPE, FULLY_CONNECTED with constant weights."""
    for op in graph.ops:
        if op.kind != "FULLY_CONNECTED" or op.input(1).data is None:
            continue
        flat = graph.producer(op.input(0))
        turned = graph.producer(flat.input(0)) if flat is not None else None
        if flat is not None and turned is not None and _applies(graph, op, flat, turned):
            _reorder(op, flat, turned)
    # transposes that are unused now are removed as dead code


def _applies(graph: Graph, op: Op, flat: Op, turned: Op) -> bool:
    if flat.kind != "RESHAPE" or turned.kind != "TRANSPOSE":
        return False
    shape, order = turned.output.shape, turned.attributes.permutation
    rows = order[0] == 0 and flat.output.shape == (shape[0], op.input(1).shape[1])
    alone = graph.consumers(flat.output) == [op] and not graph.is_result(flat.output)
    return rows and alone


def _reorder(op: Op, flat: Op, turned: Op) -> None:
    weights = op.input(1)
    assert weights.data is not None
    outputs, back = weights.shape[0], np.argsort(turned.attributes.permutation)
    images = weights.data.reshape(outputs, *turned.output.shape[1:])
    data = np.ascontiguousarray(images.transpose(back).reshape(outputs, -1))
    stored = replace(flat.output, name=f"{flat.output.name}_as_stored")
    op.inputs[:2] = [stored, replace(weights, name=f"{weights.name}_reordered", data=data)]
    flat.inputs, flat.outputs = [turned.inputs[0]], [stored]
