"""A unit's parameter ``technology``: a table that comes with covp, or a file of the user's."""

from __future__ import annotations

from pathlib import Path

from covp.chip.energy.coefficients import technologies
from covp.chip.energy.component_file import read_component_file
from covp.chip.energy.units import UnitArea, UnitEnergy
from covp.errors import AcceleratorError

NONE = "none"
FILE_SUFFIXES = (".yaml", ".yml")


def technology_names() -> tuple[str, ...]:
    """Return the technologies that units can name, ``none`` among them."""
    keys = {"mac_int8", "mac_int8_area"}
    return (NONE, *(t.name for t in technologies().values() if keys & t.coefficients.keys()))


def component_file(text: str) -> str:
    """Read a component file, see `covp.chip.energy.component_file`; return its absolute path.

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
