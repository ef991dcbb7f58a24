"""Reshapes of reshapes are one; operators that look at each element on its own go before."""

from __future__ import annotations

from dataclasses import replace

from covp.graph.graph import Graph, Op
from covp.graph.passes.axis_orders import is_elementwise


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
