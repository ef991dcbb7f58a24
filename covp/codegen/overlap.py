"""`OverlapPlan`: in which order the run function begins and ends the parts of layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from covp.codegen.layer import PartCode
from covp.codegen.program import ProgramLayer

_NONE: Mapping[str, int] = MappingProxyType({})
_NO_UNITS: Mapping[str, tuple[str, ...]] = MappingProxyType({})


@dataclass(frozen=True)
class Action:
    """One call of the run function.

    Attributes:
        layer: its position among the program's layers.
        part: the position among the layer's parts.
        what: "begin" starts a unit and comes back at once, "end" waits for it; "run" is a part
            that the core computes, or waits for.
        unit: name of the unit of a "begin" or "end".
    """

    layer: int
    part: int
    what: Literal["run", "begin", "end"]
    unit: str = ""


@dataclass(frozen=True)
class OverlapPlan:
    """A plan for a program in which core and units work at the same time.

    Attributes:
        rows: name of a layer to the output rows of the bands that it is cut into.
        actions: in the order of the run function; empty: one part after the other, each unit
            waited for at once.
        units: name of a layer to the unit of each of its parts, where that is not always the unit
            that got the layer but one that is equal to it.
    """

    rows: Mapping[str, int] = field(default_factory=lambda: _NONE)
    actions: tuple[Action, ...] = ()
    units: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _NO_UNITS)


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


def shared_units(
    layers: Sequence[ProgramLayer], actions: Sequence[Action]
) -> dict[str, tuple[str, ...]]:
    """Return the unit of each part, by layer, of those of which another unit computes some.

    Args:
        layers: of the program, each with the unit that got it.
        actions: that say which unit begins a part.
    """
    begun = {(a.layer, a.part): a.unit for a in actions if a.what == "begin"}
    found = {}
    for number, layer in enumerate(layers):
        parts = range(len(layer.parts))
        units = tuple(begun.get((number, part), layer.target) for part in parts)
        if set(units) - {layer.target}:
            found[layer.name] = units
    return found


def spans(actions: Sequence[Action], count: int) -> list[tuple[int, int]]:
    """Return the first and last action of each of ``count`` layers."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for step, action in enumerate(actions):
        first.setdefault(action.layer, step)
        last[action.layer] = step
    return [(first[layer], last[layer]) for layer in range(count)]
