"""What core and units can do in a cycle at most: the roofs of a roofline, as JSON."""

from __future__ import annotations

from typing import Any

from covp.chip.platform_file import Platform
from covp.codegen.program import AcceleratorInstance, Program
from covp.device.timing.peak import core_peak
from covp.evaluation.area import estimate_areas


def core_record(platform: Platform) -> dict[str, Any]:
    """The key ``core`` of the JSON document ``covp.run/1``; wait states are left out."""
    peak = core_peak(platform.core)
    return {
        "name": platform.core.name,
        "clock_hz": platform.clock_hz,
        "macs_per_cycle": peak.macs_per_cycle,
        "bytes_per_cycle": peak.bytes_per_cycle,
        "code": peak.code or None,
    }


def unit_records(program: Program) -> list[dict[str, Any]]:
    """The key ``units``: each accelerator, by its parameters."""
    areas = {area.name: area.um2 for area in estimate_areas(program)}
    return [_unit(unit, areas.get(unit.name)) for unit in program.accelerators]


def _unit(unit: AcceleratorInstance, um2: float | None) -> dict[str, Any]:
    size = unit.backend.hardware_size()
    values = unit.backend.values
    return {
        "name": unit.name,
        "spec": unit.spec,
        "macs_per_cycle": size[0] if size else None,
        "bytes_per_cycle": values.get("bytes_per_cycle"),
        "um2": um2,
    }
