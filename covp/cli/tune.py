"""``covp tune``: search kernel schedules, keep the records."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import get_args

import click

from covp.base.request import BuildOptions, Objective, RunOptions
from covp.building.tune.records import Cost, ScheduleTrial, pareto_front, trial_file
from covp.building.tune.search import Strategy
from covp.building.tune.trial import cost_of
from covp.building.tune.tuner import LayerResult, Options, Progress
from covp.building.tune.tuner import tune as search
from covp.chip.platform_file import Platform, load_platform
from covp.cli import options
from covp.cli.groups import GroupedCommand
from covp.cli.output import echo, print_json, print_table, progress
from covp.cli.provenance import model_note
from covp.compilers.toolchain import get_toolchain
from covp.evaluation.further_documents import Tuned, TunedLayer, TunedTrial
from covp.graph.graph import Graph
from covp.graph.models import as_graph
from covp.report.quantities import operator_label
from covp.report.table import Table, numbers, texts


def print_layers(results: list[LayerResult], cost: Cost) -> None:
    """Print the kernel's own choice beside the best schedule found, one row per layer."""
    rows = []
    for result in results:
        default, best = result.default, result.best
        before, after = (spent(trial, cost) if trial else None for trial in (default, best))
        gain = f"{1 - after / before:.1%}" if before and after is not None else None
        tried = f"{result.tried}/{result.space}"
        schedule = best.schedule if best else None
        rows.append(
            [
                str(result.op.index),
                operator_label(result.op.kind, result.op.name),
                before,
                after,
                gain,
                tried,
                schedule,
            ],
        )
    columns = numbers("default", "best", "reduction", "tried", "best schedule")
    print_table(Table("", [*texts("layer", "operator"), *columns], rows))


_OBJECTIVES: tuple[Objective, ...] = ("cycles", "instructions", "balanced", "size")


def print_objectives(results: list[LayerResult], cost: Cost) -> None:
    """Print the objectives side by side, over all layers that have a choice."""
    for objective in _OBJECTIVES:
        chosen = [trial for r in results if (trial := r.best_for(objective)) is not None]
        total = sum(spent(trial, cost) or 0 for trial in chosen)
        flash = sum(trial.flash_bytes for trial in chosen)
        unit = _unit(chosen[0], cost) if chosen else cost
        echo(f"--optimize {objective:12} {total:>12,} {unit} {flash:>10,} B flash")


def print_wrong_outputs(results: list[LayerResult]) -> None:
    """Print schedules that do not match the reference: never used, but a kernel is wrong."""
    for result in results:
        for trial in result.trials:
            if not trial.exact:
                echo(f"OUTPUT DIFFERS: layer {result.op.index}, {trial.schedule}")


def spent(trial: ScheduleTrial, cost: Cost) -> int | None:
    """Return the trial's cost, else another one that its device measures."""
    return next(iter(_costs(trial, cost).values()), None)


def _unit(trial: ScheduleTrial, cost: Cost) -> str:
    return next(iter(_costs(trial, cost)), cost)


def _costs(trial: ScheduleTrial, first: Cost) -> dict[str, int]:
    """Return what is known of a trial by unit, the wanted cost first."""
    costs = {"cycles": trial.cycles, "instructions": trial.instructions, "ns": trial.nanoseconds}
    wanted = "ns" if first == "time" else first
    order = dict.fromkeys([wanted, *costs])
    return {unit: cost for unit in order if (cost := costs[unit]) is not None}


