"""The lines of a report that say energy and area, with what they come from."""

from __future__ import annotations

from collections.abc import Iterator

from covp.chip.platform_file.model import LOWER_BOUND
from covp.evaluation import Evaluation
from covp.evaluation.area import estimate_areas
from covp.evaluation.energy import Energy, EnergyPart


def energy_lines(result: Evaluation, verbose: bool) -> Iterator[str]:
    """Yield the energy, with its source if ``verbose``; or why there is none; or nothing."""
    energy = result.energy
    if isinstance(energy, str):
        yield f"energy: not estimated: {energy}"
    if not isinstance(energy, Energy):
        return
    bounds = energy.bounds
    spread = f" ({in_joules(bounds[0])} to {in_joules(bounds[1])})" if bounds else ""
    if not verbose:
        bound = f", {LOWER_BOUND}" if result.platform.is_lower_bound else ""
        joules = in_joules(energy.joules)
        yield f"energy: {joules}{spread}, estimated{bound}; --verbose says from what"
        return
    yield f"energy: {in_joules(energy.joules)}{spread}, estimated: {energy.assumes}"
    for part in energy.parts:
        yield f"    {_product(part)}"


def _product(part: EnergyPart) -> str:
    return (
        f"{part.what}: {part.count:,} {part.unit}s x {part.pj:.3g} pJ = "
        f"{in_joules(part.joules)} ({part.source})"
    )


def area_lines(result: Evaluation, verbose: bool) -> Iterator[str]:
    """Yield known areas of accelerators; with sources, one line each, if ``verbose``."""
    areas = estimate_areas(result.program)
    if areas and not verbose:
        each = ", ".join(f"{area.name} {area.um2 / 1e6:.3g} mm2" for area in areas)
        yield f"area: {each}, estimated; --verbose says from what"
        return
    for area in areas:
        memory = ""
        if area.kilobytes:
            memory = f" + {area.kilobytes:g} KB x {area.um2_per_kb:g} um2"
        yield (
            f"area of {area.name}: {area.um2 / 1e6:.3g} mm2, estimated: {area.multipliers:,} MAC "
            f"units x {area.um2_per_mac:g} um2{memory}, no control ({area.source})"
        )


def in_joules(value: float) -> str:
    """Return an energy as text, such as "3.07 mJ" or "91.2 uJ"."""
    scales = ((1.0, "J"), (1e-3, "mJ"), (1e-6, "uJ"))
    factor, unit = next((s for s in scales if value >= s[0]), (1e-9, "nJ"))
    return f"{value / factor:.3g} {unit}"
