"""`Plant`: one planted bug."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plant:
    """One edit of one file.

    Attributes:
        name: of the bug.
        file: without ".py".
        old, new: the text that is replaced, once, and by what.
    """

    name: str
    file: str
    old: str
    new: str


def plants_of(file: str, **edits: tuple[str, str]) -> list[Plant]:
    """Plants of a file, by their names."""
    return [Plant(name, file, old, new) for name, (old, new) in edits.items()]
