"""The reference executor: a graph in numpy, with TFLM's integer arithmetic."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from covp.errors import UsageError
from covp.graph.graph import Graph, Op
from covp.graph.ops import OPS, definition

Array = NDArray[Any]


_FROM_THE_START: Mapping[str, Array] = MappingProxyType({})


class ReferenceExecutor:
    """A graph in numpy that keeps its states from one inference to the next.

    Args:
        graph: what is computed.

    Attributes:
        states: the value of each state by its name, which the next inference reads.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.reset()

    def reset(self) -> None:
        """Give every state its initial value."""
        self.states: dict[str, Array] = {state.name: state.initial for state in self.graph.states}

    def run(self, *inputs: Array) -> list[Array]:
        """Return the outputs of the next inference, as of `run_reference`."""
        values = run_all(self.graph, inputs, self.states)
        self.states = states_after(self.graph, values)
        return [values[tensor.name] for tensor in self.graph.outputs]


def run_reference(
    graph: Graph, inputs: Sequence[Array], states: Mapping[str, Array] = _FROM_THE_START
) -> list[Array]:
    """Return the graph's outputs, in order.

    Args:
        inputs: one array per input, of its shape and dtype.
        states: what the states are before the inference, by name; those left out have their
            initial values.

    Raises:
        UsageError: an input does not fit.
    """
    values = run_all(graph, inputs, states)
    return [values[tensor.name] for tensor in graph.outputs]


def run_all(
    graph: Graph, inputs: Sequence[Array], states: Mapping[str, Array] = _FROM_THE_START
) -> dict[str, Array]:
    """Return every tensor's value by name: computed ones, inputs, constants and states.

    Args:
        inputs, states: as for `run_reference`.
    """
    check_inputs(graph, inputs)
    values = {t.name: t.data for t in graph.tensors() if t.data is not None}
    values |= {t.name: value for t, value in zip(graph.inputs, inputs, strict=True)}
    values |= {s.before.name: states.get(s.name, s.initial) for s in graph.states}
    with one_thread():
        for op in graph.ops:
            arguments = [None if t is None else values[t.name] for t in op.inputs]
            results = definition(op.kind).reference(op, arguments)
            values |= {t.name: result for t, result in zip(op.outputs, results, strict=True)}
    return values


def states_after(graph: Graph, values: Mapping[str, Array]) -> dict[str, Array]:
    """Return the states' values after an inference, by name.

    Args:
        values: of `run_all`.
    """
    return {state.name: values[state.after.name] for state in graph.states}


def one_thread() -> AbstractContextManager[object]:
    """Limit BLAS to one thread: for matrices of this size more threads cost more than they save."""
    limited: AbstractContextManager[object] = _blas().limit(limits=1, user_api="blas")
    return limited


@functools.lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def run_changed_graph(
    graph: Graph,
    inputs: Sequence[Array],
    original: Graph,
    known: Mapping[str, Array],
    states: Mapping[str, Array] = _FROM_THE_START,
) -> dict[str, Array]:
    """Run a graph that passes made of another one as `run_all` does, reusing the known values.

    Operators of a kind without a definition, which graph passes of accelerators may bring, and all
    that need their results are left out, as far as the original graph does not have the tensor.

    Args:
        graph: what the passes left.
        inputs: one array per input, of its shape and dtype.
        original: the graph before the passes; what both have was computed there.
        known: the values of `run_all` of the original; may be empty.
        states: as for `run_reference`.
    """
    check_inputs(graph, inputs)
    computed = {_identity(op) for op in original.ops}
    before = {id(t): known[t.name] for t in original.tensors() if t.name in known}
    values: dict[int, Array | None]
    values = {id(t): before.get(id(t), t.data) for t in graph.tensors() if t.data is not None}
    values |= {id(t): value for t, value in zip(graph.inputs, inputs, strict=True)}
    values |= {id(s.before): states.get(s.name, s.initial) for s in graph.states}
    for op in graph.ops:
        given = {id(t): values.get(id(t)) for t in op.inputs if t is not None}
        results = [before.get(id(tensor)) for tensor in op.outputs]
        same = _identity(op) in computed and all(a is before.get(t) for t, a in given.items())
        complete = all(value is not None for value in given.values())
        if complete and op.kind in OPS and not (same and all(r is not None for r in results)):
            # old arrays stand for equal results, so that operators after it need not run
            with one_thread():
                pairs = zip(results, _results(op, given), strict=True)
            results = [old if _equal(old, new) else new for old, new in pairs]
        values |= {id(t): value for t, value in zip(op.outputs, results, strict=True)}
    named = ((tensor.name, values.get(id(tensor))) for tensor in graph.tensors())
    return {name: array for name, array in named if array is not None}


def _results(op: Op, given: Mapping[int, Array | None]) -> list[Array]:
    arguments = [None if t is None else given[id(t)] for t in op.inputs]
    return definition(op.kind).reference(op, arguments)


def _identity(op: Op) -> tuple[object, ...]:
    """Return a key that is equal for operators that compute the same from the same tensors."""
    tensors = (*op.inputs, *op.outputs)
    return (op.kind, id(op.attributes), *(id(tensor) for tensor in tensors))


def _equal(old: Array | None, new: Array) -> bool:
    if old is None or (old.dtype, old.shape) != (new.dtype, new.shape):
        return False
    return old.tobytes() == new.tobytes()


def check_inputs(graph: Graph, inputs: Sequence[NDArray[Any]]) -> None:
    """Raise UsageError where number, shape or dtype of the inputs is wrong."""
    if len(inputs) != len(graph.inputs):
        raise UsageError(f"{graph.name} has {len(graph.inputs)} inputs, {len(inputs)} were given")
    for tensor, value in zip(graph.inputs, inputs, strict=True):
        if value.shape != tensor.shape or value.dtype != tensor.dtype:
            raise UsageError(
                f"input {tensor.name} must be {tensor.dtype} {tensor.shape}, "
                f"not {value.dtype} {value.shape}"
            )
