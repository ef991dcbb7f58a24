"""The C files of this folder: sections with one planted bug each, and the lines to be named."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
FILES = sorted(path.name for path in FOLDER.glob("*.c"))
_TITLE = re.compile(r"^/\* (\w+): (.*?)\.? \*/$")
_MARK = re.compile(r"/\* BUG: (.+?) \*/")


@dataclass
class Section:
    """One planted bug and its correct twin: the same text, with and without ``-DBUG``.

    Attributes:
        file: the C file.
        name: of the function that is called.
        what: is wrong, in a line.
        lines: "file.c:12" of the lines of which one has to be named, and the kind of finding.
    """

    file: str
    name: str
    what: str
    lines: dict[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """What the mechanism has to report."""
        (kind,) = set(self.lines.values())
        return kind


@cache
def sections(file: str) -> dict[str, Section]:
    """The sections of a file by their names."""
    found: list[Section] = []
    for number, line in enumerate((FOLDER / file).read_text().splitlines(), 1):
        title = _TITLE.match(line)
        if title:
            found.append(Section(file, title[1], title[2]))
        for kind in _MARK.findall(line):
            found[-1].lines[f"{file}:{number}"] = kind
    return {section.name: section for section in found}
