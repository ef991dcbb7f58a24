"""The partitioner: which layer runs where - the cheapest cover of the graph by the estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.call import NO_COSTS, CoreCosts
from covp.accelerator.candidates import Candidate, Findings, find_candidates
from covp.accelerator.cover import UNKNOWN, Choice, cheapest, groups
from covp.accelerator.explanation import alternatives, refusals, slower
from covp.accelerator.placement import Alternative, Partition, Placement, Refusal
from covp.base.plugins import call_hook
from covp.base.request import DEFAULT_BUILD, BuildOptions
from covp.errors import AcceleratorError, UsageError
from covp.graph.graph import Graph, Op

__all__ = ["Alternative", "Partition", "Placement", "Refusal", "partition", "plan_accelerators"]


def partition(
    graph: Graph,
    backends: Sequence[AcceleratorBackend],
    costs: CoreCosts = NO_COSTS,
    options: BuildOptions = DEFAULT_BUILD,
) -> Partition:
    """Give each operator to the core or to a match that an accelerator accepts.

    Of all covers of the graph by matches (each pattern, with operands in every order) and by single
    operators on the core, the one with the fewest cycles is taken, drivers included. Of equally
    cheap covers the one counts that uses, from the last operator backwards, the accelerator named
    first, then its pattern named first; the core comes last.

    A match of an unknown estimate is left aside where an accelerator named earlier estimates the
    same operators. Matches that overlap with another one of an unknown estimate are not compared:
    the last operators come first, the accelerator named first takes them, and of its matches the
    first pattern's, with the operands that multiply most.

    Args:
        graph: after all passes.
        backends: as named.
        costs: cycles of the core. An operator of unknown cost is left to the core at last.
        options: with ``allow_slower`` no accepted match is left to the core alone.

    Raises:
        UsageError: two backends have one name.
        AcceleratorError: a backend broke its contract; the text names it and the layer.
    """
    names = [backend.name for backend in backends]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two accelerators are named {name}; the names tell them apart")
    found = find_candidates(graph, backends, costs)
    on_core = (costs if found.accepted else NO_COSTS).operators(graph)
    placements = _placements(graph, _choose(graph, found, on_core, options.allow_slower), on_core)
    return Partition(
        placements,
        refusals(placements, found, backends, on_core),
        alternatives(placements, found, on_core),
        slower(placements, found, on_core),
    )


def plan_accelerators(split: Partition, backends: Sequence[AcceleratorBackend]) -> Partition:
    """Return the partition with accelerators that have seen all of their layers.

    Args:
        split: as `partition` gives it.
        backends: as named.

    Raises:
        AcceleratorError: `for_layers` raised, or gave something else.
    """
    placements = list(split.placements)
    for backend in backends:
        own = [p.match for p in split.placements if p.backend is backend and p.match is not None]
        where = f"accelerator {backend.name}"
        planned = call_hook(where, "for_layers", backend.for_layers, own)
        if not isinstance(planned, type(backend)):
            raise AcceleratorError(
                f"{where}: for_layers() gave {planned!r:.80}, not an accelerator like it"
            )
        if planned is not backend:
            placements = [
                _move(each, planned) if each.backend is backend else each for each in placements
            ]
    return replace(split, placements=tuple(placements))


def _move(placement: Placement, backend: AcceleratorBackend) -> Placement:
    """Return a placement on the accelerator as it is after `for_layers`, with its cycles."""
    assert placement.backend is not None and placement.match is not None
    where, cycles = f"accelerator {backend.name}", placement.cycles
    before = call_hook(where, "estimate", placement.backend.estimate, placement.match)
    after = call_hook(where, "estimate", backend.estimate, placement.match)
    if cycles is not None and before is not None and after is not None:
        cycles += after - before
    return replace(placement, backend=backend, cycles=cycles)


def _placements(
    graph: Graph, chosen: Sequence[Candidate], costs: Mapping[Op, int | None]
) -> tuple[Placement, ...]:
    """Return the placements: the core gets what is left; a layer is where its last operator is."""
    taken = {op for candidate in chosen for op in candidate.match.ops}
    layers = {c.match.op: Placement(c.match.ops, c.backend, c.match, c.cycles) for c in chosen} | {
        op: Placement((op,), cycles=costs[op]) for op in graph.ops if op not in taken
    }
    return tuple(layers[op] for op in graph.ops if op in layers)


@dataclass(frozen=True)
class _Numbered:
    """The graph and the accepted matches as numbers."""

    core: list[int]
    choices: list[Choice]


def _choose(
    graph: Graph, found: Findings, costs: Mapping[Op, int | None], allow_slower: bool
) -> list[Candidate]:
    """Return the accepted matches that are used."""
    accepted = _comparable(found.accepted)
    numbered = _number(graph, accepted, costs, allow_slower)
    chosen: list[Candidate] = []
    for group in groups(numbered.choices):
        own = [accepted[position] for position in group]
        picked = None
        if all(candidate.cycles is not None for candidate in own):
            picked = cheapest(numbered.core, [numbered.choices[position] for position in group])
        if picked is None:
            chosen += _choose_by_order(graph, own)
        else:
            chosen += [own[position] for position in picked]
    return chosen


def _comparable(accepted: Sequence[Candidate]) -> list[Candidate]:
    """Drop matches without an estimate if an earlier match of the same operators has one."""
    estimated: set[tuple[Op, ...]] = set()
    kept = []
    for candidate in accepted:
        if candidate.cycles is not None:
            estimated.add(candidate.match.ops)
        elif candidate.match.ops in estimated:
            continue
        kept.append(candidate)
    return kept


def _number(
    graph: Graph,
    accepted: Sequence[Candidate],
    costs: Mapping[Op, int | None],
    allow_slower: bool,
) -> _Numbered:
    positions = {op: position for position, op in enumerate(graph.ops)}
    core = [UNKNOWN if cost is None else cost for cost in costs.values()]
    choices = []
    for candidate in accepted:
        members = frozenset(positions[op] for op in candidate.match.ops)
        choices.append(Choice(members, candidate.cycles or 0, allow_slower))
    return _Numbered(core, choices)


def _choose_by_order(graph: Graph, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the choice where not all estimates are known."""
    taken: set[Op] = set()
    chosen: list[Candidate] = []
    for op in reversed(graph.ops):
        offers: dict[str, Candidate] = {}
        for candidate in candidates:
            if candidate.match.op is op and taken.isdisjoint(candidate.match.ops):
                offers.setdefault(candidate.backend.name, candidate)
        if offers:
            chosen.append(_cheapest_offer(list(offers.values())))
            taken.update(chosen[-1].match.ops)
    return chosen


def _cheapest_offer(offers: Sequence[Candidate]) -> Candidate:
    """Return the first one, or the fastest where all cycles are known and all compute the same."""
    first = offers[0]
    known = [offer.cycles for offer in offers if offer.cycles is not None]
    if len(known) < len(offers) or any(o.match.ops != first.match.ops for o in offers):
        return first
    return offers[known.index(min(known))]
