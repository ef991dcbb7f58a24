"""`measure_parts`: the cycles of each part of a program's layers, from a run that waits at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from covp.building.list_schedule import PartCost, PartTask, Units
from covp.codegen.program import (
    AcceleratorInstance,
    LayerPart,
    Piece,
    Program,
    ProgramLayer,
)
from covp.errors import UsageError
from covp.graph.random_inputs import random_inputs
from covp.hardware.job_unit import JobRecord, JobUnit
from covp.runtime.measurement import FIRST_LAYER
from covp.runtime.profile import LayerProfile
from covp.runtime.session import Session


@dataclass(frozen=True)
class MeasuredParts:
    """A program whose units are waited for at once.

    Attributes:
        program: what ran.
        cycles: of the inference.
        costs: by layer and part; they add up to ``cycles``.
        jobs: by layer.
    """

    program: Program
    cycles: int
    costs: list[list[PartCost]]
    jobs: list[list[JobRecord]]

    def tasks(self, costs: Sequence[Sequence[PartCost]] | None = None) -> list[PartTask]:
        """Return the tasks of a schedule; ``costs`` replace the measured ones."""
        layers = self.program.layers
        return tasks_of(
            [layer.parts for layer in layers],
            self.queues,
            self.costs if costs is None else costs,
        )

    @property
    def queues(self) -> list[str]:
        """The unit of each layer, or the first of those that are equal to it; "cpu" for the core.

        Equal units take their parts from one queue, whoever of them got a layer.
        """
        first = {name: names[0] for names in self.units.equal.values() for name in names}
        return [first.get(layer.target, layer.target) for layer in self.program.layers]

    @cached_property
    def units(self) -> Units:
        """The units that depend on each other.

        A unit that keeps constants knows only its own layers, so it is equal to none.
        """
        keepers = {layer.target for layer in self.program.layers if layer.keeps_constants}
        groups: list[list[AcceleratorInstance]] = []
        for unit in self.program.accelerators:
            if unit.name in keepers:
                continue
            own = next((g for g in groups if g[0].backend.is_equal(unit.backend)), None)
            if own is None:
                groups.append([unit])
            else:
                own.append(unit)
        slot = self.program.platform.accelerators
        return Units(
            {group[0].name: [unit.name for unit in group] for group in groups},
            slot is not None and slot.shared_port,
        )


def measure_parts(program: Program, toolchain: str) -> MeasuredParts:
    """Run a program once, on random inputs.

    Args:
        program: compiled with parts and without an order of its own.
        toolchain: that compiles its C.

    Raises:
        UsageError: the virtual device has no cycles for this platform.
        CovpError: it does not fit or faults.
    """
    inputs = random_inputs(program.graph.inputs, 0, program.graph.ops)
    with Session(program.platform, toolchain=toolchain) as session:
        module = session.load(program)
        module.run(*inputs)
        profile = module.profile()
        hardware = session.device.abilities.hardware
        found = hardware.peripherals.values() if hardware is not None else ()
        jobs = [job for _, unit in found if isinstance(unit, JobUnit) for job in unit.jobs]
    if profile.cycles is None or not profile.layers:
        raise UsageError(
            f"overlap is planned with cycles, but platform {program.platform.name} has no timing "
            "model for them: leave out --overlap"
        )
    by_layer = [
        [job for job in jobs if job.phase == FIRST_LAYER + number]
        for number in range(len(program.layers))
    ]
    calls = sum(len(part.functions) for layer in program.layers for part in layer.parts)
    own = (profile.between.cycles or 0) / max(calls, 1)
    costs = [
        _costs(entry, records, own) for entry, records in zip(profile.layers, by_layer, strict=True)
    ]
    return MeasuredParts(program, profile.cycles, costs, by_layer)


def _costs(entry: LayerProfile, jobs: Sequence[JobRecord], call: float) -> list[PartCost]:
    """Return the costs of the parts of a layer.

    Args:
        entry: of the layer.
        jobs: that its units were given.
        call: cycles of the run function for each call.
    """
    layer, cycles = entry.layer, entry.cycles or 0
    sizes = part_sizes(layer.parts)
    if layer.parts[0].is_asynchronous and jobs:
        return _of_jobs(jobs, jobs_by_part(layer, len(jobs)), cycles, call)
    each = call * len(layer.parts[0].functions)
    return [PartCost(cycles * size / sum(sizes) + each) for size in sizes]


def _of_jobs(
    jobs: Sequence[JobRecord], counts: Sequence[int], cycles: int, call: float
) -> list[PartCost]:
    """Return the costs of parts that are jobs: only a part's last job leaves the core time."""
    first = jobs[0].start
    found, start, done = [], 0, 0
    for position, count in enumerate(counts):
        done += count
        last = jobs[done - 1]
        following = jobs[done].start - first if position + 1 < len(counts) else cycles
        after = max(0, following - last.end)
        inside = max(0, last.timing.cycles - last.waited)
        time = last.timing
        fixed = time.startup + time.gaps
        found.append(
            PartCost(
                last.start - start + call, time.cycles, inside, after + call, time.memory, fixed
            )
        )
        start = following
    return found


def part_sizes(parts: Sequence[LayerPart]) -> list[int]:
    """Return the bytes that each part writes."""
    return [sum(piece.end - piece.start for piece in part.writes) for part in parts]


def jobs_by_part(layer: ProgramLayer, jobs: int) -> list[int]:
    """Return how many of a ``layer``'s ``jobs`` each part has, all but its last of one size.

    Raises:
        UsageError: no size yields that many jobs.
    """
    sizes, shape = part_sizes(layer.parts), layer.outputs[0].shape
    row = layer.outputs[0].nbytes // (shape[1] if len(shape) > 1 else 1)
    strips = [rows * row for rows in range(1, sizes[0] // row + 1)]
    for size in (*reversed(strips), *(-(-sizes[0] // count) for count in range(1, jobs + 1))):
        counts = [-(-own // size) for own in sizes]
        if sum(counts) == jobs:
            return counts
    if len(sizes) == 1:
        return [jobs]
    raise UsageError(f"{layer.name}: {jobs} jobs in {len(sizes)} bands cannot be distinguished")


def tasks_of(
    parts: Sequence[Sequence[LayerPart]],
    targets: Sequence[str],
    costs: Sequence[Sequence[PartCost]],
) -> list[PartTask]:
    """Return the ``parts`` of layers with what each of them waits for.

    Args:
        parts: of each layer, in an order that can run.
        targets: the name of each layer's accelerator, or of the queue of equal ones; or "cpu".
        costs: of each layer's parts.
    """
    written: dict[str, list[tuple[Piece, int]]] = {}
    found: list[PartTask] = []
    for layer, (own, target) in enumerate(zip(parts, targets, strict=True)):
        for position, part in enumerate(own):
            needs = {
                task
                for piece in part.reads
                for other, task in written.get(piece.tensor, ())
                if piece.meets(other)
            }
            unit = target if part.is_asynchronous else ""
            cost = costs[layer][position]
            found.append(PartTask(layer, position, unit, cost, tuple(sorted(needs))))
        start = len(found) - len(own)
        for position, part in enumerate(own):
            for piece in part.writes:
                written.setdefault(piece.tensor, []).append((piece, start + position))
    return found
