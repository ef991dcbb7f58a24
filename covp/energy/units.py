"""`UnitEnergy` and `UnitArea`: what an accelerator's operations, bytes and gates cost."""

from __future__ import annotations

from dataclasses import dataclass

from covp.energy.coefficients import technologies
from covp.errors import AcceleratorError

NONE = "none"


@dataclass(frozen=True)
class UnitEnergy:
    """The energy of a unit's jobs: multiply-accumulates and bytes moved, nothing for idle cycles.

    Attributes:
        pj_per_mac: pJ of a multiply-accumulate, above 0.
        pj_per_byte: pJ of a byte through the unit's memory port; 0 where pj_per_mac holds it.
        source: where both come from, with the technology.

    Raises:
        AcceleratorError: a figure is out of range, or there is no source.
    """

    pj_per_mac: float
    pj_per_byte: float
    source: str

    def __post_init__(self) -> None:
        if not (0 < self.pj_per_mac < 1e6 and 0 <= self.pj_per_byte < 1e6):
            raise AcceleratorError(
                "energy of a unit: pJ above 0 and below 1e6; pj_per_byte may be 0"
            )
        _demand_source("energy", self.source)


@dataclass(frozen=True)
class UnitArea:
    """The area of a unit: its multipliers and its memory, nothing for control.

    Attributes:
        um2_per_mac: of a multiply-accumulate unit with its registers, in square micrometres.
        um2_per_kb: of 1024 bytes of SRAM.
        source: where both come from, with the technology.

    Raises:
        AcceleratorError: a figure is out of range, or there is no source.
    """

    um2_per_mac: float
    um2_per_kb: float
    source: str

    def __post_init__(self) -> None:
        if not (0 < self.um2_per_mac < 1e9 and 0 <= self.um2_per_kb < 1e9):
            raise AcceleratorError("area of a unit: um2 above 0; um2_per_kb may be 0")
        _demand_source("area", self.source)

    def um2(self, multipliers: int, kilobytes: float) -> float:
        """Square micrometres of a unit.

        Args:
            multipliers: its multiply-accumulate units.
            kilobytes: its memory, in KB of 1024 bytes.
        """
        return multipliers * self.um2_per_mac + kilobytes * self.um2_per_kb


def _demand_source(what: str, source: str) -> None:
    if len(source.strip()) < 3:
        raise AcceleratorError(f"{what} of a unit: source is required: paper, table, technology")


def technology_names() -> tuple[str, ...]:
    """The technologies that units can name, ``none`` among them."""
    keys = {"mac_int8", "mac_int8_area"}
    return (NONE, *(t.name for t in technologies().values() if keys & t.coefficients.keys()))


def energy_in(technology: str) -> UnitEnergy | None:
    """The energy of an int8 unit in a technology; None where its table has none.

    Args:
        technology: one of `technology_names`.
    """
    table = technologies().get(technology)
    mac = table.coefficients.get("mac_int8") if table else None
    if table is None or mac is None:
        return None
    byte = table.coefficients.get("sram_byte")
    conditions = ", ".join(filter(None, (mac.node, f"{mac.volts:g} V" if mac.volts else "")))
    source = f"{mac.source} ({conditions}; {table.about})" if conditions else mac.source
    return UnitEnergy(mac.value, byte.value if byte else 0.0, source)


def area_in(technology: str) -> UnitArea | None:
    """The area of an int8 unit in a technology; None where its table has none."""
    table = technologies().get(technology)
    mac = table.coefficients.get("mac_int8_area") if table else None
    if table is None or mac is None:
        return None
    kilobyte = table.coefficients.get("sram_kb_area")
    source = f"{mac.source} ({mac.node}; {table.about})"
    return UnitArea(mac.value, kilobyte.value if kilobyte else 0.0, source)
