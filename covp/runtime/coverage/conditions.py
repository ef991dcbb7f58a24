"""Conditions of the decisions of a file, as far as they were shown to decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from covp.runtime.coverage.files import Branch, Decision, FileCoverage
from covp.runtime.coverage.masking import Status, judge

_BETTER: tuple[Status, ...] = ("missed", "unknown", "shown")


@dataclass(frozen=True)
class ConditionCoverage:
    """A condition of ``&&`` and ``||``.

    Attributes:
        line, column: of its branch in the source.
        number, of: which condition of its decision it is, from 1, and how many there are.
        both: both of its values were seen.
        status: whether it was seen to decide alone; see `covp.runtime.coverage.masking`.
    """

    line: int
    column: int
    number: int
    of: int
    both: bool
    status: Status


def conditions(file: FileCoverage) -> list[ConditionCoverage]:
    """The conditions of a file by line; those of copies of a decision are put together."""
    found: dict[tuple[tuple[int, int], ...], list[ConditionCoverage]] = {}
    for decision, branches in file.decisions:
        judged = _judged(decision, branches)
        key = tuple((one.line, one.column) for one in judged)
        found[key] = list(map(_together, found.get(key, judged), judged))
    return [one for key in sorted(found) for one in found[key]]


def _judged(decision: Decision, branches: Sequence[Branch]) -> list[ConditionCoverage]:
    result = []
    judged = judge(decision.conditions, branches)
    for number, (condition, status) in enumerate(zip(decision.conditions, judged, strict=True)):
        branch = branches[condition.branch]
        result.append(
            ConditionCoverage(
                branch.line,
                branch.column,
                number + 1,
                len(judged),
                branch.outcomes == 2,
                "shown" if decision.shown[number] else status,
            )
        )
    return result


def _together(one: ConditionCoverage, other: ConditionCoverage) -> ConditionCoverage:
    """Of two copies: what one of them shows."""
    status = max(one.status, other.status, key=_BETTER.index)
    return ConditionCoverage(
        one.line, one.column, one.number, one.of, one.both or other.both, status
    )
