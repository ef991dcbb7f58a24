"""``covp run``: a model on a platform, once, checked and reported."""

from __future__ import annotations

import click
from msgspec.structs import replace

from covp.base.request import BuildOptions, RunOptions
from covp.building.schedules import schedules_of
from covp.chip.platform_file import load_platform
from covp.cli import data as samples_and_labels
from covp.cli import options, timeline_files
from covp.cli import wave as waveform
from covp.cli.cost_reports import print_causes, print_explanation, print_schedules, print_traffic
from covp.cli.groups import GroupedCommand, option
from covp.cli.output import print_json, progress, warn
from covp.cli.run_report import print_report
from covp.cli.verdict import reproduction
from covp.evaluation import Evaluation, Sample, Wanted, build, rejected_layers
from covp.evaluation import run as evaluate
from covp.evaluation.data.accuracy import first_inputs
from covp.evaluation.data.files import read_array
from covp.evaluation.documents import RefusalRecord, Run


@click.command(cls=GroupedCommand)
@options.model
@options.platform_or_default
@options.accelerators
@options.build_options()
@options.run_options()
@options.inputs
@samples_and_labels.options
@option(
    "--profile",
    is_flag=True,
    heading="Report",
    help="Add each layer's schedule and cost; devices that cannot count by layer run them singly.",
)
@option(
    "--causes",
    is_flag=True,
    heading="Report",
    help="Add a breakdown of each layer's and function's cycles by cause: issue, load-use ...",
)
@option(
    "--traffic",
    is_flag=True,
    heading="Report",
    help="Add the bytes that each layer reads and writes in each memory; simulates more slowly.",
)
@option(
    "--explain",
    is_flag=True,
    heading="Report",
    help="For each layer where it runs, the alternatives with their cycles, and why not there.",
)
@option(
    "--verbose",
    is_flag=True,
    heading="Report",
    help="Add where the figures of energy and area come from.",
)
@waveform.file
@waveform.cycles
@waveform.layer
@timeline_files.trace
@timeline_files.vcd
@options.as_json
def run(
    model: str,
    platform: str | None,
    accelerators: tuple[str, ...],
    build_options: BuildOptions,
    run_options: RunOptions,
    inputs: tuple[str, ...],
    data: samples_and_labels.SampleOptions | None,
    profile: bool,
    causes: bool,
    traffic: bool,
    explain: bool,
    verbose: bool,
    wave: str | None,
    wave_cycles: str | None,
    wave_layer: int | None,
    trace: str | None,
    vcd: str | None,
    as_json: bool,
) -> int:
    """Compile MODEL (a path or a zoo name), run it once, check it against the reference."""
    values = [read_array(path) for path in inputs]
    recorded = waveform.read_wave(wave, wave_cycles, wave_layer)
    timeline_files.demand_places(trace, vcd)
    given, platform = platform, platform or options.DEFAULT_PLATFORM
    board, device, seed = load_platform(platform), run_options.device, run_options.seed
    schedules = schedules_of(board, build_options, device)
    with progress("compiling", None):
        made = build(model, board, accelerators, build_options, schedules=schedules)
    untold = [] if given else [f"no -p: the platform is {platform}; covp platforms has the others"]
    warn([*untold, *made.program.warnings])
    if data is not None and not values:
        values = first_inputs(data.data, made.graph)
    sample = Sample.of(made.graph, values, seed=seed) if values else Sample.random(made.graph, seed)
    wanted = Wanted(causes, traffic, recorded, wave_layer, trace is not None, vcd is not None)
    with progress("compiling, running, comparing", None):
        result = evaluate(made, sample, run_options, by_layer=profile, wanted=wanted)
    (result,) = samples_and_labels.run_data([result], data, model, device)
    warn(line for line in result.warnings if line not in made.program.warnings)
    if as_json:
        print_json(_document_with_reasons(result) if explain else result.record())
    else:
        print_report(result, profile, verbose, reproduction(model, platform, accelerators, seed))
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


def _document_with_reasons(result: Evaluation) -> Run:
    """Return the document of a run with what the partitioner rejected and considered."""
    refusals = [
        RefusalRecord(
            layer=entry.refusal.layer,
            accelerator=entry.refusal.accelerator,
            reason=entry.refusal.reason,
            limits=list(entry.refusal.limits),
            worth_cycles=entry.potential_saving,
        )
        for entry in rejected_layers(result)
    ]
    considered = list(result.program.alternatives)
    return replace(result.record(), refusals=refusals, alternatives=considered)
