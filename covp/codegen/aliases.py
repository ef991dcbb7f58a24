"""Aliases: operators that only rename memory."""

from __future__ import annotations

from covp.graph.attributes import JoinedRows, RowsOf
from covp.graph.graph import Graph, Op, Tensor

ALIASES = frozenset({"RESHAPE"})
"""Kinds whose output is their input, byte for byte."""


def first_names(graph: Graph) -> dict[int, str]:
    """Map the id of each tensor that may share another's bytes to the name of that other."""
    found: dict[int, str] = {}
    for op in graph.ops:
        if op.kind in ALIASES:
            source = op.input(0)
            found[id(op.output)] = found.get(id(source), source.name)
    return found


def aliases(graph: Graph) -> frozenset[Op]:
    """Return the operators whose output is their input's memory; others of `ALIASES` copy it.

    A state's memory changes with the inference, hence what it was is copied where it is a result;
    so is a constant that a state becomes.
    """
    old = {id(state.before) for state in graph.states}
    new = {id(state.after) for state in graph.states}
    source: dict[int, Tensor] = {}
    found = []
    for op in graph.ops:
        if isinstance(op.attributes, JoinedRows | RowsOf):
            found.append(op)
        if op.kind not in ALIASES:
            continue
        root = source.get(id(op.input(0)), op.input(0))
        if id(root) in old and graph.is_result(op.output):
            continue
        if root.constant and id(op.output) in new:
            continue
        source[id(op.output)] = root
        found.append(op)
    return frozenset(found)
