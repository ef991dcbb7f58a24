"""`FigureDescription`: what is known of a figure beside its value, as an annotation of its field.

The annotated structure is the list of figures: what a search can improve, what a constraint or a
threshold can limit, titles, units and formats of columns and axes are read from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, get_args, get_origin, get_type_hints

import msgspec


@dataclass(frozen=True)
class FigureDescription:
    """A figure of a run or design.

    Attributes:
        title: for people.
        unit: of the value; empty where it is a count or a share.
        kind: "exact" (counted), "estimated" (by a model that is named) or "measured".
        better: which direction is.
        rank: its place among what designs are weighed by, from 1; 0: not by default.
        shown_unit: unit in tables, where that is another one.
        scale: factor from a value in ``unit`` to the same in ``shown_unit``.
        format: of numbers in tables, see `number_text`.
    """

    title: str
    unit: str = ""
    kind: Literal["exact", "estimated", "measured"] = "exact"
    better: Literal["less", "more"] = "less"
    rank: int = 0
    shown_unit: str = ""
    scale: float = 1
    format: str = ","

    def text(self, value: float) -> str:
        """Return a value as it is shown, without the unit."""
        return number_text(value * self.scale, self.format)

    @property
    def label(self) -> str:
        """The title with the unit."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    @property
    def sign(self) -> float:
        """1, or -1 where more is better: less of the product is better."""
        return -1.0 if self.better == "more" else 1.0


def figures_in(structure: type) -> Mapping[str, FigureDescription]:
    """Return the figures among the fields of a structure and of the structures in it.

    Returns:
        By the names of the fields, such as "cycles" and "memory.ram_bytes", in their order.
    """
    return dict(_figures_in(structure))


def _figures_in(structure: type) -> Iterator[tuple[str, FigureDescription]]:
    for name, hint in get_type_hints(structure, include_extras=True).items():
        if get_origin(hint) is Annotated:
            found = [one for one in get_args(hint)[1:] if isinstance(one, FigureDescription)]
            yield from ((name, one) for one in found)
        elif isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            yield from ((f"{name}.{inner}", one) for inner, one in _figures_in(hint))


def number_text(value: float, form: str) -> str:
    """Return a number as text.

    Args:
        value: the number.
        form: as in a format string, or "~3" for three significant digits without an exponent.
    """
    return significant(value, int(form[1:])) if form.startswith("~") else format(value, form)


def significant(value: float, digits: int) -> str:
    """Return a number with separators and at least so many digits: 12,345.7 or 0.00123."""
    if not value or not math.isfinite(value):
        return f"{value:g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}" if decimals < 10 else f"{value:.{digits - 1}e}"
