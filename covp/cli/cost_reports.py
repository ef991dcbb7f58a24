"""Reports of `covp run`: cycles by cause, bytes, energy, area, overlap, and placement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from covp.accelerator.placement import Alternative, join_names
from covp.base.plural import pluralize
from covp.chip.platform_file.model import LOWER_BOUND
from covp.cli.output import echo, print_table
from covp.cli.provenance import cycles_column
from covp.codegen.program import ProgramLayer
from covp.device.phase_count import Causes, FunctionCount, Traffic
from covp.device.timing.peak import LeastCycles
from covp.evaluation import Evaluation, RejectedLayer, rejected_layers
from covp.evaluation.energy import Energy, EnergyPart, estimate_areas
from covp.report.quantities import operator_label
from covp.report.table import Table, Value, numbers, texts
from covp.runtime.profile import LayerProfile, Profile

_HEADINGS = {
    "operand": "load-use",
    "multiply": "multiply, divide",
    "access": "load, store",
    "custom": "custom instructions",
    "fetch": "fetch wait",
    "data": "data wait",
    "cache": "cache miss",
    "waited": "waiting, asleep",
}
_MOST = 20
"""Functions that are printed one by one."""


class _Row(NamedTuple):
    """A layer, or what lies between them."""

    layer: str
    operator: str
    cycles: int | None
    causes: Causes | None
    functions: tuple[FunctionCount, ...]
    least: int | None = None


def print_causes(result: Evaluation) -> None:
    """Print two tables: layers, and the functions that take the most cycles."""
    profile = result.profile
    total, rows = profile.causes or {}, _rows(profile, result.least_cycles)
    causes = [cause for cause, cycles in total.items() if cycles]
    titles = [_HEADINGS.get(cause, cause) for cause in causes]
    cycles = cycles_column(profile.sources.cycles)
    table = Table(
        "cycles by cause",
        [*texts("layer", "operator"), *numbers(*titles, cycles, "at least")],
        [
            [row.layer, row.operator, *_cells(row.causes, causes), row.cycles, row.least]
            for row in rows
        ],
        ["", "total", *_cells(total, causes), profile.cycles, _sum(result.least_cycles)],
    )
    print_table(table)
    _print_functions(rows, causes, [*titles, cycles])


def _sum(bounds: Sequence[LeastCycles | None]) -> int | None:
    """Return the sum of all bounds; None where one is not known."""
    known = [bound.cycles for bound in bounds if bound]
    return sum(known) if len(known) == len(bounds) else None


def _rows(profile: Profile, least: Sequence[LeastCycles | None]) -> list[_Row]:
    layers = [
        _Row(
            f"{entry.index}",
            operator_label(entry.op, entry.name),
            entry.cycles,
            entry.causes,
            entry.functions,
            bound.cycles if bound else None,
        )
        for entry, bound in zip(profile.layers, least, strict=True)
    ]
    between = profile.between
    return [*layers, _Row("", "between layers", between.cycles, between.causes, between.functions)]


def _print_functions(rows: Iterable[_Row], causes: list[str], titles: list[str]) -> None:
    counts = [(row.layer, function) for row in rows for function in row.functions]
    counts.sort(key=lambda count: -count[1].cycles)
    columns = [*texts("layer", "function"), *numbers("instructions", *titles)]
    cells: list[list[Value]] = [
        [layer, one.name or "(none)", one.instructions, *_cells(one.causes, causes), one.cycles]
        for layer, one in counts[:_MOST]
    ]
    print_table(Table("functions, without those that they call", columns, cells))
    if others := counts[_MOST:]:
        cycles = sum(one.cycles for _, one in others)
        echo(f"{len(others)} more functions took {cycles:,} cycles")


def _cells(spent: Causes | None, causes: Iterable[str]) -> list[int | None]:
    return [None if spent is None else spent.get(cause, 0) for cause in causes]


_WAYS = ("read", "written", "fetched")


def print_traffic(result: Evaluation) -> None:
    """Print a row for each layer and master, and their totals."""
    total = result.profile.traffic or {}
    memories = dict.fromkeys(chain.from_iterable(total.values()))
    columns = [
        (memory, way)
        for memory in memories
        for way in _WAYS
        if any(getattr(moved.get(memory), way, 0) for moved in total.values())
    ]
    rows = [
        [layer, operator, master, *(getattr(moved.get(m), way, 0) for m, way in columns)]
        for layer, operator, traffic in _parts(result)
        for master, moved in traffic.items()
    ]
    title = "bytes moved: loads and stores, and instructions that were fetched"
    headings = numbers(*(f"{memory} {way}" for memory, way in columns))
    print_table(Table(title, [*texts("layer", "operator", "by"), *headings], rows))


def _parts(result: Evaluation) -> Iterator[tuple[str, str, Traffic]]:
    """Yield number, operator and traffic of each layer, of the rest, and of the total."""
    profile = result.profile
    for entry in profile.layers:
        yield f"{entry.index}", operator_label(entry.op, entry.name), entry.traffic or {}
    yield "", "between layers", profile.between.traffic or {}
    yield "", "total", profile.traffic or {}


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


def overlap_lines(result: Evaluation) -> Iterator[str]:
    """Yield the line of the report; none without ``--overlap``."""
    found = result.build.overlap
    if found is None:
        return
    if not found.hidden:
        least = min(each.cycles for each in found.alternatives if each.can_be_made)
        yield (
            f"overlap: nothing is gained; of {len(found.alternatives)} schedules the best takes "
            f"{least:,} of {found.alone:,} cycles"
        )
        return
    took = "" if result.profile.cycles is None else f", took {result.profile.cycles:,}"
    shared = any(len(layer.units) > 1 for layer in result.program.layers)
    slot = result.program.platform.accelerators
    one = (
        "units share one memory port"
        if slot is not None and slot.shared_port
        else ("each unit has a memory port of its own")
    )
    ports = f"; {one}" if shared else ""
    yield (
        f"overlap: {found.hidden:,} of {found.alone:,} cycles are hidden, promised "
        f"{found.promised:,}{took} ({found.chosen}{ports})"
    )


def print_schedules(result: Evaluation) -> None:
    """Print every schedule that was considered, with its cycles before the run."""
    found = result.build.overlap
    if found is None:
        return
    echo("\nschedules of core and units (cycles before the run)")
    rows: list[list[Value]] = [[each.what, each.cycles, each.basis] for each in found.alternatives]
    print_table(Table("", [*texts("schedule"), *numbers("cycles", "from")], rows))
    for name, count in found.rows.items():
        echo(f"  {name}: bands of {pluralize(count, 'row')}")


def print_explanation(result: Evaluation) -> None:
    """Print each layer's place, the alternatives with their cycles, and the rejections."""
    rejected: dict[str, list[RejectedLayer]] = {}
    for entry in rejected_layers(result):
        rejected.setdefault(entry.refusal.layer, []).append(entry)
    spent = {entry.layer.name: entry for entry in result.profile.layers}
    echo("\nwhere each layer runs, and why not elsewhere")
    for layer in result.program.layers:
        place = f"{layer.name}: {layer.target}"
        if len(layer.operators) > 1:
            place = f"{join_names(layer.operators)}: {layer.target}"
        echo(f"  {place}{_cycles(layer, spent.get(layer.name))}")
        if layer.schedule and layer.target != "cpu":
            echo(f"      in {layer.schedule}")
        for line in _alternatives(result, layer.operators):
            echo(f"      or {line}")
        for entry in rejected.get(layer.name, []):
            echo(f"      not {_rejection(entry, result.profile.cycles)}")


