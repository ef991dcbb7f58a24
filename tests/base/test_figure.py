"""Figures as annotations of fields."""

from __future__ import annotations

from typing import Annotated

import msgspec

from covp.base.figure import FigureDescription, figures_in
from covp.exploration.sweep.points import FIGURES, Row


class Cost(msgspec.Struct):
    name: str
    time: Annotated[float, FigureDescription("Time", "s", "measured")]
    share: Annotated[float | None, FigureDescription("Share", better="more", rank=1)] = None


def test_the_list_is_the_structure() -> None:
    found = figures_in(Cost)
    assert list(found) == ["time", "share"]
    assert (found["time"].label, found["time"].sign) == ("Time (s)", 1.0)
    assert (found["share"].label, found["share"].sign) == ("Share", -1.0)


def test_every_number_of_a_design_is_a_figure_or_says_where_it_is_from() -> None:
    numbers = {
        field.name
        for field in msgspec.structs.fields(Row)
        if "int" in str(field.type) or "float" in str(field.type)
    }
    assert numbers - set(FIGURES) == {"seed", "vary", "cycles_error", "units_error"}
    ranks = [one.rank for one in FIGURES.values() if one.rank]
    assert sorted(ranks) == list(range(1, len(ranks) + 1))
