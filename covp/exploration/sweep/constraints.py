"""`Constraint`: a limit on a column, such as ``ram_bytes <= 256K``."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from operator import ge, gt, le, lt

from covp.errors import near_misses
from covp.exploration.sweep.points import Row

_FORM = re.compile(
    r"\s*(?P<figure>\w+)\s*(?P<sign><=|<|>=|>)\s*(?P<limit>[0-9.]+([eE][+-]?\d+)?)\s*(?P<unit>[KMkm]?)\s*"
)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20}
_SIGNS: dict[str, Callable[[float, float], bool]] = {"<=": le, "<": lt, ">=": ge, ">": gt}


@dataclass(frozen=True)
class Constraint:
    """A limit.

    Attributes:
        figure: a column of `Row`.
        sign: "<=", "<", ">=" or ">".
        limit: in the column's unit.
    """

    figure: str
    sign: str
    limit: float

    @staticmethod
    def read(text: str, known: Collection[str]) -> Constraint:
        """Parse a constraint; K and M are powers of 1024.

        Args:
            text: such as "ram_bytes <= 256K".
            known: columns that can be limited.

        Raises:
            ValueError: it is none; one line.
        """
        match = _FORM.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r:.80} is not of the form COLUMN <= NUMBER (or <, >=, >)")
        if match["figure"] not in known:
            raise ValueError(
                f"no column {match['figure']!r}: {near_misses(match['figure'], known)}"
            )
        limit = float(match["limit"]) * _UNITS[match["unit"].upper()]
        return Constraint(match["figure"], match["sign"], limit)

    def holds(self, row: Row) -> bool | None:
        """Return whether the figure of a row is within the limit; None where the row lacks it."""
        value: float | None = getattr(row, self.figure)
        return None if value is None else _SIGNS[self.sign](value, self.limit)

    def excess(self, row: Row) -> float:
        """Return the excess of the figure over the limit, in limits; at most 0 if it is kept."""
        value: float | None = getattr(row, self.figure)
        if value is None:
            return 0.0
        beyond = value - self.limit if self.sign[0] == "<" else self.limit - value
        share = beyond / (abs(self.limit) or 1.0)
        return share if self.holds(row) else max(share, 1e-9)


def is_feasible(row: Row, constraints: Sequence[Constraint]) -> bool | None:
    """Return whether a row has figures that are all within the limits.

    None where it breaks none and lacks a figure that has one: an unknown figure breaks no limit.
    """
    found = [constraint.holds(row) for constraint in constraints]
    if not row.is_ok or False in found:
        return False
    return None if None in found else True