def layer_record(result: LayerResult) -> TunedLayer:
    """Return a layer of the JSON document ``covp.tune/1``."""
    default, best = result.default, result.best
    return TunedLayer(
        index=result.op.index,
        op=result.op.kind,
        default_instructions=default.instructions if default else None,
        best_instructions=best.instructions if best else None,
        default_cycles=default.cycles if default else None,
        best_cycles=best.cycles if best else None,
        schedule=best.schedule if best else None,
        tried=result.tried,
        space=result.space,
        front=[
            TunedTrial(
                schedule=trial.schedule,
                instructions=trial.instructions,
                cycles=trial.cycles,
                nanoseconds=trial.nanoseconds,
                flash_bytes=trial.flash_bytes,
                scratch_bytes=trial.scratch_bytes,
            )
            for trial in pareto_front(result.trials)
        ],
        inexact=[trial.schedule for trial in result.trials if not trial.exact],
    )


@click.command(cls=GroupedCommand)
@options.model
@options.platform
@options.build_options("toolchain", *options.MODEL, "optimize", "max_scratch", "flash_trade")
@options.run_options("device", "seed")
@click.option("--trials", type=click.IntRange(1), help="New trials per layer; default: 64.")
@click.option("--seconds", type=options.Seconds(), help="Time for all layers together.")
@click.option(
    "--search",
    "strategy",
    type=click.Choice(["model", "random", "exhaustive"]),
    default="model",
    show_default=True,
)
@click.option(
    "--cost",
    type=click.Choice(get_args(Cost)),
    help="Default: that of --optimize; another one where the device does not know it.",
)
@options.jobs
@options.as_json
def tune(
    model: str,
    platform: str,
    build_options: BuildOptions,
    run_options: RunOptions,
    trials: int | None,
    seconds: float | None,
    strategy: Strategy,
    cost: Cost | None,
    jobs: int | None,
    as_json: bool,
) -> int:
    """Search schedules for each layer of MODEL; `covp run` and `compare` use what is found.

    Every candidate must match the reference. Trials are stored as they finish: an interrupted
    search continues where it stopped.
    """
    graph, board = as_graph(model, build_options), load_platform(platform)
    wanted = Options(
        trials=None if strategy == "exhaustive" and trials is None else trials or 64,
        seconds=seconds,
        strategy=strategy,
        build=build_options,
        cost=cost or cost_of(build_options.optimize),
        jobs=jobs or os.cpu_count() or 1,
        seed=run_options.seed,
        device=run_options.device,
    )
    toolchain = build_options.toolchain
    found = _search(graph, board, toolchain, wanted)
    records = trial_file(board.core, get_toolchain(toolchain, board.core).version)
    if as_json:
        print_json(
            Tuned(
                model=model,
                model_source=graph.source,
                platform=board.name,
                records=str(records),
                flash_trade=build_options.flash_trade,
                layers=[layer_record(result) for result in found.layers],
            )
        )
    else:
        note = model_note(graph.source)
        echo(f"{graph.name} on {board.name}" + (f"  {note}" if note else ""))
        print_layers(found.layers, wanted.cost)
        print_objectives(found.layers, wanted.cost)
        echo(f"cycles pays at most {build_options.flash_trade:,} B of flash per thousand saved")
        print_wrong_outputs(found.layers)
        echo(f"{found}; records: {records}")
    return 0


@dataclass
class _Found:
    """The outcome of a search.

    Attributes:
        trials: new ones.
        seconds: host time.
    """

    layers: list[LayerResult]
    trials: int
    seconds: float

    def __str__(self) -> str:
        rate = f", {self.trials / self.seconds:.0f} per second" if self.trials else ""
        return f"{self.trials} new trials in {self.seconds:.0f} s{rate}"


def _search(graph: Graph, board: Platform, toolchain: str, wanted: Options) -> _Found:
    """Search, with a progress bar on a terminal."""
    trials, start = 0, time.monotonic()
    with progress(f"tuning {graph.name}", None) as advance:

        def report(p: Progress) -> None:
            nonlocal trials
            trials += 1
            best = f" best {spent(p.best, wanted.cost):,}" if p.best else ""
            advance(f"{p.layer} {p.tried}/{p.planned}{best}", p.total)

        layers = search(graph, board, toolchain, wanted, report)
    return _Found(layers, trials, time.monotonic() - start)
