"""`plan_overlap`: the schedule in which core and units work at once that takes the fewest cycles.

A program whose units are waited for at once is run and gives the cycles of every part. Schedules
are simulated with these: of the layers as they are, and of layers in bands. Bands are first
estimated; what looks best is compiled, run and measured, and what was measured counts from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from covp.building.band_search import BandSearch
from covp.building.list_schedule import PartCost, list_schedule
from covp.building.part_costs import MeasuredParts, jobs_by_part, measure_parts
from covp.codegen.overlap import OverlapPlan, shared_units
from covp.codegen.program import Program, ProgramLayer
from covp.errors import CapacityError
from covp.hardware.job_unit import JobRecord
from covp.runtime.session import Session


def kept_costs(measured: MeasuredParts, what: Literal["weights", "all"]) -> list[list[PartCost]]:
    """Return the costs with less traffic: a job's memory time shrinks with its bytes.

    Args:
        measured: the parts and their jobs.
        what: "weights": constants are not fetched again; "all": nor are tensors that the same unit
            wrote, and nothing is stored that only it reads.
    """
    graph, layers = measured.program.lowered, measured.program.layers
    ops = {op.name: op for op in graph.ops} if graph is not None else {}
    constants = {
        name: sum(t.nbytes for t in op.inputs if t is not None and t.constant)
        for name, op in ops.items()
    }
    found = []
    for number, layer in enumerate(layers):
        costs, jobs = measured.costs[number], measured.jobs[number]
        if not jobs or not layer.parts[0].is_asynchronous:
            found.append(costs)
            continue
        own, done = [], 0
        counts = jobs_by_part(layer, len(jobs))
        for part, (cost, count) in enumerate(zip(costs, counts, strict=True)):
            done += count
            bytes_kept = sum(constants.get(name, 0) for name in layer.operators)
            if what == "all":
                bytes_kept += _tensor_bytes(layers, layer, part, jobs[done - 1]) // count
            own.append(_with_less(cost, jobs[done - 1], bytes_kept))
        found.append(own)
    return found


def _tensor_bytes(
    layers: tuple[ProgramLayer, ...], layer: ProgramLayer, part: int, job: JobRecord
) -> int:
    """Return the bytes of a part's tensors that its unit could keep between layers."""
    piece = layer.parts[part]
    written = {p.tensor for other in layers if other.target == layer.target
               for each in other.parts for p in each.writes}  # fmt: skip
    kept = sum(read.end - read.start for read in piece.reads if read.tensor in written)
    names = {write.tensor for write in piece.writes}
    readers = [o for o in layers if any(r.tensor in names for e in o.parts for r in e.reads)]
    if readers and all(reader.target == layer.target for reader in readers):
        kept += job.stored
    return kept


def _with_less(cost: PartCost, job: JobRecord, nbytes: int) -> PartCost:
    moved = max(job.traffic.nbytes, 1)
    memory = job.timing.memory * max(0, moved - nbytes) / moved
    busy = job.timing.startup + max(job.timing.compute, memory) + job.timing.gaps
    return replace(cost, busy=busy, memory=memory)


_ROUNDS = 4
"""Most choices of bands that are compiled and measured."""
_MEASURED, _QUESTION = "measured parts", "evaluation only"
_WORTH = 0.001
"""The share of the cycles that has to be hidden; less is not worth the bytes."""


@dataclass(frozen=True)
class ConsideredSchedule:
    """A schedule that was considered.

    Attributes:
        what: it is.
        cycles: of an inference.
        basis: "measured parts", or "evaluation only": no program is made of it.
    """

    what: str
    cycles: int
    basis: str

    @property
    def can_be_made(self) -> bool:
        """True if a program can be made of it."""
        return self.basis != _QUESTION


@dataclass(frozen=True)
class Overlap:
    """Result of the search for the best overlap, before the program ran.

    Attributes:
        alone: cycles where units are waited for at once.
        promised: of the chosen schedule; ``alone`` where nothing is hidden.
        chosen: which of the alternatives.
        rows: names of layers in bands, with the output rows of a band.
        alternatives: all, the chosen one included.
    """

    alone: int
    promised: int
    chosen: str
    rows: Mapping[str, int] = field(default_factory=dict)
    alternatives: tuple[ConsideredSchedule, ...] = ()

    @property
    def hidden(self) -> int:
        """The cycles in which core and units work at the same time, what bands cost deducted."""
        return self.alone - self.promised


