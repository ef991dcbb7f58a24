"""Streaming: a network that is run on overlapping windows becomes one that takes new rows only."""

from __future__ import annotations

from covp.errors import ModelError
from covp.graph.graph import Graph
from covp.graph.ops import macs
from covp.graph.passes import run_passes
from covp.graph.passes.streaming.rewrite import Rewriter
from covp.graph.passes.streaming.rows import Refused
from covp.graph.passes.streaming.windows import demand_same_windows


def make_streaming_graph(graph: Graph, hop: int = 1, axis: int | None = None) -> Graph:
    """Return a graph that computes only new rows and keeps the others in ring buffers (states).

    Its input has ``hop`` rows in the place of a window's. After `Streaming.warm_up` inferences its
    outputs are those of the plain network on the latest window, bit for bit where it is of
    integers; of an output that has time itself, the new rows.

    Args:
        graph: of a network without states, with one input; it stays as it is.
        hop: new rows of each inference.
        axis: of time in the input. None: the one along which most is saved.

    Raises:
        ModelError: it does not hold, in one line: the layer and the reason; or its outputs on a
            random window are not those of the plain network.
    """
    lowered = run_passes(graph)
    if len(lowered.inputs) != 1:
        raise ModelError(f"{graph.name} has {len(lowered.inputs)} inputs; a stream needs one")
    if lowered.states:
        raise ModelError(f"{graph.name} keeps states already ({lowered.states[0].name})")
    rank = len(lowered.inputs[0].shape)
    if hop < 1:
        raise ModelError(f"{graph.name}: a stream of {hop} new rows; take 1 or more")
    if axis is not None and not 0 <= axis < rank:
        raise ModelError(f"{graph.name}: its input has axes 0 to {rank - 1}, not {axis}")
    found: list[Graph] = []
    refusals: list[tuple[int, int, str]] = []
    for one in range(1, rank) if axis is None else [axis]:
        rewriter = Rewriter(lowered, one, hop)
        try:
            found.append(rewriter.run())
        except Refused as error:
            refusals.append((-rewriter.streamed, one, str(error)))
    if not found:
        _, one, reason = min(refusals, default=(0, 0, "its input has no axis beside the batch"))
        raise ModelError(f"{graph.name} cannot run on a stream along axis {one}: {reason}")
    return demand_same_windows(min(found, key=macs))
