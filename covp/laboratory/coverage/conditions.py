"""Conditions of the decisions of a file, as far as they were shown to decide."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from covp.laboratory.coverage.files import Branch, Condition, Decision, FileCoverage

Status = Literal["shown", "missed", "unknown"]
LARGEST = 10
"""Conditions of a decision whose paths are looked at; larger ones are "unknown"."""

Path = tuple[tuple[int, bool], ...]
"""(condition, whether its branch was taken), in the order of evaluation."""


def judge(conditions: Sequence[Condition], branches: Sequence[Branch]) -> tuple[Status, ...]:
    """Say if each condition is "shown" to decide alone, "missed", or "unknown" from counts.

    Args:
        conditions: of a decision.
        branches: of the function, with their counts.
    """
    graph = _Graph(conditions, branches)
    return tuple(graph.status(number) for number in range(len(conditions)))


class _Graph:
    """A decision's edges with their counts."""

    def __init__(self, conditions: Sequence[Condition], branches: Sequence[Branch]) -> None:
        self.edges: dict[tuple[int, bool], tuple[int, int]] = {}
        arrived: dict[int, int] = defaultdict(int)
        for number, one in enumerate(conditions):
            branch = branches[one.branch]
            self.edges[number, True] = one.taken, branch.taken or 0
            self.edges[number, False] = one.untaken, branch.untaken or 0
        for target, count in self.edges.values():
            arrived[target] += count
        self.runs = [self._count(n, True) + self._count(n, False) for n in range(len(self))]
        # evaluations that ended between two conditions, with a fault
        self.lost = [max(0, arrived[n] - runs) for n, runs in enumerate(self.runs)]

    def __len__(self) -> int:
        return len(self.edges) // 2

    def _count(self, number: int, value: bool) -> int:
        return self.edges[number, value][1]

    def status(self, number: int) -> Status:
        """Return the status of a condition."""
        if not (self._count(number, True) and self._count(number, False)):
            return "missed"
        if len(self) > LARGEST:
            return "unknown"
        sides = [
            [p for p in self._paths(number, value) if self._decides(p)] for value in (True, False)
        ]
        pairs = [
            (self._certain(one), self._certain(other))
            for one in sides[0]
            for other in sides[1]
            if self._outcome(one) != self._outcome(other) and self._possible(one + other)
        ]
        if any(one and other for one, other in pairs):
            return "shown"
        return "unknown" if pairs else "missed"

    def _find_paths(self, number: int, value: bool) -> list[Path]:
        return [path for path in self._paths(number, value) if self._decides(path)]

    def _paths(self, number: int, value: bool) -> Iterator[Path]:
        """Yield all ways from a condition with a value to an outcome."""
        target, _ = self.edges[number, value]
        if target < 0:
            yield ((number, value),)
            return
        for following in (True, False):
            for rest in self._paths(target, following):
                yield ((number, value), *rest)

    def _outcome(self, path: Path) -> int:
        return self.edges[path[-1]][0]

    def _decides(self, path: Path) -> bool:
        """Return whether the path's first condition with its other value can change the outcome."""
        (number, value), known = path[0], dict(path)
        others = self._paths(number, not value)
        return any(
            self._outcome(other) != self._outcome(path)
            and all(known.get(n, taken) == taken for n, taken in other[1:])
            for other in others
        )

    def _possible(self, path: Path) -> bool:
        return all(self._count(*edge) for edge in path)

    def _certain(self, path: Path) -> bool:
        """Return whether some evaluation must have taken a path: too few left it."""
        taking = self._count(*path[0])
        for number, value in path[1:]:
            taking -= self.lost[number] + self._count(number, not value)
        return taking > 0


_BETTER: tuple[Status, ...] = ("missed", "unknown", "shown")


@dataclass(frozen=True)
class ConditionCoverage:
    """A condition of ``&&`` and ``||``.

    Attributes:
        line, column: of its branch in the source.
        number, of: which condition of its decision it is, from 1, and how many there are.
        both: both of its values were seen.
        status: whether it was seen to decide alone; see `covp.laboratory.coverage.conditions`.
    """

    line: int
    column: int
    number: int
    of: int
    both: bool
    status: Status


def conditions(file: FileCoverage) -> list[ConditionCoverage]:
    """Return the conditions of a file by line; those of copies of a decision are put together."""
    found: dict[tuple[tuple[int, int], ...], list[ConditionCoverage]] = {}
    for decision, branches in file.decisions:
        judged = _judge_conditions(decision, branches)
        key = tuple((one.line, one.column) for one in judged)
        found[key] = list(map(_merge, found.get(key, judged), judged))
    return [one for key in sorted(found) for one in found[key]]


def _judge_conditions(decision: Decision, branches: Sequence[Branch]) -> list[ConditionCoverage]:
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


def _merge(one: ConditionCoverage, other: ConditionCoverage) -> ConditionCoverage:
    """Merge two copies of a condition: it has what one of them shows."""
    status = max(one.status, other.status, key=_BETTER.index)
    return ConditionCoverage(
        one.line, one.column, one.number, one.of, one.both or other.both, status
    )
