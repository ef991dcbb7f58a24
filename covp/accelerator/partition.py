"""The partitioner: which layer runs where - the cheapest cover of the graph by the estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.candidates import Candidate, Findings, find_candidates
from covp.accelerator.core_cycles import core_cycles
from covp.accelerator.cover import UNKNOWN, Choice, cheapest, groups
from covp.accelerator.explanation import alternatives, refusals, slower
from covp.accelerator.placement import NEGLIGIBLE, Alternative, Partition, Placement, Refusal
from covp.base.request import DEFAULT_BUILD, BuildOptions
from covp.chip.cores import Core
from covp.errors import UsageError
from covp.graph.graph import Graph, Op

__all__ = ["Alternative", "Partition", "Placement", "Refusal", "partition"]

CLEARLY = 2
"""The core gets what an accelerator accepts where it is more than this many times faster: the
estimates are off by less, mostly, and who names an accelerator expects to see it used."""


def partition(
    graph: Graph,
    backends: Sequence[AcceleratorBackend],
    core: Core | None = None,
    options: BuildOptions = DEFAULT_BUILD,
) -> Partition:
    """Give each operator to the core or to a match that an accelerator accepts.

    Of all covers of the graph by matches (each pattern, with operands in every order) and by single
    operators on the core, the one with the fewest estimated cycles is taken, drivers included.
    No accepted match is left to the core alone, unless the core is more than twice as fast and
    the accelerator gets other layers. Of equally cheap covers the one counts that uses, from the
    last operator backwards, the accelerator named first, then its pattern named first.

    A match of an unknown estimate is left aside where an accelerator named earlier estimates the
    same operators. Matches that overlap with another one of an unknown estimate are not compared:
    the last operators come first, the accelerator named first takes them, and of its matches the
    first pattern's, with the operands that multiply most.

    Args:
        graph: after all passes.
        backends: as named.
        core: that computes the rest; None stands for a plain one.
        options: with ``allow_slower`` no accepted match is left to the core alone.

    Raises:
        UsageError: two backends have one name.
        AcceleratorError: a backend broke its contract; the text names it and the layer.
    """
    names = [backend.name for backend in backends]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two accelerators are named {name}; the names tell them apart")
    found = find_candidates(graph, backends, core)
    costs = {op: core_cycles(op, core) for op in graph.ops}
    every = set(names) if options.allow_slower else set()
    chosen = _choose(graph, found, costs, every)
    unused = {candidate.backend.name for candidate in found.accepted} - _used(chosen)
    if unused - every:
        chosen = _choose(graph, found, costs, every | unused)
    placements = _placements(graph, chosen, costs)
    return Partition(
        placements,
        refusals(placements, found, backends, costs),
        alternatives(placements, found, costs),
        slower(placements, found, costs),
    )


def _used(chosen: Sequence[Candidate]) -> set[str]:
    return {candidate.backend.name for candidate in chosen}


def _placements(
    graph: Graph, chosen: Sequence[Candidate], costs: Mapping[Op, int | None]
) -> tuple[Placement, ...]:
    """The core gets what is left; a layer is where its last operator is."""
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
    graph: Graph, found: Findings, costs: Mapping[Op, int | None], insisted: set[str]
) -> list[Candidate]:
    """The accepted matches that are used; accelerators insisted on are, however slow they are."""
    accepted = _comparable(found.accepted)
    numbered = _number(graph, accepted, costs, insisted)
    chosen: list[Candidate] = []
    for group in groups(numbered.choices):
        own = [accepted[position] for position in group]
        picked = None
        if all(candidate.cycles is not None for candidate in own):
            picked = cheapest(numbered.core, [numbered.choices[position] for position in group])
        if picked is None:
            chosen += _first_named(graph, own)
        else:
            chosen += [own[position] for position in picked]
    return chosen


def _comparable(accepted: Sequence[Candidate]) -> list[Candidate]:
    """Without matches of an unknown estimate that one named earlier computes as well."""
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
    insisted: set[str],
) -> _Numbered:
    positions = {op: position for position, op in enumerate(graph.ops)}
    core = [UNKNOWN if cost is None else cost for cost in costs.values()]
    choices = []
    for candidate in accepted:
        members = frozenset(positions[op] for op in candidate.match.ops)
        cycles = candidate.cycles or 0
        alone = CLEARLY * sum(core[member] for member in members) + NEGLIGIBLE
        wanted = candidate.backend.name in insisted or cycles <= alone
        choices.append(Choice(members, cycles, wanted))
    return _Numbered(core, choices)


def _first_named(graph: Graph, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The choice where not all estimates are known."""
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
    """The first one, or that with the fewest cycles where all are known and compute the same."""
    first = offers[0]
    known = [offer.cycles for offer in offers if offer.cycles is not None]
    if len(known) < len(offers) or any(o.match.ops != first.match.ops for o in offers):
        return first
    return offers[known.index(min(known))]
