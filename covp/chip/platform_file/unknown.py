"""`advice`: what to do about a platform that has no file: its core, and how to write one."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Sequence
from pathlib import Path

_TYPO = 0.85
"""How alike two names are, by `difflib`, of which one is the other misspelt."""
_HELD = 6
"""Letters of a name that stands in the middle of a longer one, such as esp32c3."""
_SHARED = 4
"""Letters in a row that a name has to share with what it was meant to be."""


def advice(name: str, known: Sequence[str], folder: Path) -> str:
    """Return the text that follows "unknown platform ...:".

    Args:
        name: as it was typed.
        known: the names of platforms that there are.
        folder: of the platform files, with the table of chips that have none.

    Returns:
        A misspelt name's right one; else the core that is nearest to the chip's, where the name is
        that of a known chip or board, and the command that writes a platform file for it.
    """
    core, foreign = nearest_core(name, folder)
    typos = _longer(name, known) or difflib.get_close_matches(name.lower(), known, 2, _TYPO)
    if typos and foreign is None:
        return f"did you mean {' or '.join(typos)}?{f' Its core is near {core}' * bool(core)}"
    if foreign is not None:
        begun = [each for each in known if _letters(each).startswith(_letters(name))]
        others = f"; there are {', '.join(begun[:3])}" if begun else ""
        return f"covp has no core like its own, {foreign}{others}; `covp cores` lists its cores"
    wanted = re.sub("[^A-Za-z0-9_.+-]", "-", name).strip("-") or "NAME"
    command = f"`covp new platform {wanted} --core {core or 'CORE'} --flash SIZE --ram SIZE`"
    if core is not None:
        return f"its core is near {core}; {command} writes its file"
    near = [each for each in known if _shared_letters(name, each) > _SHARED]
    near.sort(key=lambda each: -_likeness(name, each))
    start = f"did you mean {' or '.join(near[:3])}? " if near else ""
    return f"{start}`covp platforms` lists those that there are; {command} writes another"


def _longer(name: str, known: Sequence[str]) -> list[str]:
    """Return the names that the name is the beginning of, or that it holds; those most like it."""
    plain = _letters(name)
    found = [
        each
        for each in known
        if (len(plain) >= _SHARED and _letters(each).startswith(plain))
        or (len(_letters(each)) >= _HELD and _letters(each) in plain)
        or (len(_letters(each)) >= _SHARED and plain.startswith(_letters(each)))
    ]
    return sorted(found, key=lambda each: -_likeness(name, each))[:2]


def nearest_core(name: str, folder: Path) -> tuple[str | None, str | None]:
    """Return the core of covp's that is nearest to a chip's, or the core that covp has none for.

    Returns:
        The core's name and None, or None and what the chip has; both None for an unknown chip.
    """
    plain = _letters(name)
    fitting = [row for row in _chips(folder) if plain.startswith(row[0])]
    if not fitting:
        return None, None
    return max(fitting, key=lambda row: len(row[0]))[1:]


@functools.cache
def _chips(folder: Path) -> tuple[tuple[str, str | None, str | None], ...]:
    """Return the table: how names begin, the core of covp's, the core that is none."""
    rows = []
    for line in (folder / "chips.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            start, core, *other = line.split()
            rows.append((start, None if other else core, other[0] if other else None))
    return tuple(rows)


def _letters(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.lower())


def _shared_letters(one: str, other: str) -> int:
    """Count the letters in a row that both names have."""
    one, other = _letters(one), _letters(other)
    match = difflib.SequenceMatcher(None, one, other, False).find_longest_match()
    return match.size


def _likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, _letters(one), _letters(other), False).ratio()
