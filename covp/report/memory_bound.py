"""`memory_bound`: the designs of a sweep in which a unit's memory port decides the cycles."""

from __future__ import annotations

from collections.abc import Sequence

from covp.report.designs import FACTORS, factor, parameters
from covp.report.objectives import Row

WIDTH = "bytes_per_cycle"
"""The parameter of a unit that is the width of its memory port (`covp.accelerator`)."""


def memory_bound(rows: Sequence[Row]) -> list[str]:
    """Return a line for each parameter that changes nothing as long as the memory port is narrow.

    Designs are memory-bound if another value of a unit's parameter leaves their cycles as they
    are, and a wider memory port makes them fewer.

    Args:
        rows: of one sweep or more, failed ones included.
    """
    good = [row for row in rows if row.get("cycles") is not None]
    names = parameters(good)
    lines = []
    for width in (name for name in names if name.endswith(f".{WIDTH}")):
        unit = width.removesuffix(WIDTH)
        for name in (other for other in names if other.startswith(unit) and other != width):
            found = _bound(good, name, width)
            if found:
                widths = sorted({factor(row, width) for row in found})
                lines.append(
                    f"memory-bound: {len(found):,} designs with {width} of "
                    f"{', '.join(map(str, widths))}; {name} changes no cycles there, a wider "
                    "memory port does"
                )
    return lines


def _bound(rows: Sequence[Row], name: str, width: str) -> list[Row]:
    """Return the designs that ``name`` makes no difference to, and that more width makes faster."""
    names = [*FACTORS, *parameters(rows)]
    fewest: dict[tuple[object, ...], float] = {}
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if factor(row, name) is not None and factor(row, width) is not None:
            key = tuple(factor(row, other) for other in names if other not in (name, width))
            fewest[key] = min(fewest.get(key, row["cycles"]), row["cycles"])
            groups.setdefault((*key, factor(row, width)), []).append(row)
    return [
        row
        for (*key, _), members in groups.items()
        if len(members) > 1 and len({row["cycles"] for row in members}) == 1
        for row in members
        if fewest[tuple(key)] < row["cycles"]
    ]
