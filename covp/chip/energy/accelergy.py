"""`Description`: the energy and area of components that Accelergy's files describe.

A figure comes from Accelergy's own reference tables (ERT, ART) where they have the component; else
a compound component is the sum of its parts, and a primitive one is looked up in the table of its
class (`covp.chip.energy.accelergy_files`). Leakage is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from covp.chip.energy.accelergy_files import (
    AccelergyFile,
    ClassTable,
    Compound,
    _Node,
    _Part,
    number,
    read_files,
    read_table,
    same,
    value_of,
)
from covp.errors import AcceleratorError, near_misses

_RANGE = re.compile(r"\[\s*([^\[\]]*?)\s*\.\.\s*([^\[\]]*?)\s*\]")
_DEEPEST = 20

Values = Mapping[str, Any]


@dataclass(frozen=True)
class SummedFigure:
    """An energy in pJ or an area in um2, and what it is the sum of, as text."""

    value: float
    how: str = ""


@dataclass(frozen=True)
class _Component:
    name: str
    part: _Part
    attributes: Values

    def scale(self, what: Literal["area", "energy"], figure: SummedFigure) -> SummedFigure:
        scale = _product(self.part.scales(what), self.attributes, self.name)
        return (
            figure
            if scale == 1
            else SummedFigure(figure.value * scale, f"{scale:g} x {figure.how}")
        )


class Description:
    """The components of some files.

    Args:
        files: of Accelergy, inputs or outputs.
        tables: the folder of the primitive classes' tables.

    Raises:
        AcceleratorError: a file is wrong.
    """

    def __init__(self, files: Iterable[Path], tables: Path) -> None:
        read: list[AccelergyFile] = [*read_files(files)]
        self._tables = tables
        self._classes = {
            one.name: one
            for file in read
            for one in getattr(file.compound_components, "classes", ())
        }
        self._components = [
            component
            for file in read
            for node in getattr(file.architecture, "subtree", ())
            for component in _components(node, "", {})
        ]
        self._energies = [one for file in read for one in getattr(file.ERT, "tables", ())]
        self._areas = [one for file in read for one in getattr(file.ART, "tables", ())]

    def energy(self, component: str, action: str, arguments: Values) -> SummedFigure:
        """Return the energy of one action of a component, in pJ.

        Args:
            component: its name, with as much of its place before it as tells it from others.
            action: of its class, or of the table.
            arguments: of the action; those that are left out may have any value if that makes no
                difference.

        Raises:
            AcceleratorError: there is none of that name, or no figure of it.
        """
        actions = [
            a for table in self._energies if _is(table.name, component) for a in table.actions
        ]
        found = {
            one.energy
            for one in actions
            if one.name == action and _agree(one.arguments or {}, arguments)
        }
        if len(found) == 1:
            return SummedFigure(number(found.pop(), f"{component}.{action}"), "Accelergy's ERT")
        if actions:
            why = f"{len(found)} energies: state its arguments" if found else "no energy in the ERT"
            raise AcceleratorError(f"{component}.{action} has {why}")
        one = self._find(component)
        figure = self._energy(one.part.kind, one.attributes, action, arguments, 0)
        return one.scale("energy", figure)

    def area(self, component: str) -> SummedFigure:
        """Return the area of one component, in um2. Raises AcceleratorError: as `energy`."""
        for table in self._areas:
            if _is(table.name, component):
                return SummedFigure(number(table.area, component), "Accelergy's ART")
        one = self._find(component)
        return one.scale("area", self._area(one.part.kind, one.attributes, 0))

    def node(self, component: str) -> str | None:
        """Return the technology of a component, such as "40 nm"; None if no attribute says it."""
        nodes = [c.attributes.get("technology") for c in self._components if _is(c.name, component)]
        if not nodes or nodes[0] is None:
            return None
        text = str(nodes[0]).strip()
        return f"{text.removesuffix('nm').strip()} nm" if text.rstrip("nm ").isdigit() else text

    def _find(self, name: str) -> _Component:
        found = [one for one in self._components if _is(one.name, name)]
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(one.name for one in found)
            raise AcceleratorError(f"component {name}: several are: {names}")
        known = [_plain(one.name) for one in (*self._components, *self._energies, *self._areas)]
        raise AcceleratorError(f"there is no component {name!r}:", hint=near_misses(name, known))

    def _energy(
        self, kind: str, attributes: Values, action: str, arguments: Values, depth: int
    ) -> SummedFigure:
        compound = self._compound(kind, depth)
        if compound is None:
            return SummedFigure(self._table(kind).energy(attributes, action, arguments))
        names = {**_fill(compound.attributes, attributes), **arguments}
        actions = {one.name: one for one in compound.actions}
        if action not in actions:
            known = near_misses(action, actions)
            raise AcceleratorError(f"class {kind} has no action {action!r}: {known}")
        parts = []
        for user in actions[action].subcomponents:
            part = _part(compound, user.name)
            for call in user.actions:
                given = {key: value_of(value, names) for key, value in call.arguments.items()}
                one = self._energy(part.kind, _own(part, names), call.name, given, depth + 1)
                scales = (*call.scales, *part.scales("energy"))
                times = _product(scales, names, kind) * _count(user.name, names, kind)
                parts.append((_plain(user.name), one.value * times))
        return _sum(parts)

    def _area(self, kind: str, attributes: Values, depth: int) -> SummedFigure:
        compound = self._compound(kind, depth)
        if compound is None:
            return SummedFigure(self._table(kind).area(attributes))
        names = _fill(compound.attributes, attributes)
        parts = []
        for part in compound.subcomponents:
            one = self._area(part.kind, _own(part, names), depth + 1)
            times = _product(part.scales("area"), names, kind) * _count(part.name, names, kind)
            parts.append((_plain(part.name), one.value * times))
        return _sum(parts)

    def _compound(self, kind: str, depth: int) -> Compound | None:
        if depth > _DEEPEST:
            raise AcceleratorError(f"class {kind} is a part of itself")
        return self._classes.get(kind)

    def _table(self, kind: str) -> ClassTable:
        path = self._tables / f"{kind}.csv"
        if "/" in kind or not path.is_file():
            classes = [*self._classes, *(path.stem for path in self._tables.glob("*.csv"))]
            raise AcceleratorError(
                f"class {kind!r} is neither a compound component nor has a table {path}:",
                hint=near_misses(kind, classes),
            )
        return read_table(path)


def _components(node: _Node, place: str, inherited: Values) -> Iterator[_Component]:
    """Yield the components of a level and all below; attributes are handed down."""
    place = f"{place}{node.name}."
    attributes = _fill(node.attributes, {}, inherited)
    for part in node.local:
        yield _Component(place + part.name, part, _fill(part.attributes, {}, attributes))
    for below in node.subtree:
        yield from _components(below, place, attributes)


def _fill(own: Values, given: Values, names: Values | None = None) -> dict[str, Any]:
    """Evaluate attributes, ``given`` over ``own``, in any order, beside ``names``."""
    found = {**(names or {}), **own, **given}
    for _ in own:
        found = {key: value_of(value, {**found, key: None}) for key, value in found.items()}
    return found


def _own(part: _Part, names: Values) -> dict[str, Any]:
    """Return a part's attributes; the technology is the whole's where it has none of its own."""
    shared = {key: names[key] for key in ("technology", "latency") if key in names}
    return {**shared, **{key: value_of(value, names) for key, value in part.attributes.items()}}


def _part(compound: Compound, name: str) -> _Part:
    parts = {_plain(one.name): one for one in compound.subcomponents}
    if _plain(name) not in parts:
        known = near_misses(_plain(name), parts)
        raise AcceleratorError(f"class {compound.name} has no subcomponent {name!r}: {known}")
    return parts[_plain(name)]


def _sum(parts: list[tuple[str, float]]) -> SummedFigure:
    return SummedFigure(
        sum(value for _, value in parts), " + ".join(f"{n} {v:.4g}" for n, v in parts)
    )


def _product(factors: Iterable[Any], names: Values, where: str) -> float:
    result = 1.0
    for factor in factors:
        result *= number(value_of(factor, names), f"{where}: scale")
    return result


def _count(name: str, names: Values, where: str) -> float:
    """Return the number of components that a name such as ``lane[0..n-1]`` stands for."""
    match = _RANGE.search(name)
    if match is None:
        return 1
    first, last = (number(value_of(end, names), f"class {where}: {name}") for end in match.groups())
    return last - first + 1


def _plain(name: str) -> str:
    return _RANGE.sub("", name)


def _is(whole: str, name: str) -> bool:
    """Return whether ``name`` is the end of a component's whole name."""
    return f".{_plain(whole)}".endswith(f".{_plain(name)}")


def _agree(row: Values, arguments: Values) -> bool:
    return all(same(row[key], value) for key, value in arguments.items() if key in row)
