"""`estimate_areas`: the silicon area of a program's accelerators, from published figures."""

from __future__ import annotations

from dataclasses import dataclass

from covp.accelerator.backend import AcceleratorBackend
from covp.codegen.program import Program


@dataclass(frozen=True)
class AreaEstimate:
    """The estimated area of an accelerator.

    Attributes:
        name: of the instance.
        um2: multipliers and memory, in square micrometres; control and wires are left out.
        multipliers: multiply-accumulate units.
        um2_per_mac: of each.
        kilobytes: of memory, 1024 bytes each.
        um2_per_kb: of each.
        source: of both figures.
    """

    name: str
    um2: float
    multipliers: int
    um2_per_mac: float
    kilobytes: float
    um2_per_kb: float
    source: str


def estimate_areas(program: Program) -> list[AreaEstimate]:
    """Return the areas of the accelerators that state their size and its parts' area."""
    found = (estimate_area(unit.backend) for unit in program.accelerators)
    return [area for area in found if area is not None]


def estimate_area(unit: AcceleratorBackend) -> AreaEstimate | None:
    """Return the area of an accelerator; None where it does not state what it takes."""
    area, size = unit.unit_area(), unit.hardware_size()
    if area is None or size is None:
        return None
    multipliers, kilobytes = size
    return AreaEstimate(
        unit.name,
        area.um2(*size),
        multipliers,
        area.um2_per_mac,
        kilobytes,
        area.um2_per_kb,
        area.source,
    )
