"""Compute new states by a copy where they are constants or another state's old value."""

from __future__ import annotations

from dataclasses import replace

from covp.graph.graph import Graph, Op, Tensor


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
