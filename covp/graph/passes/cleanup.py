"""Removal of operators that compute nothing new, or nothing that is needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from covp.graph.graph import Graph, Op, Tensor
from covp.graph.ops import definition
from covp.graph.passes.axis_orders import is_elementwise


def remove_dead_ops(graph: Graph) -> None:
    """Drop every operator that no output and no state of the graph depends on."""
    needed = {id(tensor) for tensor in graph.results}
    kept = []
    for op in reversed(graph.ops):
        if any(id(tensor) in needed for tensor in op.outputs):
            kept.append(op)
            needed |= {id(tensor) for tensor in op.inputs if tensor is not None}
    graph.ops = kept[::-1]


def remove_no_ops(graph: Graph) -> None:
    """Remove operators whose output equals their input; their readers read the input.

    RESHAPE stays: it changes the shape, and costs nothing in the generated code. An output of the
    graph, or what a state becomes, stays as well: it needs memory of its own.
    """
    outputs = {id(tensor) for tensor in graph.results}
    for op in list(graph.ops):
        if op.kind in _MOVES_NOTHING and len(op.outputs) == 1 and id(op.output) not in outputs:
            source = op.input(1 if op.kind == "SPLIT" else 0)
            if _same_values(source, op.output) and _MOVES_NOTHING[op.kind](op):
                for reader in graph.consumers(op.output):
                    reader.inputs = [source if t is op.output else t for t in reader.inputs]
                graph.ops.remove(op)


def _same_values(source: Tensor, result: Tensor) -> bool:
    """Return whether equal stored values are equal real values."""
    if (source.shape, source.dtype) != (result.shape, result.dtype):
        return False
    if source.quantization is None or result.quantization is None:
        return source.quantization is result.quantization
    return (source.scale, source.zero_point) == (result.scale, result.zero_point)


def _identity_order(op: Op) -> bool:
    order: tuple[int, ...] = op.attributes.permutation
    return order == tuple(range(len(order)))


def _forward(op: Op) -> bool:
    return all(step == 1 for _, _, step in op.attributes.slices)


def _always(op: Op) -> bool:
    """Return True: equal shapes leave nothing to move."""
    return True


_MOVES_NOTHING: dict[str, Callable[[Op], bool]] = {
    "CONCATENATION": lambda op: len(op.inputs) == 1,
    "PAD": _always,
    "PADV2": _always,
    "QUANTIZE": _always,
    "RESIZE_BILINEAR": _always,
    "RESIZE_NEAREST_NEIGHBOR": _always,
    "SLICE": _forward,
    "SPLIT": _always,
    "STRIDED_SLICE": _forward,
    "TRANSPOSE": _identity_order,
}
"""Conditions for no-ops, besides equal shapes and quantizations, by kind."""


def fold_constants(graph: Graph) -> None:
    """Compute at compile time what does not depend on the graph's inputs.

    An output of the graph, or what a state becomes, stays computed at run time: it needs a place
    in memory.
    """
    known: dict[int, Tensor] = {}
    outputs = {id(tensor) for tensor in graph.results}
    kept = []
    for op in graph.ops:
        op.inputs = [t if t is None else known.get(id(t), t) for t in op.inputs]
        constant = all(tensor is None or tensor.constant for tensor in op.inputs)
        if not constant or any(id(tensor) in outputs for tensor in op.outputs):
            kept.append(op)
            continue
        values = [None if tensor is None else tensor.data for tensor in op.inputs]
        results = definition(op.kind).reference(op, values)
        for tensor, value in zip(op.outputs, results, strict=True):
            known[id(tensor)] = replace(tensor, data=value)
    graph.ops = kept


def merge_reshapes(graph: Graph) -> None:
    """Move elementwise operators of one input before a RESHAPE of a computed tensor.

    So an activation stands behind the convolution that it becomes a part of.
    """
    if not any(op.kind == "RESHAPE" for op in graph.ops):
        return
    position = 0
    while position < len(graph.ops):
        op = graph.ops[position]
        position += 1
        source = graph.producer(op.input(0)) if op.inputs and op.inputs[0] is not None else None
        if source is None or source.kind != "RESHAPE" or graph.is_result(source.output):
            continue
        if op.kind == "RESHAPE":
            op.inputs[0] = source.inputs[0]
        elif _may_go_before(graph, op, source):
            _swap(graph, op, source)
    _remove_identities(graph)


def _may_go_before(graph: Graph, op: Op, source: Op) -> bool:
    """Return whether the operator has one input, a RESHAPE of what another operator computes.

    One that gives its input another quantization stays where it is.
    """
    alone = is_elementwise(op) and len(op.inputs) == len(op.outputs) == 1
    if not alone or graph.is_result(op.output) or graph.consumers(source.output) != [op]:
        return False
    if source.input(0).quantization is not source.output.quantization:
        return False
    return graph.producer(source.input(0)) is not None


def _swap(graph: Graph, op: Op, source: Op) -> None:
    """Swap an operator and the RESHAPE before it."""
    inner, result = source.input(0), op.output
    flat = replace(result, name=f"{result.name}_before_{source.name}", shape=inner.shape)
    after = Op("RESHAPE", source.name, [flat], [result], None, source.index)
    op.inputs, op.outputs = [inner], [flat]
    graph.ops.remove(source)
    graph.ops.insert(graph.ops.index(op) + 1, after)


def _remove_identities(graph: Graph) -> None:
    for op in list(graph.ops):
        source = op.input(0) if op.kind == "RESHAPE" else None
        if source is None or graph.is_result(op.output) or source.shape != op.output.shape:
            continue
        if source.quantization is not op.output.quantization and source.dtype.kind != "f":
            continue
        for reader in graph.consumers(op.output):
            reader.inputs = [source if tensor is op.output else tensor for tensor in reader.inputs]
        graph.ops.remove(op)


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
