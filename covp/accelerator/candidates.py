"""All matches of all accelerators in a graph, with the answer and the estimate of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.call import NO_COSTS, CoreCosts
from covp.accelerator.limits import Limit, broken_limits
from covp.base.plugins import call_hook
from covp.errors import AcceleratorError, ModelError
from covp.graph.graph import Graph, Op
from covp.graph.ops import OPS
from covp.graph.pattern import Match, Pattern

_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class Candidate:
    """A match that an accelerator accepts.

    Attributes:
        unit_cycles: of the accelerator's jobs, its own estimate; None: unknown.
        cycles: with the driver's; None: unknown.
    """

    backend: AcceleratorBackend
    match: Match
    unit_cycles: int | None
    cycles: int | None


@dataclass(frozen=True, eq=False)
class Rejection:
    """A match that an accelerator rejects.

    Attributes:
        reason: one line with the constraint and the value seen.
        limits: the conditions that did not hold, where the backend states them as data.
        unit_cycles: that it would need; None: unknown, or it could never accept the match.
    """

    backend: AcceleratorBackend
    match: Match
    reason: str
    limits: tuple[Limit, ...]
    unit_cycles: int | None


@dataclass(frozen=True)
class Findings:
    """Every match, in the order of accelerators as named, their patterns, and operand orders."""

    accepted: tuple[Candidate, ...]
    rejected: tuple[Rejection, ...]


def find_candidates(
    graph: Graph, backends: Sequence[AcceleratorBackend], costs: CoreCosts = NO_COSTS
) -> Findings:
    """Lay every pattern of every accelerator over every operator, and ask about each match.

    Args:
        graph: after all passes.
        backends: as named.
        costs: cycles of the core, which requantizes for some accelerators.

    Raises:
        AcceleratorError: a backend broke its contract; the text names it and the layer.
    """
    accepted: list[Candidate] = []
    rejected: list[Rejection] = []
    for backend in backends:
        for pattern in backend.patterns:
            for op in graph.ops:
                for match in _matches(backend, pattern, graph, op):
                    answer = _ask(backend, match)
                    if isinstance(answer, Candidate):
                        accepted.append(answer)
                    else:
                        rejected.append(answer)
    return Findings(_with_requantization(accepted, costs), tuple(rejected))


def _matches(backend: AcceleratorBackend, pattern: object, graph: Graph, op: Op) -> Sequence[Match]:
    """Return a pattern's matches that end with an operator, the one with most arithmetic first."""
    if not isinstance(pattern, Pattern):
        raise AcceleratorError(
            f"accelerator {backend.name}: patterns must hold Patterns, not {pattern!r}"
        )
    where = f"accelerator {backend.name}, layer {op.name}"
    hook = f"a predicate of pattern {pattern.name}"
    found = call_hook(where, hook, pattern.matches, graph, op)
    return found if len(found) < 2 else sorted(found, key=_arithmetic, reverse=True)


def _arithmetic(match: Match) -> int:
    """Return the multiply-accumulates of a match, as far as its operators are known."""
    return sum(OPS[op.kind].macs(op) for op in match.ops if op.kind in OPS)


def _ask(backend: AcceleratorBackend, match: Match) -> Candidate | Rejection:
    reason, limits = _supports(backend, match)
    if reason:
        return Rejection(backend, match, reason, limits, _worth(backend, match, limits))
    unit = _cycles(backend, match, "estimate", backend.estimate)
    if unit is None:
        return Candidate(backend, match, None, None)
    driver = _cycles(backend, match, "driver_estimate", backend.driver_estimate)
    return Candidate(backend, match, unit, unit + (driver or 0))


def _with_requantization(accepted: Sequence[Candidate], costs: CoreCosts) -> tuple[Candidate, ...]:
    """Return the matches with the cycles that they leave to the core, as far as known.

    Equal units leave it the same work; where its code lies must not decide which of them is taken.
    """
    backends = list(dict.fromkeys(candidate.backend for candidate in accepted))
    first = {unit: next(o for o in backends if o.is_equal(unit)) for unit in backends}
    keys = [(first[c.backend], *_place(c.match)) for c in accepted]
    once: dict[tuple[object, ...], Candidate] = {}
    for key, candidate in zip(keys, accepted, strict=True):
        once.setdefault(key, candidate)
    left = {k: _call(c.backend, c.match, "requantizes", c.backend.requantizes)
            for k, c in once.items()}  # fmt: skip
    steps = [step for own in left.values() for step in own]
    cycles = iter(costs.requantizations(steps) if steps else ())
    more = {key: sum(next(cycles) or 0 for _ in own) for key, own in left.items()}
    return tuple(
        replace(
            candidate, cycles=None if candidate.cycles is None else candidate.cycles + more[key]
        )
        for key, candidate in zip(keys, accepted, strict=True)
    )


def _place(match: Match) -> tuple[object, ...]:
    """Return what tells a match from others of the same graph: pattern, operators, operands."""
    return match.name, *map(id, match.ops), *map(id, match.bindings.values())


def _worth(backend: AcceleratorBackend, match: Match, limits: Sequence[Limit]) -> int | None:
    """Estimate a rejected match; only limits say that it could be accepted at all."""
    if not limits:
        return None
    try:
        return _cycles(backend, match, "estimate", backend.estimate)
    except ModelError:
        return None


def _cycles(
    backend: AcceleratorBackend, match: Match, hook: str, ask: Callable[[Match], object]
) -> int | None:
    """Return the answer of a hook that estimates; a negative one says nothing, as does None."""
    answer = _call(backend, match, hook, ask)
    if answer is None:
        return None
    if isinstance(answer, (int, float, np.integer, np.floating)) and np.isfinite(float(answer)):
        return int(answer) if answer >= 0 else None
    raise AcceleratorError(
        f"accelerator {backend.name}, layer {match.op.name}: {hook}() must return cycles, "
        f"not {answer!r:.80}"
    )


def _supports(backend: AcceleratorBackend, match: Match) -> tuple[str, tuple[Limit, ...]]:
    """Return the reason why a backend rejects a match, empty if it does not, and broken limits."""
    answer: object = _call(backend, match, "supports", backend.supports)
    if answer is True:
        return "", ()
    if isinstance(answer, str):
        return answer or "not supported", ()
    if answer is False:
        return f"pattern {match.name}: not supported", ()
    if isinstance(answer, Sequence) and all(isinstance(limit, Limit) for limit in answer):
        failed = _call(backend, match, "supports", lambda _: broken_limits(answer))
        return ", ".join(map(str, failed)), failed
    raise AcceleratorError(
        f"accelerator {backend.name}, layer {match.op.name}: supports() must return True, False, "
        f"a reason or limits, not {answer!r}"
    )


def _call(backend: AcceleratorBackend, match: Match, hook: str, run: Callable[[Match], _T]) -> _T:
    """Return the answer of a backend about a match."""
    return call_hook(f"accelerator {backend.name}, layer {match.op.name}", hook, run, match)
