"""`CoverageData`: what ran of source files; plain data that adds up, as JSON too."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from covp.errors import UsageError, near_misses

FORMAT = 1
"""Of the JSON document."""


@dataclass(frozen=True)
class Branch:
    """A conditional branch of the machine code.

    Attributes:
        line, column: of the source, 0 where unknown.
        name: its mnemonic; "it": a jump or return in an IT block of Arm.
        taken, untaken: how often it was taken, and not; None: not known.
    """

    line: int
    column: int
    name: str
    taken: int | None = 0
    untaken: int | None = 0

    @property
    def ran(self) -> bool:
        """Whether it was reached."""
        return self.taken is None or self.untaken is None or self.taken + self.untaken > 0

    @property
    def outcomes(self) -> int:
        """How many of its two outcomes were seen."""
        return bool(self.taken) + bool(self.untaken)

    def __add__(self, other: Branch) -> Branch:
        taken, untaken = _added(self.taken, other.taken), _added(self.untaken, other.untaken)
        return replace(self, taken=taken, untaken=untaken)


def _added(one: int | None, other: int | None) -> int | None:
    return one if other is None else other if one is None else one + other


@dataclass(frozen=True)
class Routine:
    """A function in one form of its machine code: copies with the same branches are added up.

    Attributes:
        name, line: of the function's declaration.
        variant: a key of its branches' kinds and places; other compilers' code has another one.
        entries: how often it was entered.
        branches: in the order of their addresses.
    """

    name: str
    line: int
    variant: str
    entries: int
    branches: tuple[Branch, ...] = ()

    def __add__(self, other: Routine) -> Routine:
        branches = tuple(a + b for a, b in zip(self.branches, other.branches, strict=True))
        return replace(self, entries=self.entries + other.entries, branches=branches)


@dataclass
class FileCoverage:
    """What ran of a source file.

    Attributes:
        lines: how often each line with code ran.
        routines: its functions, by name and variant.
    """

    lines: dict[int, int] = field(default_factory=dict)
    routines: dict[tuple[str, str], Routine] = field(default_factory=dict)

    @property
    def functions(self) -> dict[str, tuple[int, int]]:
        """Name to (line, how often it was entered)."""
        found: dict[str, tuple[int, int]] = {}
        for one in self.routines.values():
            found[one.name] = one.line, one.entries + found.get(one.name, (0, 0))[1]
        return dict(sorted(found.items(), key=lambda item: (item[1][0], item[0])))

    @property
    def branches(self) -> list[Branch]:
        """Of all its functions, by line and column."""
        routines = (self.routines[key] for key in sorted(self.routines))
        found = [branch for one in routines for branch in one.branches]
        return sorted(found, key=lambda branch: (branch.line, branch.column))

    def add_line(self, line: int, count: int) -> None:
        """So many more runs of a line."""
        self.lines[line] = self.lines.get(line, 0) + count

    def add_routine(self, routine: Routine) -> None:
        """A copy or another run of a function."""
        key = routine.name, routine.variant
        known = self.routines.get(key)
        self.routines[key] = routine if known is None else known + routine

    def add(self, other: FileCoverage) -> None:
        """Add the counts of other runs."""
        for line, count in other.lines.items():
            self.add_line(line, count)
        for routine in other.routines.values():
            self.add_routine(routine)


@dataclass
class CoverageData:
    """What ran, by source file; `+` and `merge` add runs.

    Attributes:
        files: by absolute path; code that was given as text has a name with a key of the text.
        texts: the source of those, by name.
    """

    files: dict[str, FileCoverage] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    def merge(self, other: CoverageData) -> CoverageData:
        """The counts of both."""
        return CoverageData().add(self).add(other)

    __add__ = merge

    def add(self, other: CoverageData) -> CoverageData:
        """Add the counts of other runs to these; returns itself."""
        for path, file in other.files.items():
            self.files.setdefault(path, FileCoverage()).add(file)
        self.texts.update(other.texts)
        return self

    def file(self, name: str | Path) -> FileCoverage:
        """A file by its path or the end of it.

        Raises:
            UsageError: no file or more than one has that name.
        """
        wanted = Path(name).parts
        found = [path for path in self.files if Path(path).parts[-len(wanted) :] == wanted]
        if len(found) == 1:
            return self.files[found[0]]
        if not found:
            raise UsageError(
                f"coverage of {name}: no code of such a file ran or was loaded: "
                f"{near_misses(str(name), list(self.files))}"
            )
        raise UsageError(f"coverage of {name}: which of {', '.join(sorted(found))}")

    def lines(self, name: str | Path) -> dict[int, int]:
        """Line to how often it ran, of the lines that have code; see `file` for the name."""
        return dict(sorted(self.file(name).lines.items()))

    def functions(self, name: str | Path) -> dict[str, int]:
        """Function to how often it was entered."""
        return {function: runs for function, (_, runs) in self.file(name).functions.items()}

    def branches(self, name: str | Path) -> list[Branch]:
        """The conditional branches of a file by line and column."""
        return self.file(name).branches

    def write(self, path: str | Path) -> None:
        """Write a file: ``.xml`` is Cobertura, ``.json`` covp's own form, all others lcov.

        Raises:
            UsageError: it cannot be written.
        """
        from covp.coverage.writers import write

        write(self, Path(path))

    def report(self) -> str:
        """Files with their figures, and the lines and branches that are not covered."""
        from covp.coverage.report import report

        return report(self)

    # -- JSON ---------------------------------------------------------------------------------

    def to_json(self) -> str:
        """All of it; `from_json` reads it."""
        files = {
            path: {
                "lines": {str(line): count for line, count in sorted(file.lines.items())},
                "routines": [asdict(routine) for routine in file.routines.values()],
            }
            for path, file in sorted(self.files.items())
        }
        return json.dumps({"format": FORMAT, "files": files, "texts": self.texts})

    @classmethod
    def from_json(cls, text: str) -> CoverageData:
        """What `to_json` gave.

        Raises:
            UsageError: it is something else.
        """
        try:
            document = json.loads(text)
            if document["format"] != FORMAT:
                raise UsageError(f"coverage data of format {document['format']}, not {FORMAT}")
            files = {path: _file(data) for path, data in document["files"].items()}
            return cls(files, dict(document["texts"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"this is no coverage data that covp has written: {error!r}") from None


def _file(data: Mapping[str, Any]) -> FileCoverage:
    file = FileCoverage({int(line): int(count) for line, count in data["lines"].items()})
    for one in data["routines"]:
        branches = tuple(Branch(**branch) for branch in one["branches"])
        file.add_routine(Routine(**{**one, "branches": branches}))
    return file
