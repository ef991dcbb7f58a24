"""The partitioner: which layer runs where, and why not elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.limits import Limit, broken
from covp.errors import AcceleratorError, ModelError, UsageError
from covp.graph.graph import Graph, Op
from covp.graph.pattern import Match, Pattern
from covp.plugins import call_hook

_T = TypeVar("_T")


@dataclass(frozen=True)
class Refusal:
    """The reason why an accelerator did not get a layer.

    Attributes:
        layer: name of the operator.
        reason: one line with the constraint and the value seen.
        matched: a pattern matched, and the backend itself rejected the layer.
        limits: the conditions that did not hold, where the backend states them as data.
        estimate: cycles that the accelerator itself would need; None: unknown.
    """

    layer: str
    accelerator: str
    reason: str
    matched: bool = False
    limits: tuple[Limit, ...] = ()
    estimate: int | None = None


@dataclass(frozen=True, eq=False)
class Placement:
    """A layer: operators that are computed as one, on an accelerator or on the core.

    Attributes:
        ops: in the graph's order; the last one's outputs are the layer's.
        backend: the accelerator, or None for the core.
        match: what the backend matched, or None for the core.
    """

    ops: tuple[Op, ...]
    backend: AcceleratorBackend | None = None
    match: Match | None = None


@dataclass(frozen=True)
class Partition:
    """Every operator in exactly one placement, in an order that can run."""

    placements: tuple[Placement, ...]
    refusals: tuple[Refusal, ...]

    def reasons(self, accelerator: str) -> list[Refusal]:
        """The layers that one accelerator did not get, those that a pattern matched first."""
        own = [refusal for refusal in self.refusals if refusal.accelerator == accelerator]
        return sorted(own, key=lambda refusal: not refusal.matched)


def partition(graph: Graph, backends: Sequence[AcceleratorBackend]) -> Partition:
    """Give each layer of a graph to a backend that matches and supports it.

    Where several do, the one with the smallest `AcceleratorBackend.estimate` gets the layer; where
    one of them does not estimate, or they match different operators, the first one named.

    Within a backend its patterns are tried in order. Operators are visited from the last one
    backwards, so that a pattern of several operators is seen before its parts.

    Raises:
        UsageError: two backends have one name.
        AcceleratorError: a backend broke its contract; the text names it and the layer.
    """
    names = [backend.name for backend in backends]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two accelerators are named {name}; the names tell them apart")
    taken: set[Op] = set()
    placements: list[Placement] = []
    refusals: list[list[Refusal]] = []
    for op in reversed(graph.ops):
        if op in taken:
            continue
        placement, reasons = _place(graph, op, backends, taken)
        taken.update(placement.ops)
        placements.append(placement)
        refusals.append(reasons)
    return Partition(
        tuple(reversed(placements)), tuple(r for reasons in reversed(refusals) for r in reasons)
    )


def _place(
    graph: Graph, op: Op, backends: Sequence[AcceleratorBackend], taken: set[Op]
) -> tuple[Placement, list[Refusal]]:
    """The placement of a layer that ends with ``op``, and the backends that did not get it."""
    refusals: list[Refusal] = []
    offers: list[Placement] = []
    for backend in backends:
        answer = _ask(graph, op, backend, taken)
        if isinstance(answer, Match):
            offers.append(Placement(answer.ops, backend, answer))
        else:
            refusals.append(answer)
    if not offers:
        return Placement((op,)), refusals
    chosen, reason = _cheapest(offers)
    for offer in offers:
        if offer is not chosen and offer.backend is not None:
            refusals.append(Refusal(op.name, offer.backend.name, reason))
    return chosen, refusals


def _cheapest(offers: Sequence[Placement]) -> tuple[Placement, str]:
    """The offer that gets the layer, and the reason."""
    first = offers[0]
    costs = [_estimate(offer) for offer in offers]
    known = [cost for cost in costs if cost is not None]
    if len(offers) == 1 or len(known) < len(offers) or any(o.ops != first.ops for o in offers):
        assert first.backend is not None
        return first, f"{first.backend.name} accepts it and was named first"
    chosen = offers[costs.index(min(known))]
    assert chosen.backend is not None
    return chosen, f"{chosen.backend.name} needs fewer cycles, about {min(known):,}"


def _estimate(offer: Placement) -> int | None:
    assert offer.backend is not None and offer.match is not None
    return _call(offer.backend, offer.match, "estimate", offer.backend.estimate)


def _worth(backend: AcceleratorBackend, match: Match, limits: Sequence[Limit]) -> int | None:
    """The estimate for a rejected layer; only limits say that it could be accepted at all."""
    if not limits:
        return None
    try:
        return _call(backend, match, "estimate", backend.estimate)
    except ModelError:
        return None


def _ask(graph: Graph, op: Op, backend: AcceleratorBackend, taken: set[Op]) -> Match | Refusal:
    """The match that a backend accepts, or the reason why it accepts none."""
    rejected: list[tuple[Match, str, tuple[Limit, ...]]] = []
    for pattern in backend.patterns:
        found = _matched(backend, pattern, graph, op)
        if found is None or not taken.isdisjoint(found.ops):
            continue
        reason, limits = _supports(backend, found)
        if not reason:
            return found
        rejected.append((found, reason, limits))
    if rejected:
        match, reason, limits = rejected[0]
        return Refusal(op.name, backend.name, reason, True, limits, _worth(backend, match, limits))
    kinds = sorted(frozenset().union(*(pattern.node.kinds() for pattern in backend.patterns)))
    if op.kind in kinds:
        names = ", ".join(pattern.name for pattern in backend.patterns)
        reason = f"{op.kind} whose inputs fit no pattern ({names})"
    else:
        reason = f"operator {op.kind}; only {', '.join(kinds) or 'none'}"
    return Refusal(op.name, backend.name, reason)


def _matched(backend: AcceleratorBackend, pattern: object, graph: Graph, op: Op) -> Match | None:
    if not isinstance(pattern, Pattern):
        raise AcceleratorError(
            f"accelerator {backend.name}: patterns must hold Patterns, not {pattern!r}"
        )
    where = f"accelerator {backend.name}, layer {op.name}"
    return call_hook(where, f"a predicate of pattern {pattern.name}", pattern.match, graph, op)


def _supports(backend: AcceleratorBackend, match: Match) -> tuple[str, tuple[Limit, ...]]:
    """The reason why a backend rejects a match, empty where it does not, and the broken limits."""
    answer: object = _call(backend, match, "supports", backend.supports)
    if answer is True:
        return "", ()
    if isinstance(answer, str):
        return answer or "not supported", ()
    if answer is False:
        return f"pattern {match.name}: not supported", ()
    if isinstance(answer, Sequence) and all(isinstance(limit, Limit) for limit in answer):
        failed = _call(backend, match, "supports", lambda _: broken(answer))
        return ", ".join(map(str, failed)), failed
    raise AcceleratorError(
        f"accelerator {backend.name}, layer {match.op.name}: supports() must return True, False, "
        f"a reason or limits, not {answer!r}"
    )


def _call(backend: AcceleratorBackend, match: Match, hook: str, run: Callable[[Match], _T]) -> _T:
    """The answer of a backend about a match."""
    return call_hook(f"accelerator {backend.name}, layer {match.op.name}", hook, run, match)
