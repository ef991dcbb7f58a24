"""An input and an output of a recurrent network become a state that it keeps itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from covp.errors import UsageError, near_misses
from covp.graph.graph import Graph, Op, State, Tensor, copy_graph


def separate_states(graph: Graph) -> None:
    """Insert a copy before all operators, so that the order in which states change is irrelevant.

    A RESHAPE to the same shape is one: `covp.codegen.aliases` says where it copies.
    """
    old = [state.before for state in graph.states]
    for position, state in enumerate(graph.states):
        after = state.after
        is_other = after is not state.before and any(after is tensor for tensor in old)
        if not is_other and not after.constant:
            continue
        copy = Tensor(f"{state.name}_after", after.shape, after.dtype, after.quantization)
        index = 1 + max((op.index for op in graph.ops), default=-1)
        graph.ops.insert(0, Op("RESHAPE", f"copy_{state.name}", [after], [copy], index=index))
        graph.states[position] = replace(state, after=copy)


def bind_states(graph: Graph, pairs: Mapping[str, str]) -> Graph:
    """Return a graph that takes no such inputs and gives no such outputs any more.

    Args:
        graph: stays as it is.
        pairs: name of an input to that of the output which is its value in the next inference. In
            the first one it is zero.

    Raises:
        UsageError: there is no such input or output, or they do not have one shape and type.
    """
    bound = copy_graph(graph)
    for given, result in pairs.items():
        before = _find_named_tensor(bound.inputs, given, f"{graph.name}, state {given}: no input")
        after = _find_named_tensor(bound.outputs, result, f"{graph.name}, state {given}: no output")
        if (before.shape, before.dtype) != (after.shape, after.dtype):
            raise UsageError(
                f"{graph.name}, state {given}: the input is {before.dtype} {before.shape}, "
                f"the output {result} is {after.dtype} {after.shape}; both must be equal"
            )
        if not _same_numbers(before, after):
            raise UsageError(
                f"{graph.name}, state {given}: the output {result} has another scale or zero point"
            )
        zero = 0 if before.quantization is None else before.zero_point
        bound.inputs.remove(before)
        bound.outputs.remove(after)
        bound.states.append(State(given, before, after, np.full(before.shape, zero, before.dtype)))
    if not bound.outputs:
        raise UsageError(f"{graph.name}: all outputs are bound to states; one must be left")
    return bound


def _find_named_tensor(tensors: list[Tensor], name: str, missing: str) -> Tensor:
    for tensor in tensors:
        if tensor.name == name:
            return tensor
    names = [tensor.name for tensor in tensors]
    raise UsageError(f"{missing} is named {name!r}", hint=near_misses(name, names))


def _same_numbers(before: Tensor, after: Tensor) -> bool:
    if before.quantization is None or after.quantization is None:
        return before.quantization is after.quantization
    return (before.scale, before.zero_point) == (after.scale, after.zero_point)
