"""`by_distance`: which other compiler's trials say most about this one's."""

from __future__ import annotations

import re
from collections.abc import Iterable


def by_distance(compiler: str, known: Iterable[str]) -> list[str]:
    """Return compilers, the most telling first: the same one, its nearest version, then the others.

    Args:
        compiler: name and version, e.g. "zig 0.17.0".
        known: compilers of the same form. Of two versions at the same distance, and of another
            compiler, the newer comes first.
    """
    name, version = _parse(compiler)

    def key(other: str) -> tuple[bool, int, int]:
        their_name, theirs = _parse(other)
        same = their_name == name
        return not same, abs(version - theirs) if same else 0, -theirs

    return sorted(known, key=key)


def _parse(compiler: str) -> tuple[str, int]:
    """Return the name, and the first three numbers of the version as one."""
    name, _, version = compiler.partition(" ")
    numbers = [int(number) for number in re.findall(r"\d+", version)[:3]]
    major, minor, patch = numbers + [0] * (3 - len(numbers))
    return name, (major * 1000 + minor) * 1000 + patch
