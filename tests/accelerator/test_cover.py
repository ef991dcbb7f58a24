"""The cover that is chosen is the cheapest of all covers, each tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from covp.accelerator.cover import Choice, cheapest, groups

Problem = tuple[list[int], list[Choice]]


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Up to seven operators, and matches of up to four of them that overlap as they like.

    Of two matches the roots may lie inside of the other one: more than patterns allow.
    """
    count = draw(st.integers(1, 7))
    core = draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
    member = st.integers(0, count - 1)
    sets = draw(st.lists(st.frozensets(member, min_size=1, max_size=4), min_size=1, max_size=8))
    return core, [Choice(s, draw(st.integers(0, 20)), draw(st.booleans())) for s in sets]


def covers(choices: Sequence[Choice]) -> Iterator[tuple[int, ...]]:
    """Every set of disjoint choices that leaves no wanted one to the core alone."""
    for size in range(len(choices) + 1):
        for picked in combinations(range(len(choices)), size):
            taken = [member for i in picked for member in choices[i].members]
            wanted = [choice for choice in choices if choice.wanted]
            if len(taken) == len(set(taken)) and not any(
                choice.members.isdisjoint(taken) for choice in wanted
            ):
                yield picked


def cost(core: Sequence[int], choices: Sequence[Choice], picked: Sequence[int]) -> int:
    taken = {member for i in picked for member in choices[i].members}
    left = sum(cycles for op, cycles in enumerate(core) if op not in taken)
    return left + sum(choices[i].cycles for i in picked)


def solve(core: Sequence[int], choices: Sequence[Choice]) -> list[int]:
    chosen = []
    for group in groups(choices):
        picked = cheapest(core, [choices[i] for i in group])
        assert picked is not None
        chosen += [group[i] for i in picked]
    return chosen


@settings(max_examples=400, deadline=None)
@given(problems())
def test_no_cover_is_cheaper(problem: Problem) -> None:
    core, choices = problem
    picked = solve(core, choices)
    assert tuple(sorted(picked)) in set(covers(choices))
    assert cost(core, choices, picked) == min(cost(core, choices, c) for c in covers(choices))


@given(problems())
def test_groups_share_no_operator_and_each_choice_is_in_one(problem: Problem) -> None:
    _, choices = problem
    found = groups(choices)
    assert sorted(i for group in found for i in group) == list(range(len(choices)))
    members = [frozenset().union(*(choices[i].members for i in group)) for group in found]
    assert sum(map(len, members)) == len(frozenset().union(*members))


def test_of_equal_covers_the_choice_given_first_is_taken() -> None:
    pair, left, right = frozenset({0, 1}), frozenset({0}), frozenset({1})
    core = [5, 5]
    assert cheapest(core, [Choice(pair, 4), Choice(left, 2), Choice(right, 2)]) == [0]
    assert cheapest(core, [Choice(right, 2), Choice(left, 2), Choice(pair, 4)]) == [0, 1]
    assert cheapest([2], [Choice(left, 2, False)]) == [0]


def test_a_long_chain_of_overlapping_matches_is_solved() -> None:
    length = 400
    pairs = [Choice(frozenset({i, i + 1}), 3, False) for i in range(length - 1)]
    picked = solve([2] * length, pairs)
    assert cost([2] * length, pairs, picked) == 3 * length // 2
