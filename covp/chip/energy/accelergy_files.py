"""`read_files`: Accelergy's YAML files, checked as far as they are used here.

Its inputs are ``architecture`` and ``compound_components`` (versions 0.2 to 0.4, README of
Accelergy-Project/accelergy), its outputs ``ERT`` and ``ART``, the energy and area reference tables.
"""

from __future__ import annotations

import ast
import csv
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from covp.base.arguments import read_file
from covp.base.struct_errors import place_of, readable
from covp.base.yaml_files import read_yaml
from covp.errors import AcceleratorError

Attributes = dict[str, Any]
_T = TypeVar("_T")


class _Call(msgspec.Struct, frozen=True):
    """An action of a subcomponent; how often, or at which scale (older files: share)."""

    name: str
    arguments: Attributes = {}
    energy_scale: Any = 1
    action_share: Any = 1
    repeat: Any = 1

    @property
    def scales(self) -> tuple[Any, ...]:
        """The factors of its energy."""
        return (self.energy_scale, self.action_share, self.repeat)


class User(msgspec.Struct, frozen=True):
    """The calls that an action makes to one subcomponent."""

    name: str
    actions: tuple[_Call, ...] = ()


class _Action(msgspec.Struct, frozen=True):
    """An action of a compound component."""

    name: str
    subcomponents: tuple[User, ...] = ()


class _Part(msgspec.Struct, frozen=True):
    """A component in the architecture, or a subcomponent; older files have shares for scales."""

    name: str
    kind: str = msgspec.field(name="class")
    attributes: Attributes = {}
    area_scale: Any = 1
    energy_scale: Any = 1
    area_share: Any = 1
    energy_share: Any = 1

    def scales(self, what: Literal["area", "energy"]) -> tuple[Any, ...]:
        """Return the factors of its area or energy; attributes may have them, too."""
        names = (f"{what}_scale", f"{what}_share")
        own = tuple(getattr(self, name) for name in names)
        return own + tuple(self.attributes.get(name, 1) for name in names)


class Compound(msgspec.Struct, frozen=True):
    """A class made of others."""

    name: str
    attributes: Attributes = {}
    subcomponents: tuple[_Part, ...] = ()
    actions: tuple[_Action, ...] = ()


class _Node(msgspec.Struct, frozen=True):
    """A level of the architecture."""

    name: str
    attributes: Attributes = {}
    local: tuple[_Part, ...] = ()
    subtree: tuple[_Node, ...] = ()


class _Tree(msgspec.Struct, frozen=True):
    subtree: tuple[_Node, ...]


class _Classes(msgspec.Struct, frozen=True):
    classes: tuple[Compound, ...]


class _EnergyRow(msgspec.Struct, frozen=True):
    """A row of an energy reference table, pJ."""

    name: str
    energy: float
    arguments: Attributes | None = None


class EnergyTable(msgspec.Struct, frozen=True):
    """The energies of one component."""

    name: str
    actions: tuple[_EnergyRow, ...] = ()


class AreaTable(msgspec.Struct, frozen=True):
    """The area of one component, um2."""

    name: str
    area: float


class _Energies(msgspec.Struct, frozen=True):
    tables: tuple[EnergyTable, ...]


class _Areas(msgspec.Struct, frozen=True):
    tables: tuple[AreaTable, ...]


class AccelergyFile(msgspec.Struct, frozen=True):
    """The content of one file."""

    architecture: _Tree | None = None
    compound_components: _Classes | None = None
    ERT: _Energies | None = None
    ART: _Areas | None = None


def read_files(paths: Iterable[Path]) -> Iterator[AccelergyFile]:
    """Read files.

    Raises:
        AcceleratorError: one line with the file, the key and the reason.
    """
    for path in paths:
        file = read_as(path, AccelergyFile)
        if file == AccelergyFile():
            keys = ", ".join(AccelergyFile.__struct_fields__)
            raise AcceleratorError(f"{path} is not a file of Accelergy, which has one of {keys}")
        yield file


def read_as(path: Path, kind: type[_T]) -> _T:
    """Return a YAML file as a structure.

    Raises:
        AcceleratorError: likewise.
    """
    content = read_yaml(path, AcceleratorError)
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise AcceleratorError(
            f"{readable(error, kind)}", where=path, key=place_of(error)
        ) from None


_ENERGY = ("energy", "dynamic energy(pJ)")
_AREA = ("area", "area(um^2)")
_LATENCY, _DEFAULT_LATENCY = "latency(ns)", "5ns"
"""Accelergy's plug-in for Aladdin's tables takes 5 ns where a component states no latency."""
_NO_ATTRIBUTES = {*_ENERGY, *_AREA, "action", "comment", "idle energy(pJ)", "leakage power(mW)"}
_UNITS = {"fs": 1e-6, "ps": 1e-3, "ns": 1.0, "us": 1e3, "nm": 1.0, "um": 1e3, "": 1.0}