def plan_overlap(
    make: Callable[[OverlapPlan], Program], toolchain: str
) -> tuple[OverlapPlan | None, Overlap]:
    """Return the plan of the best program, and what was considered.

    Args:
        make: compiles the model by a plan.
        toolchain: that compiles the C.

    Returns:
        No plan where core and units cannot work at the same time, or that saves nothing.

    Raises:
        UsageError: the platform has no timing model.
        CovpError: the program does not fit, or faults.
    """
    whole = measure_parts(make(OverlapPlan()), toolchain)
    waits = "units are waited for at once"
    found = [ConsideredSchedule(waits, whole.cycles, _MEASURED)]
    if not any(part.is_asynchronous for layer in whole.program.layers for part in layer.parts):
        return None, Overlap(whole.cycles, whole.cycles, waits, {}, tuple(found))
    tried = _tries(whole, make, toolchain)
    found += [ConsideredSchedule(_what(m, whole), _cycles(m), _MEASURED) for m, _ in tried]
    found += _questions(tried[0][0])
    for measured, rows in tried:
        schedule = list_schedule(measured.tasks(), whole.units)
        plan = OverlapPlan(
            rows, schedule.actions, shared_units(measured.program.layers, schedule.actions)
        )
        if schedule.cycles > whole.cycles * (1 - _WORTH):
            break
        if _fits(make(plan), toolchain):
            chosen = _what(measured, whole)
            promised = round(schedule.cycles)
            return plan, Overlap(whole.cycles, promised, chosen, rows, tuple(found))
    return None, Overlap(whole.cycles, whole.cycles, waits, {}, tuple(found))


def _fits(program: Program, toolchain: str) -> bool:
    """Return whether the program fits the memory: more tensors may be alive at once."""
    with Session(program.platform, toolchain=toolchain) as session:
        try:
            session.load(program)
        except CapacityError:
            return False
    return True


def _tries(
    whole: MeasuredParts, make: Callable[[OverlapPlan], Program], toolchain: str
) -> list[tuple[MeasuredParts, Mapping[str, int]]]:
    """Return programs with their bands, the best first.

    Layers as they are, and bands as long as better ones are expected.
    """
    tried: list[tuple[MeasuredParts, Mapping[str, int]]] = [(whole, {})]
    search = BandSearch(whole)
    starts = [{}, *(search.uniform(count) for count in (2, 4, 8))]
    for _ in range(_ROUNDS):
        rows, expected = search.best(starts)
        known = _cycles(tried[0][0])
        if any(rows == other for _, other in tried) or expected > known * (1 - _WORTH):
            break
        try:
            measured = measure_parts(make(OverlapPlan(rows)), toolchain)
        except CapacityError:
            break
        search.learn(measured, rows)
        tried.append((measured, rows))
        tried.sort(key=lambda each: _cycles(each[0]))
        starts = [dict(own) for _, own in tried[:2]]
    return tried


def _cycles(measured: MeasuredParts) -> int:
    return round(list_schedule(measured.tasks(), measured.units).cycles)


def _what(measured: MeasuredParts, whole: MeasuredParts) -> str:
    if measured is whole:
        return "layers overlap"
    layers = [layer for layer in measured.program.layers if len(layer.parts) > 1]
    counts = sorted(len(layer.parts) for layer in layers)
    bands = f"{counts[0]}" if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"
    return f"{len(layers)} layers in {bands} bands each overlap"


def _questions(measured: MeasuredParts) -> list[ConsideredSchedule]:
    """Return what other hardware would gain for the same parts."""
    tasks = measured.tasks()
    names = dict.fromkeys(task.unit for task in tasks if task.unit)
    units, own = " and ".join(names), measured.units
    doubled = {name: 2 * [*own.equal.get(name, (name,))] for name in names}
    twice = "two" if all(len(double) == 2 for double in doubled.values()) else "twice as many"
    more = replace(own, equal=doubled)
    weights, tensors = (measured.tasks(kept_costs(measured, what)) for what in ("weights", "all"))
    schedules: Sequence[tuple[str, float]] = (
        (f"the same with {twice} of {units}", list_schedule(tasks, more).cycles),
        (f"the same with weights preloaded in {units}", list_schedule(weights, own).cycles),
        (
            f"that, and tensors between its layers kept in {units}",
            list_schedule(tensors, own).cycles,
        ),
    )
    return [ConsideredSchedule(what, round(cycles), _QUESTION) for what, cycles in schedules]
