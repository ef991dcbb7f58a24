"""A unit's parameter ``technology``: a table that comes with covp, or a file of the user's.

`read_component_file` reads energy and area of an accelerator from an Accelergy-style description.

The file names which component is the multiply-accumulate unit and which one the memory port::

    source: Y. S. Shao et al., Aladdin, ISCA 2014    # of the figures
    files: [architecture.yaml, components.yaml]      # or Accelergy's outputs: ERT.yaml, ART.yaml
    tables: tables                                   # a CSV per primitive class
    mac: {component: system.pe, action: compute}     # multiply-accumulates, `macs` an action
    byte: {component: buffer, action: read, bytes: 8}     # an action moves as many bytes
    memory: {component: buffer, kilobytes: 64}            # its area is of as many KB
    area: true                                            # false: there is no area
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec

from covp.chip.energy.accelergy import Description, SummedFigure
from covp.chip.energy.accelergy_files import read_as
from covp.chip.energy.coefficients import technologies
from covp.chip.energy.units import UnitArea, UnitEnergy
from covp.errors import AcceleratorError

_Positive = Annotated[float, msgspec.Meta(gt=0, le=1e9)]


class _Mac(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    component: str
    action: str
    arguments: dict[str, Any] = {}
    macs: _Positive = 1


class _Byte(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    component: str
    action: str
    bytes: _Positive
    arguments: dict[str, Any] = {}


class _Memory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    component: str
    kilobytes: _Positive


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    source: Annotated[str, msgspec.Meta(min_length=10)]
    files: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    mac: _Mac
    tables: str = "."
    byte: _Byte | None = None
    memory: _Memory | None = None
    area: bool = True


class ComponentFile(msgspec.Struct, frozen=True):
    """The content of a component file.

    Attributes:
        energy: of a multiply-accumulate and a byte, each with technology, parts and citation.
        area: likewise, None where the file says ``area: false``.
    """

    energy: UnitEnergy
    area: UnitArea | None


def read_component_file(path: str | Path) -> ComponentFile:
    """Read a file and all that it names, by paths from its folder.

    Raises:
        AcceleratorError: one line with the file and the reason.
    """
    path = Path(path)
    file = read_as(path, _File)
    folder = path.parent
    known = Description([folder / name for name in file.files], folder / file.tables)
    try:
        return ComponentFile(_energy(file, known), _area(file, known) if file.area else None)
    except AcceleratorError as error:
        text = str(error)
        raise AcceleratorError(
            text if text.startswith(str(folder)) else f"{path}: {text}"
        ) from None


def _energy(file: _File, known: Description) -> UnitEnergy:
    mac = known.energy(file.mac.component, file.mac.action, file.mac.arguments)
    many = f" of {file.mac.macs:g} MACs" if file.mac.macs != 1 else ""
    cited = [_cite(known, file.mac.component, f".{file.mac.action}{many}", mac, "pJ")]
    per_byte = 0.0
    if file.byte is not None:
        one = file.byte
        moved = known.energy(one.component, one.action, one.arguments)
        per_byte = moved.value / one.bytes
        text = f".{one.action} of {one.bytes:g} bytes"
        cited.append(_cite(known, one.component, text, moved, "pJ"))
    return UnitEnergy(mac.value / file.mac.macs, per_byte, _source(file, cited))


def _area(file: _File, known: Description) -> UnitArea:
    mac = known.area(file.mac.component)
    cited = [_cite(known, file.mac.component, "", mac, "um2")]
    per_kb = 0.0
    if file.memory is not None:
        memory = known.area(file.memory.component)
        per_kb = memory.value / file.memory.kilobytes
        text = f" of {file.memory.kilobytes:g} KB"
        cited.append(_cite(known, file.memory.component, text, memory, "um2"))
    return UnitArea(mac.value, per_kb, _source(file, cited))


def _cite(known: Description, component: str, what: str, figure: SummedFigure, unit: str) -> str:
    """Technology, value and parts of one figure."""
    node = known.node(component)
    how = f" ({figure.how})" if figure.how else ""
    return f"{component}{what}{f' at {node}' if node else ''}: {figure.value:.4g} {unit}{how}"


def _source(file: _File, cited: list[str]) -> str:
    return f"{' '.join(file.source.split())}; {'; '.join(cited)}"


NONE = "none"
FILE_SUFFIXES = (".yaml", ".yml")


def technology_names() -> tuple[str, ...]:
    """Return the technologies that units can name, ``none`` among them."""
    keys = {"mac_int8", "mac_int8_area"}
    return (NONE, *(t.name for t in technologies().values() if keys & t.coefficients.keys()))


def component_file(text: str) -> str:
    """Read a component file, see above; return its absolute path.

    Raises:
        ValueError: it is wrong, or the text is neither a path of one nor a technology.
    """
    if not text.endswith(FILE_SUFFIXES):
        names = ", ".join(technology_names())
        raise ValueError(f"must be one of {names}, or the path of a component file (.yaml)")
    path = str(Path(text).expanduser().absolute())
    try:
        read_component_file(path)
    except AcceleratorError as error:
        raise ValueError(f"is wrong: {error}") from None
    return path


def energy_in(technology: str) -> UnitEnergy | None:
    """Return the energy of an int8 unit in a technology; None where its table has none.

    Args:
        technology: one of `technology_names`, or the path of a component file.
    """
    if technology.endswith(FILE_SUFFIXES):
        return read_component_file(technology).energy
    table = technologies().get(technology)
    mac = table.coefficients.get("mac_int8") if table else None
    if table is None or mac is None:
        return None
    byte = table.coefficients.get("sram_byte")
    conditions = ", ".join(filter(None, (mac.node, f"{mac.volts:g} V" if mac.volts else "")))
    source = f"{mac.source} ({conditions}; {table.about})" if conditions else mac.source
    return UnitEnergy(mac.value, byte.value if byte else 0.0, source)


def area_in(technology: str) -> UnitArea | None:
    """Return the area of an int8 unit in a technology; None where its table or file has none."""
    if technology.endswith(FILE_SUFFIXES):
        return read_component_file(technology).area
    table = technologies().get(technology)
    mac = table.coefficients.get("mac_int8_area") if table else None
    if table is None or mac is None:
        return None
    kilobyte = table.coefficients.get("sram_kb_area")
    source = f"{mac.source} ({mac.node}; {table.about})"
    return UnitArea(mac.value, kilobyte.value if kilobyte else 0.0, source)