def _cycles(layer: ProgramLayer, entry: LayerProfile | None) -> str:
    counted = "simulated before" if layer.target == "cpu" else "estimated"
    cost = layer.estimated_cycles
    known = [] if cost is None else [f"{counted} {cost:,} cycles"]
    if entry is not None and entry.cycles is not None:
        known.append(f"took {entry.cycles:,}")
    return f" ({', '.join(known)})" if known else ""


def _alternatives(result: Evaluation, operators: tuple[str, ...]) -> Iterator[str]:
    """Yield the other ways to compute a layer's operators, and others besides."""
    own = set(operators)
    for other in result.program.alternatives:
        if not other.chosen and not own.isdisjoint(other.operators):
            yield f"{_place(other, operators)}: {_about(other)}"


def _place(other: Alternative, operators: tuple[str, ...]) -> str:
    place = "the core" if other.target == "cpu" else other.target
    if other.operators == operators:
        return place
    pattern = f", pattern {other.pattern}" if other.pattern else ""
    return f"{place} for {join_names(other.operators)}{pattern}"


def _about(other: Alternative) -> str:
    if other.cycles is None:
        return "cycles unknown"
    return f"{'' if other.target == 'cpu' else 'about '}{other.cycles:,} cycles"


def _rejection(entry: RejectedLayer, total: int | None) -> str:
    text = f"{entry.refusal.accelerator}: {entry.refusal.reason}"
    if not entry.potential_saving or not total:
        return text
    return f"{text} (accepting it would save about {entry.potential_saving:,} of {total:,} cycles)"
