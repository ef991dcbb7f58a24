"""The reference executor: a graph in numpy, with TFLM's integer arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from covp.errors import UsageError
from covp.graph.graph import Graph
from covp.graph.ops import definition


def run_reference(graph: Graph, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """The graph's outputs, in order.

    Args:
        inputs: one array per input, of its shape and dtype.

    Raises:
        UsageError: an input does not fit.
    """
    values = run_all(graph, inputs)
    return [values[tensor.name] for tensor in graph.outputs]


def run_all(graph: Graph, inputs: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Every computed tensor by name, the inputs and constants included."""
    check_inputs(graph, inputs)
    values = {t.name: t.data for t in graph.tensors() if t.data is not None}
    values |= {t.name: value for t, value in zip(graph.inputs, inputs, strict=True)}
    for op in graph.ops:
        arguments = [None if t is None else values[t.name] for t in op.inputs]
        results = definition(op.kind).reference(op, arguments)
        values |= {t.name: result for t, result in zip(op.outputs, results, strict=True)}
    return values


def check_inputs(graph: Graph, inputs: Sequence[NDArray[Any]]) -> None:
    """Raises UsageError where number, shape or dtype of the inputs is wrong."""
    if len(inputs) != len(graph.inputs):
        raise UsageError(f"{graph.name} has {len(graph.inputs)} inputs, {len(inputs)} were given")
    for tensor, value in zip(graph.inputs, inputs, strict=True):
        if value.shape != tensor.shape or value.dtype != tensor.dtype:
            raise UsageError(
                f"input {tensor.name} must be {tensor.dtype} {tensor.shape}, "
                f"not {value.dtype} {value.shape}"
            )
