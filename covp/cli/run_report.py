"""The report of ``covp run``: layers, memory, time and accelerators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import isclose

from covp.base.plural import first_of, pluralize
from covp.cli.cost_reports import area_lines, energy_lines, overlap_lines
from covp.cli.data import data_lines
from covp.cli.output import echo, print_table
from covp.cli.provenance import cycles_column, model_note, run_time
from covp.cli.verdict import verdict_lines
from covp.codegen.program import ProgramLayer
from covp.evaluation import Evaluation
from covp.evaluation.advice import MOST
from covp.graph.ops import macs
from covp.report.quantities import operator_label
from covp.report.table import Table, Value, numbers, texts
from covp.runtime.devices import device_note

Row = list[Value]
_Costs = tuple[int | None, int | None]
"""Instructions and cycles."""
_LayerCosts = tuple[ProgramLayer, _Costs]


def print_report(result: Evaluation, profile: bool, verbose: bool, again: str) -> None:
    """Print everything that is printed without ``--explain``.

    Args:
        result: of the run.
        profile: adds columns and a table.
        verbose: adds what the figures of energy and area are made of.
        again: the command that shows a difference again.
    """
    _print_headline(result)
    _print_layers(result, profile)
    memory = result.memory
    states = f", of which states {memory.state_bytes:,}" if result.program.states else ""
    layer = result.fullest_layer
    fullest = f", fullest in layer {layer.index} {layer.op}" if layer else ""
    echo(
        f"flash {memory.flash_bytes:,} B, RAM {memory.ram_bytes:,} B "
        f"(arena {memory.arena_bytes:,}{fullest}{states}, stack {memory.stack_bytes:,})"
    )
    if time := run_time(result.profile, result.platform.clock_hz):
        echo(time)
    costs = (*energy_lines(result, verbose), *area_lines(result, verbose))
    for line in (*overlap_lines(result), *costs):
        echo(line)
    _print_jobs(result)
    if result.data is not None:
        for line in data_lines(result.data):
            echo(line)
    _print_simulation(result)
    for line in verdict_lines(result, again):
        echo(line)
    for advised in result.advice[:MOST]:
        echo(f"advice: {advised}")
    if profile:
        _print_offload(result)


def _print_headline(result: Evaluation) -> None:
    note = model_note(result.source)
    echo(
        f"{result.model} on {result.platform.name}{device_note(result.device)}, {result.toolchain}"
        + (f"  {note}" if note else "")
    )
    echo(f"{result.build.schedules}")
    if (streaming := result.build.graph.streaming) is not None:
        echo(
            f"streaming: {streaming.hop} of {streaming.window} rows are new in each inference, "
            f"{macs(result.build.graph):,} of {macs(streaming.plain):,} MACs are computed; outputs "
            f"are those of a whole window from inference {streaming.warm_up} on"
        )


def _print_layers(result: Evaluation, profile: bool) -> None:
    cycles = cycles_column(result.profile.sources.cycles)
    columns = [*texts("layer", "operator", "on"), *numbers("MACs", "instructions", cycles)]
    rows = [*_layer_rows(result, profile), *_total_rows(result)]
    if profile:
        columns += numbers("per MAC", "schedule")
    whole = [row + [""] * (len(columns) - len(row)) for row in rows]
    print_table(Table("", columns, whole))
    known = {layer.index for layer in result.program.layers}
    if without := sorted({*range(max(known, default=0))} - known):
        places = ", ".join(map(str, without))
        echo(f"layers without code of their own (a reshape, or part of another one): {places}")


def _layer_rows(result: Evaluation, profile: bool) -> list[Row]:
    costs = [(entry.instructions, entry.cycles) for entry in result.profile.layers]
    costs = costs or [(None, None)] * len(result.program.layers)
    rows = []
    layers = zip(result.program.layers, costs, strict=True)
    for layer, (instructions, cycles) in _with_strips(layers):
        operator = operator_label(layer.op, layer.name)
        place = first_of(layer.units or ("cpu",))
        row: Row = [f"{layer.index}", operator, place, layer.macs, instructions, cycles]
        if profile:
            if layer.macs and instructions is not None:
                row += [f"{instructions / layer.macs:.2f}", layer.schedule]
            else:
                row += [None, layer.schedule]
        rows.append(row)
    return rows


def _with_strips(layers: Iterable[tuple[ProgramLayer, _Costs]]) -> Iterator[_LayerCosts]:
    """Yield layers and costs; the strips of a layer, and copies of its rows, as one."""
    found: dict[str, _LayerCosts] = {}
    counts: Counter[str] = Counter()
    for layer, costs in layers:
        key = layer.strip_of or layer.name
        if key not in found:
            found[key] = layer, costs
            counts[key] = bool(layer.strip_of)
            continue
        known, before = found[key]
        counts[key] += known.op == layer.op
        total = tuple(
            None if a is None or b is None else a + b for a, b in zip(before, costs, strict=True)
        )
        found[key] = replace(known, macs=known.macs + layer.macs), (total[0], total[1])
    for key, (layer, costs) in found.items():
        if counts[key]:
            yield replace(layer, name=f"in {counts[key]} strips"), costs
        else:
            yield layer, costs


def _total_rows(result: Evaluation) -> list[Row]:
    profile, between = result.profile, result.profile.between
    macs = sum(layer.macs for layer in result.program.layers)
    total: Row = ["", "total", "", macs, profile.instructions, profile.cycles]
    if between.instructions is None:
        return [total]
    return [["", "between layers", "", None, between.instructions, between.cycles], total]


def _print_jobs(result: Evaluation) -> None:
    checks = {unit.name: unit.backend.known_timing for unit in result.program.accelerators}
    for name, jobs in result.profile.jobs.items():
        busy = result.profile.busy.get(name)
        check = checks.get(name) or "unchecked"
        text = "instructions"
        if busy is not None:
            text = f"jobs and was busy for about {busy:,} cycles ({check})"
        echo(f"{name} received {jobs:,} {text}{_share(result, name)}")
    kept = [layer for layer in result.program.layers if layer.keeps_constants]
    if kept and result.first_cycles is not None and result.profile.cycles is not None:
        more = result.first_cycles - result.profile.cycles
        echo(
            f"weights of {pluralize(len(kept), 'layer')} stay in {', '.join(_targets(kept))}; the "
            f"first inference, which loads them, takes {more:,} cycles more"
        )


def _targets(layers: Sequence[ProgramLayer]) -> list[str]:
    return list(dict.fromkeys(layer.target for layer in layers))


def _share(result: Evaluation, name: str) -> str:
    """Return the share of the model's MACs that an accelerator computed, and of its layers'."""
    layers = result.profile.layers
    own = [entry for entry in layers if entry.layer.target == name]
    equal = dict.fromkeys(unit for entry in layers for unit in _equal(entry.layer, name))
    if not own and equal:
        return f"; it shares layers with {next(iter(equal))}"
    total = sum(entry.layer.macs for entry in layers)
    planned, done = sum(e.layer.macs for e in own), sum(e.offloaded_macs for e in own)
    if not total or not planned:
        return ""
    short = "" if isclose(done, planned) else f", of its own layers' {done / planned:.0%}"
    together = f"with {', '.join(equal)} " if equal else ""
    return f"; {together}it did {done / total:.0%} of the model's MACs{short}"


def _equal(layer: ProgramLayer, name: str) -> list[str]:
    """Return the other units that share a layer with one; empty: it has it alone, or not at all."""
    return [unit for unit in layer.units if unit != name] if name in layer.units else []


def _print_simulation(result: Evaluation) -> None:
    source = result.profile.sources.cycles
    is_real = source is None or source.kind == "measured"
    echo(
        f"{'run' if is_real else 'simulated'} in {result.simulation_seconds * 1e3:,.0f} ms "
        f"with {result.profile.transfers.round_trips} round trips to the device"
    )


def _print_offload(result: Evaluation) -> None:
    """Print where the cycles of the offloaded layers go."""
    entries = [(e, e.offload) for e in result.profile.layers if e.offload is not None]
    if not entries:
        return
    gaps = ["gaps"] * any(offload.gaps for _, offload in entries)
    rows = [
        [
            str(entry.layer.index),
            operator_label(entry.layer.op, entry.layer.name),
            entry.layer.target,
            offload.jobs,
            offload.setup,
            offload.compute,
            offload.memory,
            *[offload.gaps] * len(gaps),
            offload.waiting,
            offload.rest,
            entry.cycles,
        ]
        for entry, offload in entries
    ]
    columns = ["jobs", "set-up", "compute", "memory", *gaps, "waiting", "core", "total"]
    title = "offloaded layers in estimated cycles: the driver's set-up, the unit's compute and "
    title += "memory (they overlap), "
    title += "gaps in which one waits for the other, " * bool(gaps)
    title += "the core's waiting, what stays on the core"
    print_table(Table(title, [*texts("layer", "operator", "on"), *numbers(*columns)], rows))
