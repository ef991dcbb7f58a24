"""`Measurement`: the cost of one inference by layer, from the counts of device and units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from covp.codegen.program import Program, ProgramLayer
from covp.device.abilities import Abilities
from covp.device.phase_count import PhaseCount, add_counts
from covp.device.stop import Stop
from covp.hardware.custom_instruction import InstructionUnit
from covp.hardware.job_unit import JobRecord, JobUnit
from covp.runtime.call import Work, of_instructions, of_jobs
from covp.runtime.profile import Cost, LayerProfile, Offload, Profile

OUTSIDE, BETWEEN, FIRST_LAYER = range(3)
"""Phases of an inference: the task runner, the run function itself, and from here on the layers."""


class Measurement:
    """The counts of a device and its units while a program's layers run, from now on.

    Args:
        program: whose layers they are.
        abilities: of the device.
        markers: (address, phase) of the program's code, see `CountsByPhase.set_phases`.
    """

    def __init__(
        self, program: Program, abilities: Abilities, markers: Sequence[tuple[int, int]]
    ) -> None:
        self._program = program
        self._hardware = abilities.hardware
        if abilities.phases is not None:
            abilities.phases.set_phases(markers)
        self._units = self._job_units()
        for unit in self._units.values():
            unit.forget_jobs()
        self._uses = self._instruction_uses()

    def profile(self, stops: Sequence[Stop]) -> Profile:
        """Return the cost, from the device's executions in their order."""
        cost = Cost.of(stops)
        layers, between = self._layers(stops, cost), Cost(None, None)
        if all(stop.phases for stop in stops):
            phases = _sum_phases(stops)
            layers = self._counted_layers(phases)
            between = _cost_of_span(phases[BETWEEN])
            inside = phases[BETWEEN:]
            cost = Cost(
                sum(count.instructions for count in inside),
                sum(count.cycles for count in inside),
                cost.seconds,
                cost.sources,
            )
        return Profile(
            program=self._program.name,
            instructions=cost.instructions,
            cycles=cost.cycles,
            clock_hz=self._program.platform.clock_hz,
            layers=layers,
            between=between,
            jobs=self._jobs(),
            busy={n: sum(j.timing.cycles for j in u.jobs) for n, u in self._units.items()},
            measured=cost.seconds,
            sources=cost.sources,
        )

    def _layers(self, stops: Sequence[Stop], cost: Cost) -> tuple[LayerProfile, ...]:
        """Return costs by layer, where each execution is a layer: the device counts no phases."""
        layers = self._program.layers
        first = bool(self._program.startup_function)
        around = first + bool(self._program.keep_function)
        if len(stops) != len(layers) + around or cost.cycles is None:
            return ()
        stops = stops[first:][: len(layers)]
        return tuple(
            LayerProfile(layer, stop.instructions, stop.cycles)
            for layer, stop in zip(layers, stops, strict=True)
        )

    def _counted_layers(self, phases: Sequence[PhaseCount]) -> tuple[LayerProfile, ...]:
        jobs = [job for unit in self._units.values() for job in unit.jobs]
        in_core = self._in_core()
        return tuple(
            LayerProfile(
                layer,
                count.instructions,
                count.cycles,
                _offload(jobs, phase, count.cycles),
                self._work(layer, phase, in_core),
                count.causes,
                count.functions,
                count.traffic,
            )
            for phase, (layer, count) in enumerate(
                zip(self._program.layers, phases[FIRST_LAYER:], strict=True), FIRST_LAYER
            )
        )

    def _work(self, layer: ProgramLayer, phase: int, in_core: Mapping[str, Work]) -> Work | None:
        units = [self._units[name] for name in layer.units if name in self._units]
        if not units:
            return in_core.get(layer.target)
        return of_jobs(layer, [job for unit in units for job in unit.jobs if job.phase == phase])

    def _in_core(self) -> dict[str, Work]:
        """Return what each unit in the core did of its layers, by unit."""
        found = {}
        uses = self._instruction_uses()
        for accelerator in self._program.accelerators:
            name = accelerator.name
            if name not in uses:
                continue
            unit = accelerator.make()
            before = self._uses[name]
            own = {key: count - before.get(key, 0) for key, count in uses[name].items()}
            layers = [layer for layer in self._program.layers if layer.target == name]
            if isinstance(unit, InstructionUnit):
                found[name] = of_instructions(layers, unit, own)
        return found

    def _jobs(self) -> dict[str, int]:
        """Count jobs that each accelerator received; of units in the core, instructions."""
        jobs = {name: unit.begun for name, unit in self._units.items()}
        uses = self._instruction_uses()
        return jobs | {n: sum(uses[n].values()) - sum(self._uses[n].values()) for n in uses}

    def _job_units(self) -> dict[str, JobUnit]:
        """Return the hardware models of accelerators that keep a record of their jobs."""
        present = self._hardware.peripherals if self._hardware is not None else {}
        named = {
            a.name: present[a.name][1] for a in self._program.accelerators if a.name in present
        }
        return {name: unit for name, unit in named.items() if isinstance(unit, JobUnit)}

    def _instruction_uses(self) -> dict[str, Mapping[str, int]]:
        """Return executed instructions of tightly coupled units, by unit and name."""
        if self._hardware is None:
            return {}
        hardware = self._hardware
        names = [a.name for a in self._program.accelerators if a.name not in hardware.peripherals]
        return {name: hardware.instruction_uses(name) for name in names}


def _cost_of_span(count: PhaseCount) -> Cost:
    return Cost(
        count.instructions,
        count.cycles,
        causes=count.causes,
        functions=count.functions,
        traffic=count.traffic,
    )


def _sum_phases(stops: Sequence[Stop]) -> list[PhaseCount]:
    """Add up the counts of several executions, by phase."""
    if len(stops) == 1:
        return list(stops[0].phases)
    return [add_counts(row) for row in zip(*(stop.phases for stop in stops), strict=True)]


def _offload(jobs: Sequence[JobRecord], phase: int, cycles: int) -> Offload | None:
    """Split a layer's cycles by the jobs that were started in it."""
    own = sorted((job for job in jobs if job.phase == phase), key=lambda job: job.start)
    return Offload.of(own, cycles) if own else None
