"""`UnitEnergy` and `UnitArea`: what an accelerator's operations, bytes and gates cost."""

from __future__ import annotations

from dataclasses import dataclass

from covp.errors import AcceleratorError


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
        """Return the area of a unit in square micrometres.

        Args:
            multipliers: its multiply-accumulate units.
            kilobytes: its memory, in KB of 1024 bytes.
        """
        return multipliers * self.um2_per_mac + kilobytes * self.um2_per_kb


def _demand_source(what: str, source: str) -> None:
    if len(source.strip()) < 3:
        raise AcceleratorError(f"{what} of a unit: source is required: paper, table, technology")