@dataclass(frozen=True)
class ClassTable:
    """The table of one class.

    Attributes:
        path: of the file.
        rows: column to text, of each row.
    """

    path: Path
    rows: tuple[Mapping[str, str], ...]

    def energy(
        self, attributes: Mapping[str, Any], action: str, arguments: Mapping[str, Any]
    ) -> float:
        """Return the energy of one action, in pJ.

        Raises:
            AcceleratorError: no row is of it, or several that differ.
        """
        wanted = {**attributes, **arguments}
        rows = [row for row in self._of(wanted) if row.get("action", action) == action]
        return self._figure(rows, _ENERGY, f"action {action}", wanted)

    def area(self, attributes: Mapping[str, Any]) -> float:
        """Square micrometres. Raises AcceleratorError: likewise."""
        return self._figure(self._of(attributes), _AREA, "the area", attributes)

    def _of(self, attributes: Mapping[str, Any]) -> list[Mapping[str, str]]:
        latency = attributes.get("latency", _DEFAULT_LATENCY)
        wanted = {**attributes, _LATENCY: latency}
        return [
            row
            for row in self.rows
            if all(
                same(text, wanted[name]) for name, text in row.items() if self._tells(name, wanted)
            )
        ]

    def _tells(self, column: str, wanted: Mapping[str, Any]) -> bool:
        return column in wanted and column not in _NO_ATTRIBUTES

    def _figure(
        self,
        rows: Sequence[Mapping[str, str]],
        columns: Sequence[str],
        what: str,
        attributes: Mapping[str, Any],
    ) -> float:
        stated = (
            ", ".join(f"{name}={value}" for name, value in attributes.items()) or "no attributes"
        )
        found = {row[name] for row in rows for name in columns if row.get(name)}
        if len(found) != 1:
            why = "no row is" if not found else f"{len(found)} rows that differ are"
            raise AcceleratorError(f"{why} of {what} with {stated}", where=self.path)
        return number(found.pop(), f"{self.path}: {columns[0]}")


def read_table(path: Path) -> ClassTable:
    """Read a CSV with a header.

    Raises:
        AcceleratorError: it cannot be read, or has no column of energy or area.
    """
    try:
        text = read_file(path).decode("utf-8-sig")
        rows = [row for row in csv.DictReader(text.splitlines(), strict=True) if any(row.values())]
    except OSError as error:
        raise AcceleratorError(f"cannot be read: {error.strerror}", where=path) from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise AcceleratorError(f"{path} is not a CSV file: {error}") from None
    if not rows or not {*rows[0]} & {*_ENERGY, *_AREA}:
        columns = ", ".join((*_ENERGY, *_AREA))
        raise AcceleratorError(f"has no rows, or no column of {columns}", where=path)
    if any(None in row or None in row.values() for row in rows):
        raise AcceleratorError("a row has a different number of cells than the header", where=path)
    stripped = ({name.strip(): cell.strip() for name, cell in row.items()} for row in rows)
    return ClassTable(path, tuple(stripped))


def number(value: Any, where: str) -> float:
    """Return a finite figure of 0 and more. Raises AcceleratorError: it is none."""
    try:
        figure = float(value)
    except (TypeError, ValueError):
        figure = math.nan
    if isinstance(value, bool) or not 0 <= figure < 1e12:
        raise AcceleratorError(f"{where}: {value!r:.60} is not a number of at least 0")
    return figure


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal: numbers, with a unit (5ns) or none, or text."""
    first, second = _quantity(one), _quantity(other)
    if first is None or second is None:
        return str(one).strip() == str(other).strip()
    return math.isclose(first, second, rel_tol=1e-9)


def _quantity(value: Any) -> float | None:
    match = re.fullmatch(r"\s*([-+.\deE]+?)\s*([fpnu][sm]|)\s*", str(value))
    try:
        return float(match[1]) * _UNITS[match[2]] if match else None
    except (ValueError, KeyError):
        return None


_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ceil": math.ceil,
    "floor": math.floor,
    "log2": math.log2,
    "sqrt": math.sqrt,
    "max": max,
    "min": min,
}
_LONGEST = 500


def value_of(given: Any, names: Mapping[str, Any]) -> Any:
    """Evaluate ``given`` if it is the text of an expression over numbers; else return it.

    Args:
        given: a number, or a text such as "width * n_words", "ceil(log2(depth))" or "45nm".
        names: values that the text may use.
    """
    if not isinstance(given, str) or len(given) > _LONGEST:
        return given
    if given in names:
        return names[given]
    try:
        return _number(ast.parse(given.strip(), mode="eval").body, names)
    except (SyntaxError, ValueError, TypeError, ArithmeticError, RecursionError):
        return given


def _number(node: ast.expr, names: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    if isinstance(node, ast.Name) and isinstance(names.get(node.id), (int, float)):
        return names[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_number(node.operand, names)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_number(node.left, names), _number(node.right, names))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        function: Callable[..., Any] = _FUNCTIONS.get(node.func.id, _unknown)
        return function(*(_number(one, names) for one in node.args))
    return _unknown()


def _unknown(*_: object) -> Any:
    raise ValueError
