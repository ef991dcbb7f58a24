"""The cheapest cover of a graph: each operator on the core, or part of one match.

Pure arithmetic on numbers: operators are 0 to n - 1 in the order they run, and a match's last one
is the one whose result others read. The search is exact: dynamic programming from the last operator
backwards over what is left open, apart for each group of matches that overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

UNKNOWN = 1 << 50
"""Cycles of the core for an operator of which nothing is known: it is left there at last."""

MOST_STATES = 20_000
"""Ways to leave operators open at one point; a group of matches with more is not searched."""


@dataclass(frozen=True)
class Choice:
    """A match that an accelerator accepts.

    Attributes:
        members: its operators.
        cycles: it takes.
        wanted: a cover may not leave all of its operators to the core.
    """

    members: frozenset[int]
    cycles: int
    wanted: bool = True

    @property
    def root(self) -> int:
        """The last operator of the members."""
        return max(self.members)


_State = tuple[frozenset[int], frozenset[int]]
"""Earlier operators that a match took; wanted matches of which only the core has anything yet."""
_Way = tuple[int, tuple[int, ...]]
"""Cycles, and for each operator the choice made there: ways are compared in this order."""


def groups(choices: Sequence[Choice]) -> list[list[int]]:
    """Return the positions of choices that are connected by common operators, in order."""
    found: list[tuple[set[int], list[int]]] = []
    for position, choice in enumerate(choices):
        members, positions = set(choice.members), [position]
        apart = []
        for other in found:
            if members.isdisjoint(other[0]):
                apart.append(other)
            else:
                members |= other[0]
                positions += other[1]
        found = [*apart, (members, sorted(positions))]
    return sorted(positions for _, positions in found)


def cheapest(core: Sequence[int], choices: Sequence[Choice]) -> list[int] | None:
    """Return the choices of the cheapest cover, by position, the last operator's first.

    Of covers that take equally long the one counts that, from the last operator backwards, makes
    the choice given first; the core comes after all choices.

    Args:
        core: cycles of each operator of the graph on the core.
        choices: of one group of `groups`; the operators of none are left to the core.

    Returns:
        None: there are too many ways, see `MOST_STATES`.
    """
    no_choice = len(choices)
    ways: dict[_State, _Way] = {(frozenset(), frozenset()): (0, ())}
    for op in sorted(frozenset().union(*(c.members for c in choices)), reverse=True):
        after: dict[_State, _Way] = {}
        for state, (cycles, made) in ways.items():
            for state_after, more, choice in _options(op, state, core[op], choices):
                way = (cycles + more, (*made, choice))
                if state_after not in after or way < after[state_after]:
                    after[state_after] = way
        ways = after
        if len(ways) > MOST_STATES:
            return None
    _, made = min(ways.values())
    return [choice for choice in made if 0 <= choice < no_choice]


def _options(
    op: int, state: _State, core: int, choices: Sequence[Choice]
) -> Iterator[tuple[_State, int, int]]:
    """Yield the ways to treat an operator: the state after it, the cycles, the choice."""
    taken, bare = state
    if op in taken:
        yield (taken - {op}, _without(op, bare, choices)), 0, -1
        return
    for position, choice in enumerate(choices):
        if choice.root == op and taken.isdisjoint(choice.members):
            used = taken | choice.members - {op}
            yield (used, _without(op, bare, choices)), choice.cycles, position
    bare |= {i for i, c in enumerate(choices) if c.wanted and c.root == op}
    if not any(min(choices[i].members) == op for i in bare):
        yield (taken, bare), core, len(choices)


def _without(op: int, bare: frozenset[int], choices: Sequence[Choice]) -> frozenset[int]:
    return frozenset(i for i in bare if op not in choices[i].members)
