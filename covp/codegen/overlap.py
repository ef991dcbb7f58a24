"""`OverlapPlan`: in which order the run function begins and ends the parts of layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from covp.codegen.layer import PartCode

_NONE: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True)
class Action:
    """One call of the run function.

    Attributes:
        layer: its position among the program's layers.
        part: the position among the layer's parts.
        what: "begin" starts a unit and comes back at once, "end" waits for it; "run" is a part
            that the core computes, or waits for.
    """

    layer: int
    part: int
    what: Literal["run", "begin", "end"]


@dataclass(frozen=True)
class OverlapPlan:
    """A plan for a program in which core and units work at the same time.

    Attributes:
        rows: name of a layer to the output rows of the bands that it is cut into.
        actions: in the order of the run function; empty: one part after the other, each unit
            waited for at once.
    """

    rows: Mapping[str, int] = field(default_factory=lambda: _NONE)
    actions: tuple[Action, ...] = ()


def one_after_the_other(layers: Sequence[Sequence[PartCode]]) -> tuple[Action, ...]:
    """Return all ``layers``' parts in their order, each unit waited for at once."""
    found: list[Action] = []
    for number, parts in enumerate(layers):
        for position, part in enumerate(parts):
            if part.end is None:
                found.append(Action(number, position, "run"))
            else:
                found += [Action(number, position, "begin"), Action(number, position, "end")]
    return tuple(found)


def spans(actions: Sequence[Action], count: int) -> list[tuple[int, int]]:
    """Return the first and last action of each of ``count`` layers."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for step, action in enumerate(actions):
        first.setdefault(action.layer, step)
        last[action.layer] = step
    return [(first[layer], last[layer]) for layer in range(count)]
