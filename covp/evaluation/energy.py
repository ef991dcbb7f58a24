"""`estimate_energy`: the energy of an inference, from its cycles and jobs and published figures.

    cycles of the core x pJ/cycle  +  MACs of each unit x pJ/MAC  +  bytes of each unit x pJ/byte

Cycles in which the core sleeps until a unit is done count apart where the platform says what they
cost. It is an estimate whatever the cycles are, and absent where a part of it is not known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from covp.accelerator.backend import AcceleratorBackend
from covp.chip.energy.coefficients import Coefficient
from covp.chip.energy.core_costs import CoreEnergy
from covp.chip.energy.technology import energy_in, technology_names
from covp.chip.energy.units import UnitEnergy
from covp.codegen.program import AcceleratorInstance, Program
from covp.runtime.profile import LayerProfile, Profile


@dataclass(frozen=True)
class EnergyPart:
    """One product of the sum.

    Attributes:
        what: "core", "core asleep", or the name of a unit.
        count: how many.
        unit: "cycle", "MAC" or "byte".
        pj: of each.
        low, high: the least and greatest published figure of the same thing; None: only one is.
        source: of ``pj``.
    """

    what: str
    count: int
    unit: str
    pj: float
    source: str
    low: float | None = None
    high: float | None = None

    @property
    def joules(self) -> float:
        """The product."""
        return self.count * self.pj * 1e-12


@dataclass(frozen=True)
class Energy:
    """The estimated energy of an inference.

    Attributes:
        model: the table that the core's figure comes from, or "platform file".
        assumes: what the figure takes for granted.
        parts: the sum.
    """

    model: str
    assumes: str
    parts: tuple[EnergyPart, ...]

    @property
    def joules(self) -> float:
        """The sum."""
        return sum(part.joules for part in self.parts)

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Energy with the least and the greatest published figures; None: each has only one.

        The error of the cycles is not in them.
        """
        if all(part.low is None and part.high is None for part in self.parts):
            return None
        low = sum(part.count * (part.low or part.pj) for part in self.parts)
        high = sum(part.count * (part.high or part.pj) for part in self.parts)
        return low * 1e-12, high * 1e-12


def estimate_energy(program: Program, profile: Profile) -> Energy | str | None:
    """Return the energy of an inference.

    Args:
        program: what ran.
        profile: its cycles and the work of its units.

    Returns:
        The estimate; why a part of it is not known, in one line; or None where the platform says
        nothing of its energy or the device has no cycles.
    """
    core = program.platform.energy
    if core is None or profile.cycles is None:
        return None
    parts = list(_core_parts(core, profile, _asleep(program, profile)))
    for unit in program.accelerators:
        own = [entry for entry in profile.layers if entry.layer.target == unit.name]
        done = _unit_parts(unit, own)
        if isinstance(done, str):
            return done
        parts += done
    return Energy(core.model, _assumptions(core, profile), tuple(parts))


def _core_parts(core: CoreEnergy, profile: Profile, asleep: int) -> Iterator[EnergyPart]:
    assert profile.cycles is not None
    sleep = core.sleep
    if sleep is None or not asleep:
        yield _part("core", profile.cycles, core.run)
        return
    yield _part("core", profile.cycles - asleep, core.run)
    yield _part("core asleep", asleep, sleep)


def _part(what: str, cycles: int, figure: Coefficient) -> EnergyPart:
    source = f"{figure.source}; {figure.note}" if figure.note else figure.source
    return EnergyPart(what, cycles, "cycle", figure.value, source, figure.low, figure.high)


def _asleep(program: Program, profile: Profile) -> int:
    """Return cycles in WFI: those that a driver with ``wait=sleep`` waited."""
    sleepers = {a.name for a in program.accelerators if a.backend.values.get("wait") == "sleep"}
    return sum(
        entry.offload.waiting
        for entry in profile.layers
        if entry.offload is not None and entry.layer.target in sleepers
    )


def _unit_parts(unit: AcceleratorInstance, own: list[LayerProfile]) -> list[EnergyPart] | str:
    """Return the parts of a unit that did ``own`` layers, or why they are not known."""
    if not own:
        return []
    energy = unit.backend.unit_energy()
    if energy is None:
        names = ", ".join(name for name in technology_names() if energy_in(name))
        return (
            f"{unit.name} states no energy; name its technology ({unit.name}:technology=NAME with "
            f"one of {names}), or set `energy` in its class"
        )
    works = [entry.work for entry in own if entry.work is not None]
    in_core = all(work.jobs is None for work in works)
    counted = works[:1] if in_core else works  # a unit in the core reports all of its layers alike
    macs = [work.macs for work in counted if work.macs is not None]
    needed = any(entry.layer.work for entry in own)
    if not counted or (needed and len(macs) < len(counted)):
        return f"{unit.name} does not report its multiply-accumulates"
    moved = sum((work.bytes_read or 0) + (work.bytes_written or 0) for work in counted)
    return list(_products(unit.name, energy, sum(macs), moved))


def _products(name: str, energy: UnitEnergy, macs: int, moved: int) -> Iterator[EnergyPart]:
    if macs:
        yield EnergyPart(name, macs, "MAC", energy.pj_per_mac, energy.source)
    if energy.pj_per_byte:
        yield EnergyPart(name, moved, "byte", energy.pj_per_byte, energy.source)


def _assumptions(core: CoreEnergy, profile: Profile) -> str:
    cycles = profile.sources.cycles
    return "; ".join(
        filter(
            None,
            (
                core.conditions,
                "every cycle costs the same",
                f"cycles {cycles}" if cycles else "",
            ),
        )
    )


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
