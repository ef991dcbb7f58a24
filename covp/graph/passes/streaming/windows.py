"""A graph on a stream beside the plain network, on the rows of one random window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.errors import ModelError
from covp.graph.equality import differences
from covp.graph.graph import Graph, Streaming
from covp.graph.ops import macs
from covp.graph.passes import run_passes
from covp.graph.random_inputs import random_inputs
from covp.graph.reference import ReferenceExecutor, run_all
from covp.graph.rewrites import DEFECT, MOST_WORK

Array = NDArray[Any]


@dataclass(frozen=True)
class EndOfWindow:
    """The inference with which a window of random rows is complete.

    Attributes:
        rows: the newest ones, its input.
        states: before it, by name.
        values: what the plain network computes of the window: of each tensor that the graph on the
            stream has as well, the newest rows, by name.
    """

    rows: Array
    states: Mapping[str, Array]
    values: Mapping[str, Array]


def end_of_window(graph: Graph, streaming: Streaming, seed: int) -> EndOfWindow:
    """Return the first window of a graph on a stream.

    Args:
        graph: whose streaming it is.
        streaming: see `Graph.streaming`.
        seed: of the rows.
    """
    source, axis, hop = streaming.plain.inputs[0], streaming.axis, streaming.hop
    count = streaming.warm_up * hop
    shape = (*source.shape[:axis], count, *source.shape[axis + 1 :])
    (rows,) = random_inputs([replace(source, shape=shape)], seed)
    executor = ReferenceExecutor(graph)
    *earlier, latest = np.split(rows, streaming.warm_up, axis)
    for part in earlier:
        executor.run(part)
    window = np.take(rows, range(count - streaming.window, count), axis)
    whole = run_all(run_passes(streaming.plain), [window])
    new = {tensor.name: tensor for op in graph.ops for tensor in op.outputs}
    values = {
        name: _newest(value, new[name].shape)
        for name, value in whole.items()
        if name in new and len(new[name].shape) == value.ndim
    }
    return EndOfWindow(latest, executor.states, values)


def demand_same_windows(graph: Graph) -> Graph:
    """Return the graph. Raises ModelError: its outputs are not the plain network's.

    One whose warm-up takes more than `MOST_WORK` multiply-accumulates is not tried.
    """
    streaming = graph.streaming
    assert streaming is not None
    if macs(graph) * streaming.warm_up + macs(streaming.plain) > MOST_WORK:
        return graph
    end = end_of_window(graph, streaming, 0)
    found = run_all(graph, [end.rows], end.states)
    for name, wanted in end.values.items():
        if count := differences(found[name], wanted).size:
            raise ModelError(
                f"{graph.name}: streaming changed what the model computes: {count:,} of "
                f"{wanted.size:,} elements of {name} after {streaming.warm_up} inferences; {DEFECT}"
            )
    return graph


def _newest(array: Array, shape: tuple[int, ...]) -> Array:
    """Return the last rows of an array, as many as the shape has."""
    parts = zip(array.shape, shape, strict=True)
    return np.ascontiguousarray(array[tuple(slice(n - new, None) for n, new in parts)])
