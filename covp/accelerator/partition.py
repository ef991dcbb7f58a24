"""The partitioner: which layer runs where, and why not elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from covp.accelerator.backend import AcceleratorBackend
from covp.errors import AcceleratorError, CovpError, UsageError
from covp.graph.graph import Graph, Op
from covp.graph.pattern import Match


@dataclass(frozen=True)
class Refusal:
    """Why an accelerator did not take a layer: one line with the constraint and the value seen."""

    layer: str
    accelerator: str
    reason: str
    matched: bool = False
    """Whether a pattern matched and the backend itself refused."""


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
        """What one accelerator refused; layers that it looked at closely come first."""
        own = [refusal for refusal in self.refusals if refusal.accelerator == accelerator]
        return sorted(own, key=lambda refusal: not refusal.matched)


def partition(graph: Graph, backends: Sequence[AcceleratorBackend]) -> Partition:
    """Give each layer to the first backend, in order, that matches and supports it.

    Within a backend its patterns are tried in order. Operators are visited from the last one
    backwards, so that a pattern of several operators is seen before its parts.

    Raises:
        UsageError: one accelerator is named twice.
        AcceleratorError: a backend broke its contract; the text names it and the layer.
    """
    names = [backend.name for backend in backends]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"accelerator {name} is named twice; its drivers would clash")
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
    """Where a layer that ends with ``op`` runs, and the backends that would not have it."""
    refusals: list[Refusal] = []
    for backend in backends:
        answer = _ask(graph, op, backend, taken)
        if isinstance(answer, Match):
            return Placement(answer.ops, backend, answer), refusals
        refusals.append(answer)
    return Placement((op,)), refusals


def _ask(graph: Graph, op: Op, backend: AcceleratorBackend, taken: set[Op]) -> Match | Refusal:
    """The match that a backend takes, or why it takes none."""
    reasons = []
    for pattern in backend.patterns:
        found = pattern.match(graph, op)
        if found is None or not taken.isdisjoint(found.ops):
            continue
        answer = _supports(backend, found)
        if answer is True:
            return found
        reasons.append(answer or f"pattern {pattern.name}: not supported")
    if reasons:
        return Refusal(op.name, backend.name, reasons[0], matched=True)
    kinds = sorted(frozenset().union(*(pattern.node.kinds() for pattern in backend.patterns)))
    if op.kind in kinds:
        names = ", ".join(pattern.name for pattern in backend.patterns)
        reason = f"{op.kind} whose inputs fit no pattern ({names})"
    else:
        reason = f"operator {op.kind}; only {', '.join(kinds) or 'none'}"
    return Refusal(op.name, backend.name, reason)


def _supports(backend: AcceleratorBackend, match: Match) -> bool | str:
    where = f"accelerator {backend.name}, layer {match.op.name}"
    try:
        answer = backend.supports(match)
    except CovpError:
        raise
    except Exception as error:
        raise AcceleratorError(
            f"{where}: supports() raised {type(error).__name__}: {error}"
        ) from error
    if not isinstance(answer, (bool, str)):
        raise AcceleratorError(
            f"{where}: supports() must return True, False or a reason, not {answer!r}"
        )
    return answer
