"""Operators whose output is their input, value for value."""

from __future__ import annotations

from collections.abc import Callable

from covp.graph.graph import Graph, Op, Tensor


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
