"""`FigureDescription`: what is known of a figure beside its value, as an annotation of its field.

The annotated structure is the list of figures: what a search can improve, what a constraint can
limit, titles and units of columns and axes are read from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints


@dataclass(frozen=True)
class FigureDescription:
    """A figure of a run or design.

    Attributes:
        title: for people.
        unit: of the value; empty where it is a count or a share.
        kind: "exact" (counted), "estimated" (by a model that is named) or "measured".
        better: which direction is.
        rank: its place among what designs are weighed by, from 1; 0: not by default.
    """

    title: str
    unit: str = ""
    kind: Literal["exact", "estimated", "measured"] = "exact"
    better: Literal["less", "more"] = "less"
    rank: int = 0

    @property
    def label(self) -> str:
        """The title with the unit."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    @property
    def sign(self) -> float:
        """1, or -1 where more is better: less of the product is better."""
        return -1.0 if self.better == "more" else 1.0


def figures_in(structure: type) -> Mapping[str, FigureDescription]:
    """Return the figures among the fields of a structure by their names, in its order."""
    found: dict[str, FigureDescription] = {}
    for name, hint in get_type_hints(structure, include_extras=True).items():
        for one in _annotations(hint):
            if isinstance(one, FigureDescription):
                found[name] = one
    return found


def _annotations(hint: Any) -> tuple[Any, ...]:
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()
