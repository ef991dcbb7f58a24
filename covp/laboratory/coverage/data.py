"""`CoverageData`: what ran of source files; plain data that adds up, as JSON too."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from covp.errors import UsageError, near_misses
from covp.laboratory.coverage.conditions import ConditionCoverage, conditions
from covp.laboratory.coverage.files import Branch, Condition, Decision, FileCoverage, Part, Routine
from covp.laboratory.coverage.formats import cobertura, lcov, report

FORMAT = 1
"""The version of the JSON document's format."""


@dataclass
class CoverageData:
    """The coverage of source files, by path; `+` and `merge` add runs.

    Attributes:
        files: by absolute path; code that was given as text has a name with a key of the text.
        texts: the source of those, by name.
    """

    files: dict[str, FileCoverage] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    def merge(self, other: CoverageData) -> CoverageData:
        """Return the sum of both counts."""
        return CoverageData().add(self).add(other)

    __add__ = merge

    def add(self, other: CoverageData) -> CoverageData:
        """Add the counts of other runs to these; returns itself."""
        for path, file in other.files.items():
            self.files.setdefault(path, FileCoverage()).add(file)
        self.texts.update(other.texts)
        return self

    def file(self, name: str | Path) -> FileCoverage:
        """Find a file by its path or the end of it.

        Raises:
            UsageError: no file or more than one has that name.
        """
        wanted = Path(name).parts
        found = [path for path in self.files if Path(path).parts[-len(wanted) :] == wanted]
        if len(found) == 1:
            return self.files[found[0]]
        if not found:
            raise UsageError(
                f"coverage of {name}: no code of such a file ran or was loaded:",
                hint=near_misses(str(name), list(self.files)),
            )
        raise UsageError(f"coverage of {name}: which of {', '.join(sorted(found))}")

    def lines(self, name: str | Path) -> dict[int, int]:
        """Return line to how often it ran, of the lines that have code; see `file` for the name."""
        return self.file(name).lines

    def functions(self, name: str | Path) -> dict[str, int]:
        """Return function to how often it was entered; see `file` for the name."""
        return {function: runs for function, (_, runs) in self.file(name).functions.items()}

    def branches(self, name: str | Path) -> list[Branch]:
        """Return the conditional branches of a file by line and column."""
        return self.file(name).branches

    def conditions(self, name: str | Path) -> list[ConditionCoverage]:
        """Return the conditions of a file's ``&&`` and ``||`` that are machine code branches."""
        return conditions(self.file(name))

    def write(self, path: str | Path) -> None:
        """Write a file: ``.xml`` is Cobertura, ``.json`` covp's own form, all others lcov.

        Raises:
            UsageError: it cannot be written.
        """
        path = Path(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._text(path), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"coverage cannot be written to {path}: {error.strerror}") from None

    def _text(self, path: Path) -> str:
        """Return the file's content; write code given as text into a folder beside it."""
        if path.suffix == ".json":
            return self.to_json()
        folder = path.resolve().with_name(f"{path.name}-sources")
        for name, text in self.texts.items():
            folder.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        placed = {str(folder / n) if n in self.texts else n: file for n, file in self.files.items()}
        return (cobertura if path.suffix == ".xml" else lcov)(placed)

    def report(self) -> str:
        """Return files with their figures, and the lines and branches that are not covered."""
        return report(self.files)

    # -- JSON ---------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Return all of it as JSON, which `from_json` reads."""
        files = {
            path: {
                "parts": [[*part, runs] for part, runs in sorted(file.parts.items())],
                "routines": [asdict(routine) for routine in file.routines.values()],
            }
            for path, file in sorted(self.files.items())
        }
        return json.dumps({"format": FORMAT, "files": files, "texts": self.texts})

    @classmethod
    def from_json(cls, text: str) -> CoverageData:
        """Read the JSON that `to_json` returns.

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
            raise UsageError(f"not coverage data written by covp: {error!r}") from None


def _file(data: Mapping[str, Any]) -> FileCoverage:
    parts = {Part(line, routine): tuple(runs) for line, routine, runs in data["parts"]}
    file = FileCoverage(parts)
    for one in data["routines"]:
        branches = tuple(Branch(**branch) for branch in one["branches"])
        decisions = tuple(_decision(decision) for decision in one["decisions"])
        file.add_routine(Routine(**{**one, "branches": branches, "decisions": decisions}))
    return file


def _decision(data: Mapping[str, Any]) -> Decision:
    return Decision(tuple(Condition(**one) for one in data["conditions"]), tuple(data["shown"]))
