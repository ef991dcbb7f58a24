"""``covp run``: a model on a platform, once, checked and reported."""

from __future__ import annotations

from dataclasses import asdict

import click

from covp.cli import options
from covp.cli.output import print_json, print_table
from covp.evaluation import Evaluation, evaluate, missed, read_input
from covp.tune.records import Objective


@click.command()
@click.argument("model")
@options.platform
@options.accelerators
@options.device
@options.toolchain
@options.operators
@click.option("--input", "inputs", multiple=True, metavar="FILE.npy", help="One for each input.")
@options.seed
@click.option(
    "--profile",
    is_flag=True,
    help="Add each layer's schedule and cost; devices that cannot count by layer run them singly.",
)
@click.option(
    "--explain",
    is_flag=True,
    help="For each layer where it runs, and what every other accelerator says against it.",
)
@click.option(
    "--require-offload",
    multiple=True,
    metavar="OP",
    help="Fail when a layer of this kind (such as CONV_2D) runs on the core.",
)
@options.optimize
@options.max_scratch
@options.tuned
@options.as_json
def run(
    model: str,
    platform: str,
    accelerators: tuple[str, ...],
    device: str,
    toolchain: str,
    inputs: tuple[str, ...],
    seed: int,
    profile: bool,
    explain: bool,
    require_offload: tuple[str, ...],
    optimize: Objective,
    max_scratch: int | None,
    tuned: bool,
    as_json: bool,
) -> int:
    """Compile MODEL (a path or a zoo name), run it once, check it against the reference."""
    result = evaluate(
        model,
        platform,
        accelerators,
        device=device,
        toolchain=toolchain,
        inputs=[read_input(path) for path in inputs] or None,
        seed=seed,
        optimize=optimize,
        tuned=tuned,
        max_scratch=max_scratch,
        by_layer=profile and device != "virtual",
        require_offload=require_offload,
    )
    for warning in result.program.warnings:
        click.echo(f"warning: {warning}", err=True)
    if as_json:
        document = result.record()
        if explain:
            document["refusals"] = [
                {
                    "layer": entry.refusal.layer,
                    "accelerator": entry.refusal.accelerator,
                    "reason": entry.refusal.reason,
                    "limits": [asdict(limit) for limit in entry.refusal.limits],
                    "worth_cycles": entry.worth,
                }
                for entry in missed(result)
            ]
        print_json(document)
    else:
        _report(result, profile)
        if profile:
            _report_offload(result)
        if explain:
            _explain(result)
    return 0 if result.matches_reference else 1


def _report(result: Evaluation, profile: bool) -> None:
    source = "  SYNTHETIC stand-in: random weights" if result.source == "synthetic" else ""
    where = "" if result.device == "virtual" else f" ({result.device})"
    click.echo(f"{result.model} on {result.platform.name}{where}, {result.toolchain}{source}")
    estimated = result.device == "virtual"
    cycles = "cycles (est.)" if estimated else "cycles (measured)"
    columns = ["layer", "operator", "on", "MACs", "instructions", cycles]
    costs = [(entry.instructions, entry.cycles) for entry in result.profile.layers]
    costs = costs or [(None, None)] * len(result.program.layers)
    rows: list[list[object]] = [
        [f"{layer.index}", layer.op, layer.target, layer.macs, *cost]
        for layer, cost in zip(result.program.layers, costs, strict=True)
    ]
    between = result.profile.between
    if between.instructions is not None:
        rows.append(["", "between layers", "", None, between.instructions, between.cycles])
    total = sum(layer.macs for layer in result.program.layers)
    rows.append(["", "total", "", total, result.profile.instructions, result.profile.cycles])
    if profile:
        columns += ["per MAC", "schedule"]
        for row, layer, (spent, _) in zip(rows, result.program.layers, costs, strict=False):
            per_mac = f"{spent / layer.macs:.2f}" if layer.macs and spent is not None else None
            row += [per_mac, layer.schedule]
    print_table(columns, [row + [""] * (len(columns) - len(row)) for row in rows], left=3)
    memory = result.memory
    click.echo(
        f"flash {memory.flash_bytes:,} B, RAM {memory.ram_bytes:,} B "
        f"(arena {memory.arena_bytes:,}, stack {memory.stack_bytes:,})"
    )
    if result.profile.seconds is not None:
        word = "estimated" if estimated else "measured"
        clock = f" at {result.platform.clock_hz / 1e6:g} MHz" if result.profile.cycles else ""
        click.echo(f"{word} {result.profile.seconds * 1e3:,.2f} ms{clock}")
    for name, jobs in result.profile.jobs.items():
        own = [e.offload for e in result.profile.layers if e.offload and e.layer.target == name]
        busy = sum(o.startup + max(o.compute, o.memory) for o in own)
        text = f"jobs and was busy for about {busy:,} cycles" if own else "instructions"
        click.echo(f"{name} received {jobs:,} {text}")
    transfers = result.profile.transfers
    click.echo(
        f"{'simulated' if estimated else 'run'} in {result.simulation_seconds * 1e3:,.0f} ms "
        f"with {transfers.round_trips} round trips to the device"
    )
    if result.matches_reference:
        click.echo("outputs match the reference")
    else:
        elements = sum(output.size for output in result.outputs)
        click.echo(f"OUTPUTS DIFFER from the reference: {result.mismatches} of {elements} elements")


def _report_offload(result: Evaluation) -> None:
    """Where the cycles of the offloaded layers go."""
    rows = [
        [
            str(entry.layer.index),
            entry.layer.op,
            entry.layer.target,
            entry.offload.jobs,
            entry.offload.setup,
            entry.offload.compute,
            entry.offload.memory,
            entry.offload.waiting,
            entry.offload.rest,
            entry.cycles,
        ]
        for entry in result.profile.layers
        if entry.offload is not None
    ]
    if not rows:
        return
    columns = ["layer", "operator", "on", "jobs", "set-up", "compute", "memory", "waiting"]
    title = "offloaded layers in estimated cycles: the driver's set-up, the unit's compute and "
    title += "memory (they overlap), the core's waiting, what stays on the core"
    print_table([*columns, "core", "total"], rows, left=3, title=title)


def _explain(result: Evaluation) -> None:
    refused: dict[str, list[str]] = {}
    total = result.profile.cycles
    for entry in missed(result):
        refusal, worth = entry.refusal, ""
        if entry.worth and total:
            worth = f" (taking it would save about {entry.worth:,} of {total:,} cycles)"
        text = f"{refusal.accelerator}: {refusal.reason}{worth}"
        refused.setdefault(refusal.layer, []).append(text)
    click.echo("\nwhere each layer runs, and why not elsewhere")
    for layer in result.program.layers:
        click.echo(f"  {layer.name}: {layer.target}")
        for reason in refused.get(layer.name, []):
            click.echo(f"      not {reason}")
