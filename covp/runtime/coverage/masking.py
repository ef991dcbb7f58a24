"""Which conditions were seen to decide alone: masking MC/DC from counts of branches.

A path through a decision shows a condition where the other value of that condition alone leads to
the other outcome: conditions that were evaluated keep their values, the others may have any.
Masking MC/DC wants such a path for each of its two values (Chilenski, "An investigation of three
forms of the modified condition decision coverage criterion", DOT/FAA/AR-01/18).

Counts tell of edges, not of paths. Where each condition is reached in one way only, edges imply the
paths (Bordin, Comar, Gingold, Guitton, Hainque, Quinot, "Object and source coverage for critical
applications with the Couverture open analysis framework", ERTS 2010). Elsewhere a path ran for
certain if its edges ran more often together than the conditions on it could have missed it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Literal

from covp.runtime.coverage.files import Branch, Condition

Status = Literal["shown", "missed", "unknown"]
LARGEST = 10
"""Conditions of a decision whose paths are looked at; larger ones are "unknown"."""

Path = tuple[tuple[int, bool], ...]
"""(condition, whether its branch was taken), in the order of evaluation."""


def judge(conditions: Sequence[Condition], branches: Sequence[Branch]) -> tuple[Status, ...]:
    """For each condition: "shown" to decide alone; "missed": it was not; "unknown": counts do not
    tell.

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
        """Of a condition."""
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

    def _deciding(self, number: int, value: bool) -> list[Path]:
        return [path for path in self._paths(number, value) if self._decides(path)]

    def _paths(self, number: int, value: bool) -> Iterator[Path]:
        """All ways from a condition with a value to an outcome."""
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
        """Whether the other value of the path's first condition can lead to the other outcome."""
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
        """Whether some evaluation took all of a path: those that left it are too few."""
        taking = self._count(*path[0])
        for number, value in path[1:]:
            taking -= self.lost[number] + self._count(number, not value)
        return taking > 0
