"""``covp run``: a model on a platform, once, checked and reported."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from covp.chip.platform_file import load_platform
from covp.cli import data as samples_and_labels
from covp.cli import options, timeline_files
from covp.cli import wave as waveform
from covp.cli.causes_report import print_causes
from covp.cli.explain_report import print_explanation
from covp.cli.groups import GroupedCommand
from covp.cli.output import print_json, warn
from covp.cli.overlap_report import print_schedules
from covp.cli.run_report import print_report
from covp.cli.traffic_report import print_traffic
from covp.cli.verdict import reproduction
from covp.evaluation import (
    Evaluation,
    Sample,
    Wanted,
    build,
    rejected_layers,
)
from covp.evaluation import run as evaluate
from covp.evaluation.data.accuracy import first_inputs
from covp.evaluation.data.files import read_array


@click.command(cls=GroupedCommand)
@click.argument("model")
@options.platform
@options.accelerators
@options.allow_slower
@options.overlap
@options.device
@options.toolchain
@options.interface
@options.inputs
@options.seed
@samples_and_labels.options
@options.check
@options.sanitize
@options.ubsan
@click.option(
    "--profile",
    is_flag=True,
    help="Add each layer's schedule and cost; devices that cannot count by layer run them singly.",
)
@click.option(
    "--causes",
    is_flag=True,
    help="Add what the cycles of each layer and function passed with: issue, load-use ...",
)
@click.option(
    "--traffic",
    is_flag=True,
    help="Add the bytes that each layer reads and writes in each memory; simulates more slowly.",
)
@click.option(
    "--explain",
    is_flag=True,
    help="For each layer where it runs, the alternatives with their cycles, and why not there.",
)
@click.option(
    "--require-offload",
    multiple=True,
    metavar="OP",
    help="Fail when a layer of this kind (such as CONV_2D) runs on the core, or its accelerator "
    "does not report all of its work.",
)
@waveform.file
@waveform.cycles
@waveform.layer
@timeline_files.trace
@timeline_files.vcd
@options.schedules
@options.as_json
def run(
    model: str,
    platform: str,
    accelerators: tuple[str, ...],
    allow_slower: bool,
    overlap: bool,
    device: str,
    toolchain: str,
    interface: options.Interface,
    inputs: tuple[str, ...],
    seed: int,
    data: samples_and_labels.SampleOptions | None,
    check: str | None,
    sanitize: bool,
    ubsan: bool,
    profile: bool,
    causes: bool,
    traffic: bool,
    explain: bool,
    require_offload: tuple[str, ...],
    wave: str | None,
    wave_cycles: str | None,
    wave_layer: int | None,
    trace: str | None,
    vcd: str | None,
    schedules: options.ScheduleChoice,
    as_json: bool,
) -> int:
    """Compile MODEL (a path or a zoo name), run it once, check it against the reference."""
    values = [read_array(path) for path in inputs]
    recorded = waveform.read_wave(wave, wave_cycles, wave_layer)
    timeline_files.demand_places(trace, vcd)
    board = load_platform(platform)
    made = build(
        model,
        board,
        accelerators,
        allow_slower=allow_slower,
        overlap=overlap,
        toolchain=toolchain,
        schedules=schedules.recorded(board, toolchain, device),
        require_offload=require_offload,
        **interface,
    )
    warn(made.program.warnings)
    if data is not None and not values:
        values = first_inputs(data.data, made.graph)
    sample = Sample.of(made.graph, values, seed=seed) if values else Sample.random(made.graph, seed)
    result = evaluate(
        made,
        sample,
        device=device,
        by_layer=profile,
        wanted=Wanted(causes, traffic, recorded, wave_layer, trace is not None, vcd is not None),
        check=check,
        sanitize=sanitize,
        ubsan=ubsan,
    )
    (result,) = samples_and_labels.run_data([result], data, model, device)
    warn(line for line in result.warnings if line not in made.program.warnings)
    if as_json:
        print_json(result.record() | (_explanation(result) if explain else {}))
    else:
        print_report(result, profile, reproduction(model, platform, accelerators, seed))
        if explain:
            print_explanation(result)
            print_schedules(result)
        if causes:
            print_causes(result)
        if traffic:
            print_traffic(result)
    if result.recorded is not None:
        waveform.print_wave(result.recorded, wave_layer)
    if trace is not None:
        timeline_files.save_trace(trace, {"": result})
    if vcd is not None:
        timeline_files.save_vcd(vcd, result)
    return 0 if result.matches_reference else 1


def _explanation(result: Evaluation) -> dict[str, Any]:
    alternatives = [asdict(alternative) for alternative in result.program.alternatives]
    return {"refusals": _refusals(result), "alternatives": alternatives}


def _refusals(result: Evaluation) -> list[dict[str, Any]]:
    return [
        {
            "layer": entry.refusal.layer,
            "accelerator": entry.refusal.accelerator,
            "reason": entry.refusal.reason,
            "limits": [asdict(limit) for limit in entry.refusal.limits],
            "worth_cycles": entry.potential_saving,
        }
        for entry in rejected_layers(result)
    ]
