"""States in TFLite's terms: variable tensors, and resources that a second subgraph initializes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.graph.graph import Graph, Op, State, Tensor
from covp.graph.tflite.variables import CHANGED_INPUTS

RESOURCE = np.dtype(object)
"""Stands for TFLite's type of handles."""


@dataclass(frozen=True)
class VarHandle:
    """VAR_HANDLE: the name of the variable."""

    name: str


@dataclass(frozen=True)
class FileGraphs:
    """What a file of a graph with states holds.

    Attributes:
        subgraphs: the model, and what CALL_ONCE runs, if there is that.
        variables: the tensors that operators change, by identity.
    """

    subgraphs: tuple[Graph, ...]
    variables: frozenset[int]


def in_file(graph: Graph) -> FileGraphs:
    """The subgraphs of a graph's file.

    A state that an LSTM or SVDF changes is its variable tensor; others are resources: read before
    the operators, assigned after them.
    """
    ops = [_without_states(op) for op in graph.ops]
    changed = {
        id(op.inputs[position]) for op in graph.ops for position in CHANGED_INPUTS.get(op.kind, ())
    }
    resources = [state for state in graph.states if id(state.before) not in changed]
    variables = frozenset(id(s.before) for s in graph.states if id(s.before) in changed)
    if not resources:
        return FileGraphs((replace(graph, ops=ops, states=[]),), variables)
    handles = [_handle(state) for state in resources]
    pairs = list(zip(resources, handles, strict=True))
    ops = [
        *handles,
        Op("CALL_ONCE", "initialize", [], []),
        *(Op("READ_VARIABLE", "read", [h.output], [s.before]) for s, h in pairs),
        *ops,
        *(Op("ASSIGN_VARIABLE", "assign", [h.output, s.after], []) for s, h in pairs),
    ]
    main = replace(graph, ops=ops, states=[])
    return FileGraphs((main, _initialization(resources)), variables)


def _without_states(op: Op) -> Op:
    """The operator without the outputs that are its variables afterwards."""
    kept = len(op.outputs) - len(CHANGED_INPUTS.get(op.kind, ()))
    return replace(op, outputs=op.outputs[:kept])


def _handle(state: State) -> Op:
    handle = Tensor(f"{state.name}_handle", (), RESOURCE)
    return Op("VAR_HANDLE", handle.name, [], [handle], VarHandle(state.name))


def _initialization(states: list[State]) -> Graph:
    ops = []
    for state in states:
        handle = _handle(state)
        value = _constant(state, np.ascontiguousarray(state.initial))
        ops += [handle, Op("ASSIGN_VARIABLE", "assign", [handle.output, value], [])]
    return Graph("initialization", [], [], ops)


def _constant(state: State, data: NDArray[Any]) -> Tensor:
    before = state.before
    return Tensor(f"{state.name}_initial", before.shape, before.dtype, before.quantization, data)
