"""Graph to graph: each pass is one file and one function, which changes the graph in place."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence

from covp.base.plugins import call_hook
from covp.errors import CovpError, ModelError, UsageError, near_misses
from covp.graph.graph import Graph, copy_graph
from covp.graph.passes.bind_states import separate_states
from covp.graph.passes.cleanup import (
    fold_constants,
    merge_reshapes,
    remove_dead_ops,
    remove_no_ops,
    reorder_flattened_weights,
)
from covp.graph.passes.expand_operators import expand_operators
from covp.graph.passes.fuse_attention import fuse_attention
from covp.graph.passes.fusions import fold_scales, fuse_activations, fuse_pads
from covp.graph.passes.transposes import remove_transposes, reshape_for_transposes
from covp.graph.passes.unused_channels import remove_unused_channels
from covp.graph.rewrites import demand_same_results, wrong_rewrite

Pass = Callable[[Graph], None]
_log = logging.getLogger("covp.passes")
"""Logs, at INFO, each pass that changed the graph and what it removed and added."""

PASSES: tuple[Pass, ...] = (
    expand_operators,
    fold_constants,
    remove_no_ops,
    remove_transposes,
    reorder_flattened_weights,
    remove_dead_ops,
    reshape_for_transposes,
    merge_reshapes,
    fold_scales,
    fuse_pads,
    fuse_activations,
    remove_dead_ops,
    remove_unused_channels,
    fuse_attention,
    separate_states,
)
"""Passes in running order; each changes the graph in place and keeps its outputs to the bit.

Only `fold_scales` changes results, those of float layers, by their rounding."""


def run_passes(graph: Graph, more: Sequence[Callable[[Graph], Graph]] = ()) -> Graph:
    """Return a new graph that computes the same with fewer operators; the argument is unchanged.

    Args:
        graph: of a model.
        more: passes of a user, which run last; each returns the graph to go on with.

    Raises:
        ModelError: a user's pass raises, or returns no graph; a pass of covp's changes results on
            random tensors.
    """
    lowered = copy_graph(graph)
    for run in PASSES:
        _run_pass(run, lowered)
    if wrong_rewrite(graph, lowered) is not None:
        _blame(graph)
    for own in more:
        name = getattr(own, "__name__", type(own).__name__)
        changed: object = call_hook(f"model {graph.name}", name, own, lowered, error=ModelError)
        if not isinstance(changed, Graph):
            raise ModelError(f"pass {name}() must return a Graph, not {changed!r}")
        demand_states(lowered, changed, f"model {graph.name}: pass {name}()", ModelError)
        lowered = changed
    return lowered


def graph_after(graph: Graph, name: str) -> Graph:
    """Return a new graph as covp's passes leave it; the argument is not modified.

    Args:
        graph: of a model.
        name: the pass whose last run is the last one, or "all".

    Raises:
        UsageError: no pass has this name.
    """
    names = [run.__name__ for run in PASSES]
    if name != "all" and name not in names:
        known = ", ".join(dict.fromkeys([*names, "all"]))
        near = near_misses(name, {*names, "all"})
        more = f"; passes are {known}" if near.startswith("did you mean") else ""
        raise UsageError(f"--after: no pass {name!r:.80}: {near}{more}")
    last = len(names) if name == "all" else len(names) - names[::-1].index(name)
    lowered = copy_graph(graph)
    for run in PASSES[:last]:
        _run_pass(run, lowered)
    return lowered


def _run_pass(run: Pass, graph: Graph) -> None:
    """Run a pass on a graph, which it changes, and log what it changed."""
    before = copy_graph(graph) if _log.isEnabledFor(logging.INFO) else None
    run(graph)
    if before is not None:
        _log_change(run.__name__, before, graph)


def _log_change(name: str, before: Graph, after: Graph) -> None:
    constants = _new_constants(before, after)
    if str(before) == str(after) and not constants:
        return
    old, new = (Counter(op.kind for op in graph.ops) for graph in (before, after))
    said = [f"{len(before.ops)} -> {len(after.ops)} operators"]
    said += [f"{k} {old[k]} -> {new[k]}" for k in sorted(old | new) if old[k] != new[k]]
    if constants:
        said.append(f"{constants} new constant{'s' * (constants != 1)}")
    _log.info("%s: pass %s: %s", after.name, name, ", ".join(said))


def _new_constants(before: Graph, after: Graph) -> int:
    """Return how many constants of the graph are new arrays."""
    known = {id(tensor.data) for tensor in before.tensors() if tensor.constant}
    arrays = {id(tensor.data) for tensor in after.tensors() if tensor.constant}
    return len(arrays - known)


def _blame(graph: Graph) -> None:
    """Raise ModelError naming the first pass that changes results."""
    lowered = copy_graph(graph)
    for run in PASSES:
        before = copy_graph(lowered)
        run(lowered)
        demand_same_results(before, lowered, f"model {graph.name}: pass {run.__name__}")
    demand_same_results(graph, lowered, f"model {graph.name}: covp's passes together")


def demand_states(graph: Graph, changed: Graph, who: str, error: type[CovpError]) -> None:
    """Check that a graph that someone's pass returned still has the states of the original one.

    Args:
        who: ran the pass, for the error.
        error: to be raised.
    """
    kept = {state.name for state in changed.states}
    for state in graph.states:
        if state.name not in kept:
            raise error(
                f"{who} lost the state {state.name}; a new Graph needs the states of the old one: "
                "Graph(..., states=graph.states)"
            )
