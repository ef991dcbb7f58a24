"""The coverage of one source file: its lines, functions and branches."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple


@dataclass(frozen=True)
class Branch:
    """A conditional branch of the machine code, or conditional instructions.

    Attributes:
        line, column: of the source, 0 where unknown.
        name: its mnemonic; "it": an IT block of Arm.
        taken, untaken: how often it was taken, and not; of an IT block how often its first
            instruction was executed, and skipped. None: not known.
    """

    line: int
    column: int
    name: str
    taken: int | None = 0
    untaken: int | None = 0

    @property
    def ran(self) -> bool:
        """True if the branch was reached."""
        return self.taken is None or self.untaken is None or self.taken + self.untaken > 0

    @property
    def outcomes(self) -> int:
        """The number of outcomes that were seen: 0, 1 or 2."""
        return bool(self.taken) + bool(self.untaken)

    def __add__(self, other: Branch) -> Branch:
        taken, untaken = add_known(self.taken, other.taken), add_known(self.untaken, other.untaken)
        return replace(self, taken=taken, untaken=untaken)


def add_known(one: int | None, other: int | None) -> int | None:
    """Add ``one`` and the ``other`` count, as far as they are known."""
    return one if other is None else other if one is None else one + other


@dataclass(frozen=True)
class Condition:
    """A branch of a decision.

    Attributes:
        branch: its position in the function's branches.
        taken, untaken: what follows: the position of a condition in the decision; -1 and -2 are the
            decision's two outcomes.
    """

    branch: int
    taken: int
    untaken: int


@dataclass(frozen=True)
class Decision:
    """Conditions that ``&&`` and ``||`` join.

    Attributes:
        conditions: the one that is evaluated first is the first.
        shown: for each whether a run showed that it decides alone; see
            `covp.laboratory.coverage.conditions`.
    """

    conditions: tuple[Condition, ...]
    shown: tuple[bool, ...]

    def __add__(self, other: Decision) -> Decision:
        return replace(self, shown=tuple(map(operator.or_, self.shown, other.shown)))


@dataclass(frozen=True)
class Routine:
    """A function in one form of its machine code: copies with the same branches are added up.

    Attributes:
        name, line: of the function's declaration.
        variant: a key of its branches' kinds and places; other compilers' code has another one.
        entries: how often it was entered.
        branches: in the order of their addresses.
        decisions: those of more than one condition.
    """

    name: str
    line: int
    variant: str
    entries: int
    branches: tuple[Branch, ...] = ()
    decisions: tuple[Decision, ...] = ()

    def __add__(self, other: Routine) -> Routine:
        return replace(
            self,
            entries=self.entries + other.entries,
            branches=tuple(map(operator.add, self.branches, other.branches)),
            decisions=tuple(map(operator.add, self.decisions, other.decisions)),
        )


class Part(NamedTuple):
    """The code of a line in one form of a function's machine code.

    Attributes:
        line: of the source.
        routine: name and variant of the function.
    """

    line: int
    routine: str


@dataclass
class FileCoverage:
    """The coverage of a source file.

    Attributes:
        parts: how often each block of code of a line ran.
        routines: its functions, by name and variant.
    """

    parts: dict[Part, tuple[int, ...]] = field(default_factory=dict)
    routines: dict[tuple[str, str], Routine] = field(default_factory=dict)

    @property
    def lines(self) -> dict[int, int]:
        """Runs of each line with code: of its block that ran most, in each form of the code."""
        found: dict[int, int] = {}
        for part in sorted(self.parts):
            found[part.line] = found.get(part.line, 0) + max(self.parts[part])
        return found

    @property
    def functions(self) -> dict[str, tuple[int, int]]:
        """The functions: name to (line, how often it was entered)."""
        found: dict[str, tuple[int, int]] = {}
        for one in self.routines.values():
            found[one.name] = one.line, one.entries + found.get(one.name, (0, 0))[1]
        return dict(sorted(found.items(), key=lambda item: (item[1][0], item[0])))

    @property
    def branches(self) -> list[Branch]:
        """Branches of all its functions, by line and column."""
        routines = (self.routines[key] for key in sorted(self.routines))
        found = [branch for one in routines for branch in one.branches]
        return sorted(found, key=lambda branch: (branch.line, branch.column))

    @property
    def decisions(self) -> list[tuple[Decision, tuple[Branch, ...]]]:
        """Decisions of all its functions, with the branches of the function."""
        routines = (self.routines[key] for key in sorted(self.routines))
        return [(one, routine.branches) for routine in routines for one in routine.decisions]

    @property
    def branches_by_line(self) -> dict[int, list[Branch]]:
        """Branches that belong to a line, by its number."""
        found: dict[int, list[Branch]] = {}
        for branch in self.branches:
            if branch.line:
                found.setdefault(branch.line, []).append(branch)
        return found

    def add_part(self, part: Part, runs: Sequence[int]) -> None:
        """Add ``runs`` of the blocks of a ``part``."""
        known = self.parts.get(part)
        self.parts[part] = tuple(runs) if known is None else tuple(map(operator.add, known, runs))

    def add_routine(self, routine: Routine) -> None:
        """Add a copy or another run of a function."""
        key = routine.name, routine.variant
        known = self.routines.get(key)
        self.routines[key] = routine if known is None else known + routine

    def add(self, other: FileCoverage) -> None:
        """Add the counts of other runs."""
        for part, runs in other.parts.items():
            self.add_part(part, runs)
        for routine in other.routines.values():
            self.add_routine(routine)
