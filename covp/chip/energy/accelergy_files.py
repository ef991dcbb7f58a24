"""`read_files`: Accelergy's YAML files, checked as far as they are used here.

Its inputs are ``architecture`` and ``compound_components`` (versions 0.2 to 0.4, README of
Accelergy-Project/accelergy), its outputs ``ERT`` and ``ART``, the energy and area reference tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from covp.base.struct_errors import readable
from covp.base.yaml_files import read_yaml
from covp.errors import AcceleratorError

Attributes = dict[str, Any]
_T = TypeVar("_T")


class Call(msgspec.Struct, frozen=True):
    """An action of a subcomponent; how often, or at which scale (older files: share)."""

    name: str
    arguments: Attributes = {}
    energy_scale: Any = 1
    action_share: Any = 1
    repeat: Any = 1

    @property
    def scales(self) -> tuple[Any, ...]:
        """What its energy is multiplied by."""
        return (self.energy_scale, self.action_share, self.repeat)


class User(msgspec.Struct, frozen=True):
    """What an action does to one subcomponent."""

    name: str
    actions: tuple[Call, ...] = ()


class Action(msgspec.Struct, frozen=True):
    """An action of a compound component."""

    name: str
    subcomponents: tuple[User, ...] = ()


class Part(msgspec.Struct, frozen=True):
    """A component in the architecture, or a subcomponent; older files have shares for scales."""

    name: str
    kind: str = msgspec.field(name="class")
    attributes: Attributes = {}
    area_scale: Any = 1
    energy_scale: Any = 1
    area_share: Any = 1
    energy_share: Any = 1

    def scales(self, what: Literal["area", "energy"]) -> tuple[Any, ...]:
        """What its area or energy is multiplied by; attributes may have them, too."""
        names = (f"{what}_scale", f"{what}_share")
        own = tuple(getattr(self, name) for name in names)
        return own + tuple(self.attributes.get(name, 1) for name in names)


class Compound(msgspec.Struct, frozen=True):
    """A class made of others."""

    name: str
    attributes: Attributes = {}
    subcomponents: tuple[Part, ...] = ()
    actions: tuple[Action, ...] = ()


class Node(msgspec.Struct, frozen=True):
    """A level of the architecture."""

    name: str
    attributes: Attributes = {}
    local: tuple[Part, ...] = ()
    subtree: tuple[Node, ...] = ()


class _Tree(msgspec.Struct, frozen=True):
    subtree: tuple[Node, ...]


class _Classes(msgspec.Struct, frozen=True):
    classes: tuple[Compound, ...]


class Energy(msgspec.Struct, frozen=True):
    """A row of an energy reference table, pJ."""

    name: str
    energy: float
    arguments: Attributes | None = None


class EnergyTable(msgspec.Struct, frozen=True):
    """The energies of one component."""

    name: str
    actions: tuple[Energy, ...] = ()


class AreaTable(msgspec.Struct, frozen=True):
    """The area of one component, um2."""

    name: str
    area: float


class _Energies(msgspec.Struct, frozen=True):
    tables: tuple[EnergyTable, ...]


class _Areas(msgspec.Struct, frozen=True):
    tables: tuple[AreaTable, ...]


class File(msgspec.Struct, frozen=True):
    """What one file describes."""

    architecture: _Tree | None = None
    compound_components: _Classes | None = None
    ERT: _Energies | None = None
    ART: _Areas | None = None


def read_files(paths: Iterable[Path]) -> Iterator[File]:
    """Read files.

    Raises:
        AcceleratorError: one line with the file, the key and the reason.
    """
    for path in paths:
        file = read_as(path, File)
        if file == File():
            keys = ", ".join(File.__struct_fields__)
            raise AcceleratorError(f"{path}: is no file of Accelergy, which has one of {keys}")
        yield file


def read_as(path: Path, kind: type[_T]) -> _T:
    """A YAML file as a structure.

    Raises:
        AcceleratorError: likewise.
    """
    content = read_yaml(path, AcceleratorError)
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise AcceleratorError(f"{path}: {readable(error, kind)}") from None
