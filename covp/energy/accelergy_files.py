"""`read_files`: Accelergy's YAML files, checked as far as they are used here.

Its inputs are ``architecture`` and ``compound_components`` (versions 0.2 to 0.4, README of
Accelergy-Project/accelergy), its outputs ``ERT`` and ``ART``, the energy and area reference tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

from covp.errors import AcceleratorError
from covp.platform_yaml import parse_yaml

Attributes = dict[str, Any]


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
        content = read_yaml(path)
        try:
            file = msgspec.convert(content, File)
        except msgspec.ValidationError as error:
            raise AcceleratorError(f"{path}: {error}") from None
        if file == File():
            keys = ", ".join(File.__struct_fields__)
            raise AcceleratorError(f"{path}: is no file of Accelergy, which has one of {keys}")
        yield file


def read_yaml(path: Path) -> Mapping[str, Any]:
    """A mapping.

    Raises:
        AcceleratorError: it cannot be read, or is none.
    """
    try:
        content = parse_yaml(path.read_bytes())
    except OSError as error:
        raise AcceleratorError(f"{path}: cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise AcceleratorError(f"{path}: is no YAML: {reason}") from None
    if not isinstance(content, dict):
        raise AcceleratorError(f"{path}: holds no keys")
    return content
