"""`Places`: whether units with other parameters would get other layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.candidates import Candidate, find_candidates
from covp.accelerator.cover import UNKNOWN, Choice, cheapest, groups
from covp.accelerator.registry import find_backends
from covp.building.builder import Build
from covp.errors import CovpError
from covp.exploration.retiming.unit_times import UnitDesigns
from covp.graph.pattern import Match

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Rival:
    """A match that an accelerator accepts.

    Attributes:
        unit: name of the accelerator.
        match: what it accepts.
        members: its operators, numbered within the contest.
        unit_cycles: of its jobs, in the recorded run.
        driver: cycles beyond those.
        on_core: those of them that the core requantizes in.
    """

    unit: str
    match: Match
    members: frozenset[int]
    unit_cycles: int
    driver: int
    on_core: int


@dataclass(frozen=True, eq=False)
class _Contest:
    """Matches with operators in common: some of them are taken, the core gets what is left.

    Attributes:
        rivals: the matches.
        core: cycles of each of their operators on the core.
        wanted: what an accelerator accepts is not left to the core.
    """

    rivals: tuple[_Rival, ...]
    core: tuple[int, ...]
    wanted: bool

    @property
    def is_among_equals(self) -> bool:
        """True if all rivals compute the same operators."""
        return len({rival.members for rival in self.rivals}) == 1

    @property
    def depends_on_core(self) -> bool:
        """True if cycles of the core decide, too."""
        requantizes = any(rival.on_core for rival in self.rivals)
        return not self.wanted or not self.is_among_equals or requantizes

    def winners(self, cycles: Integers) -> Integers:
        """Return the number of what wins for each row of the rivals' ``cycles``."""
        if self.is_among_equals:
            first = cycles.argmin(axis=1)
            alone = not self.wanted and cycles.min(axis=1) > sum(self.core)
            return np.where(alone, len(self.rivals), first)
        rows, places = np.unique(cycles, axis=0, return_inverse=True)
        ways: dict[tuple[int, ...], int] = {}
        found = [ways.setdefault(self._cover(row), len(ways)) for row in rows.tolist()]
        # ways are numbered as they are met, so rows of one call alone can be compared
        return np.array(found, np.int64)[places.reshape(-1)]

    def _cover(self, cycles: Sequence[int]) -> tuple[int, ...]:
        choices = [
            Choice(rival.members, each, self.wanted)
            for rival, each in zip(self.rivals, cycles, strict=True)
        ]
        return tuple(cheapest(self.core, choices) or ())


@dataclass(frozen=True, eq=False)
class Places:
    """What the partitioner chose between when it placed the layers of a recorded run.

    Attributes:
        backends: the accelerators that were requested, by name, with the parameters of the run.
        contests: where layers could have been elsewhere.
    """

    backends: Mapping[str, AcceleratorBackend]
    contests: tuple[_Contest, ...]

    @staticmethod
    def of(build: Build) -> Places:
        """Return the choices of a build."""
        backends, lowered = _requested(build), build.program.lowered
        names = {backend.name: backend for backend in backends}
        if not backends or lowered is None:
            return Places(names, ())
        accepted = find_candidates(lowered, backends).accepted
        stated = _stated_cycles(build)
        cycles = [next(stated.get(_key(each), iter(())), None) for each in accepted]
        positions = {op: position for position, op in enumerate(lowered.ops)}
        members = [frozenset(positions[op] for op in each.match.ops) for each in accepted]
        core = {
            entry.operators[0]: entry.cycles
            for entry in build.program.alternatives
            if entry.target == "cpu"
        }
        contests = []
        for group in groups([Choice(each, 0) for each in members]):
            own = sorted(frozenset().union(*(members[place] for place in group)))
            costs = [core.get(lowered.ops[position].name) for position in own]
            local = {position: number for number, position in enumerate(own)}
            rivals = [
                _Rival(
                    each.backend.name,
                    each.match,
                    frozenset(local[position] for position in members[place]),
                    each.unit_cycles,
                    taken - each.unit_cycles,
                    taken - (each.cycles or 0),
                )
                for place in group
                if (each := accepted[place]).unit_cycles is not None
                and (taken := cycles[place]) is not None
            ]
            wanted = build.options.allow_slower
            # where an estimate is unknown the order decides, whatever units take
            if len(rivals) == len(group) and (len(group) > 1 or not wanted):
                known = tuple(UNKNOWN if cost is None else cost for cost in costs)
                contests.append(_Contest(tuple(rivals), known, wanted))
        return Places(names, tuple(contests))

    @property
    def depends_on_core(self) -> bool:
        """True if another core or memory could have placed layers elsewhere."""
        return any(contest.depends_on_core for contest in self.contests)

    def moved(self, units: Mapping[str, UnitDesigns], count: int) -> NDArray[np.bool_]:
        """Return for each design whether some layer would be elsewhere.

        Args:
            units: those that have other parameters, by name.
            count: the number of designs.
        """
        found = np.zeros(count, bool)
        for contest in self.contests:
            if units.keys().isdisjoint(rival.unit for rival in contest.rivals):
                continue
            # the first row is that of the recorded run
            cycles = np.empty((count + 1, len(contest.rivals)), np.int64)
            for place, rival in enumerate(contest.rivals):
                cycles[:, place] = rival.unit_cycles + rival.driver
                if (unit := units.get(rival.unit)) is not None:
                    cycles[1:, place] = unit.estimates(rival.match)[unit.rows] + rival.driver
            winners = contest.winners(cycles)
            found |= winners[1:] != winners[0]
        return found


def _requested(build: Build) -> list[AcceleratorBackend]:
    """Return the accelerators of a build, those without a layer too where their names tell them."""
    used = {one.name: one.backend for one in build.program.accelerators}
    try:
        named = find_backends(build.accelerators)
    except CovpError:  # they were given as objects
        return list(used.values())
    return [used.get(one.name, one) for one in named]


def _key(candidate: Candidate) -> tuple[tuple[str, ...], str, str]:
    names = tuple(op.name for op in candidate.match.ops)
    return names, candidate.backend.name, candidate.match.name


def _stated_cycles(build: Build) -> dict[tuple[tuple[str, ...], str, str], Iterator[int | None]]:
    """Return the cycles of matches as the partitioner compared them.

    Matches of the same operators by one pattern differ in the order of operands alone, and are
    equally fast.
    """
    found: dict[tuple[tuple[str, ...], str, str], list[int | None]] = {}
    for entry in build.program.alternatives:
        key = (entry.operators, entry.target, entry.pattern)
        found.setdefault(key, []).append(entry.cycles)
    return {key: iter(cycles) for key, cycles in found.items()}
