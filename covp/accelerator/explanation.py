"""Why the partitioner chose as it did: reasons, alternatives, warnings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.candidates import Candidate, Findings, Rejection
from covp.accelerator.placement import Alternative, Placement, Refusal, join_names
from covp.base.plural import pluralize
from covp.graph.graph import Op

Costs = Mapping[Op, int | None]
"""Simulated cycles of each operator on the core; None: unknown."""


def refusals(
    placements: Sequence[Placement],
    found: Findings,
    backends: Sequence[AcceleratorBackend],
    costs: Costs,
) -> tuple[Refusal, ...]:
    """Return, for each layer, a refusal by every accelerator that did not get it."""
    where = {op: placement for placement in placements for op in placement.ops}
    return tuple(
        _refusal(placement, backend, found, where, costs)
        for placement in placements
        for backend in backends
        if placement.backend is not backend
    )


def _refusal(
    placement: Placement,
    backend: AcceleratorBackend,
    found: Findings,
    where: Mapping[Op, Placement],
    costs: Costs,
) -> Refusal:
    op = placement.ops[-1]
    lost = [
        candidate
        for candidate in found.accepted
        if candidate.backend is backend and not candidate_ops(candidate).isdisjoint(placement.ops)
    ]
    if lost:
        closest = next((c for c in lost if c.match.ops == placement.ops), lost[0])
        return Refusal(op.name, backend.name, _lost(closest, where, costs), accepted=True)
    rejected = _rejection(op, backend, found)
    if rejected is None:
        return Refusal(op.name, backend.name, _explain_no_match(op, backend))
    return Refusal(
        op.name,
        backend.name,
        rejected.reason,
        matched=True,
        limits=rejected.limits,
        estimate=rejected.unit_cycles,
        operators=tuple(member.name for member in rejected.match.ops),
    )


def candidate_ops(candidate: Candidate | Rejection) -> frozenset[Op]:
    """Return the operators of a match."""
    return frozenset(candidate.match.ops)


def _rejection(op: Op, backend: AcceleratorBackend, found: Findings) -> Rejection | None:
    """Return the rejected match with an operator, if possible one that ends with it."""
    own = [r for r in found.rejected if r.backend is backend and op in r.match.ops]
    return next((r for r in own if r.match.op is op), own[0] if own else None)


def _lost(candidate: Candidate, where: Mapping[Op, Placement], costs: Costs) -> str:
    """Return the reason why an accepted match is not used."""
    rivals = list(dict.fromkeys(where[op] for op in candidate.match.ops))
    if all(rival.backend is None for rival in rivals):
        return (
            f"the core needs fewer cycles, {_core(candidate, costs):,} for about "
            f"{candidate.cycles or 0:,}; --allow-slower gives it the layer"
        )
    rival = rivals[0]
    if len(rivals) == 1 and rival.ops == candidate.match.ops:
        if candidate.cycles is None and rival.cycles is not None:
            return f"{rival.target} accepts it, and {candidate.backend.name} has no estimate"
        if rival.cycles is None or candidate.cycles is None or rival.cycles >= candidate.cycles:
            return f"{rival.target} accepts it and was named first"
        return f"{rival.target} needs fewer cycles, about {rival.cycles:,}"
    cycles = "" if candidate.cycles is None else f", about {candidate.cycles:,} cycles"
    others = ", ".join(f"{_target(r)} for {join_names(r.names)}{_about(r.cycles)}" for r in rivals)
    names = join_names([op.name for op in candidate.match.ops])
    return f"pattern {candidate.match.name} takes {names}{cycles}; chosen: {others}"


def _target(placement: Placement) -> str:
    return "the core" if placement.backend is None else placement.target


def _about(cycles: int | None) -> str:
    return "" if cycles is None else f" (about {cycles:,})"


def _explain_no_match(op: Op, backend: AcceleratorBackend) -> str:
    """Return the reason where no pattern of a backend has a match with the operator."""
    last = frozenset().union(*(pattern.node.kinds() for pattern in backend.patterns))
    if op.kind in last:
        names = ", ".join(pattern.name for pattern in backend.patterns)
        return f"{op.kind} whose inputs fit no pattern ({names})"
    parts = [p.name for p in backend.patterns if op.kind in p.node.all_kinds()]
    if parts:
        return f"{op.kind} only inside of pattern {' or '.join(parts)}, which does not fit here"
    return f"operator {op.kind}; only {', '.join(sorted(last)) or 'none'}"


def alternatives(
    placements: Sequence[Placement], found: Findings, costs: Costs
) -> tuple[Alternative, ...]:
    """Return everything there was to choose from, each layer's choice first."""
    used = {placement.match for placement in placements if placement.match is not None}
    on_core = {op for p in placements if p.backend is None for op in p.ops}
    by_root: dict[Op, list[Alternative]] = {}
    for candidate in found.accepted:
        match = candidate.match
        names = tuple(op.name for op in match.ops)
        entry = Alternative(
            names, candidate.backend.name, match.name, candidate.cycles, match in used
        )
        by_root.setdefault(match.op, []).append(entry)
    matched = {op for candidate in found.accepted for op in candidate.match.ops}
    for op in matched:
        entry = Alternative((op.name,), "cpu", "", costs[op], op in on_core)
        by_root.setdefault(op, []).append(entry)
    return tuple(entry for op in costs for entry in _by_choice(by_root.get(op, ())))


def _by_choice(entries: Iterable[Alternative]) -> list[Alternative]:
    return sorted(entries, key=lambda entry: not entry.chosen)


def slower(placements: Sequence[Placement], found: Findings, costs: Costs) -> tuple[str, ...]:
    """Return warnings of accelerators that the core is faster than."""
    used = {placement.match for placement in placements if placement.match is not None}
    on_core = {op for p in placements if p.backend is None for op in p.ops}
    behind: dict[tuple[str, bool], list[Candidate]] = {}
    for candidate in found.accepted:
        unused = candidate_ops(candidate) <= on_core
        if _is_slower(candidate, costs) and (unused or candidate.match in used):
            behind.setdefault((candidate.backend.name, unused), []).append(candidate)
    return tuple(_slower(name, unused, own, costs) for (name, unused), own in behind.items())


def _slower(name: str, unused: bool, own: Sequence[Candidate], costs: Costs) -> str:
    first = max(own, key=lambda candidate: candidate.cycles or 0)
    count = pluralize(len(own), "layer")
    what = f"{count} left to the core" if unused else count
    advice = "--allow-slower takes them" if unused else "used all the same"
    return (
        f"accelerator {name}: {what}, slower on it than on the core "
        f"({join_names([op.name for op in first.match.ops])}: about {first.cycles:,} cycles for "
        f"{_core(first, costs):,}); {advice}"
    )


def _is_slower(candidate: Candidate, costs: Costs) -> bool:
    if candidate.cycles is None or any(costs[op] is None for op in candidate.match.ops):
        return False
    return candidate.cycles > _core(candidate, costs)


def _core(candidate: Candidate, costs: Costs) -> int:
    return sum(costs[op] or 0 for op in candidate.match.ops)
