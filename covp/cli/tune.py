"""``covp tune``: search kernel schedules, keep the records."""

from __future__ import annotations

import os
import time
from typing import Any, get_args

import click

from covp.cli import options
from covp.cli.output import print_json, print_table, progress
from covp.cli.provenance import model_note
from covp.models import load_model
from covp.platform_file import load_platform
from covp.toolchain import get_toolchain
from covp.tune.records import Cost, Objective, Trial, pareto_front
from covp.tune.search import Strategy
from covp.tune.tuner import LayerResult, Options, Progress, trial_file
from covp.tune.tuner import tune as search


@click.command()
@click.argument("model")
@options.platform
@options.device
@options.toolchain
@options.operators
@click.option("--trials", type=click.IntRange(1), help="New trials per layer; default: 64.")
@click.option("--seconds", type=click.FloatRange(0), help="Time for all layers together.")
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
    help="Default: instructions; cycles or time where the device counts no instructions.",
)
@options.optimize
@options.max_scratch
@click.option("--jobs", type=click.IntRange(1), help="Processes; default: one per CPU core.")
@options.seed
@options.as_json
def tune(
    model: str,
    platform: str,
    device: str,
    toolchain: str,
    trials: int | None,
    seconds: float | None,
    strategy: Strategy,
    cost: Cost | None,
    optimize: Objective,
    max_scratch: int | None,
    jobs: int | None,
    seed: int,
    as_json: bool,
) -> int:
    """Search schedules for each layer of MODEL; `covp run` and `compare` use what is found.

    Every candidate must match the reference. Trials are stored as they finish: an interrupted
    search continues where it stopped.
    """
    graph, board = load_model(model), load_platform(platform)
    wanted = Options(
        trials=None if strategy == "exhaustive" and trials is None else trials or 64,
        seconds=seconds,
        strategy=strategy,
        objective=optimize,
        cost=cost or "instructions",
        max_scratch=max_scratch,
        jobs=jobs or os.cpu_count() or 1,
        seed=seed,
        device=device,
    )
    tried = 0
    start = time.monotonic()
    with progress(f"tuning {model}", None) as advance:

        def report(p: Progress) -> None:
            nonlocal tried
            tried += 1
            best = f" best {_spent(p.best):,}" if p.best else ""
            advance(f"{p.layer} {p.tried}/{p.planned}{best}", p.total)

        results = search(graph, board, toolchain, wanted, report)
    seconds_taken = time.monotonic() - start
    where = trial_file(board, get_toolchain(toolchain, board.core).version)
    if as_json:
        print_json(
            {
                "schema": "covp.tune/1",
                "model": model,
                "model_source": graph.source,
                "platform": board.name,
                "records": str(where),
                "layers": [_entry(result) for result in results],
            }
        )
    else:
        note = model_note(graph.source)
        click.echo(f"{graph.name} on {board.name}" + (f"  {note}" if note else ""))
        _report(results)
        _print_objectives(results)
        _wrong(results)
        rate = f", {tried / seconds_taken:.0f} a second" if tried else ""
        click.echo(f"{tried} new trials in {seconds_taken:.0f} s{rate}; records: {where}")
    return 0


def _print_objectives(results: list[LayerResult]) -> None:
    """The three objectives side by side, over all layers that have a choice."""
    for objective in get_args(Objective):
        chosen = [trial for r in results if (trial := r.best_for(objective)) is not None]
        spent = sum(_spent(trial) or 0 for trial in chosen)
        flash = sum(trial.flash_bytes for trial in chosen)
        unit = _unit(chosen[0]) if chosen else "instructions"
        click.echo(f"--optimize {objective:8} {spent:>12,} {unit} {flash:>10,} B flash")


def _wrong(results: list[LayerResult]) -> None:
    """Schedules that do not match the reference: they never count, but a kernel is wrong."""
    for result in results:
        for trial in result.trials:
            if not trial.exact:
                click.echo(f"OUTPUT DIFFERS: layer {result.op.index}, {trial.schedule}")


def _unit(trial: Trial) -> str:
    """What the trial's device measures."""
    if trial.instructions is not None:
        return "instructions"
    return "cycles" if trial.cycles is not None else "ns"


def _spent(trial: Trial) -> int | None:
    """In `_unit`s."""
    return next(
        (v for v in (trial.instructions, trial.cycles, trial.nanoseconds) if v is not None), None
    )


def _entry(result: LayerResult) -> dict[str, Any]:
    return {
        "index": result.op.index,
        "op": result.op.kind,
        "default_instructions": result.default.instructions if result.default else None,
        "best_instructions": result.best.instructions if result.best else None,
        "default_cycles": result.default.cycles if result.default else None,
        "best_cycles": result.best.cycles if result.best else None,
        "schedule": result.best.schedule if result.best else None,
        "tried": result.tried,
        "space": result.space,
        "front": [
            {
                "schedule": trial.schedule,
                "instructions": trial.instructions,
                "cycles": trial.cycles,
                "nanoseconds": trial.nanoseconds,
                "flash_bytes": trial.flash_bytes,
                "scratch_bytes": trial.scratch_bytes,
            }
            for trial in pareto_front(result.trials)
        ],
        "inexact": [trial.schedule for trial in result.trials if not trial.exact],
    }


def _report(results: list[LayerResult]) -> None:
    rows = []
    for result in results:
        default, best = result.default, result.best
        before, after = (_spent(trial) if trial else None for trial in (default, best))
        gain = f"{1 - after / before:.1%}" if before and after is not None else None
        rows.append(
            [
                str(result.op.index),
                result.op.kind,
                before,
                after,
                gain,
                f"{result.tried}/{result.space}",
                best.schedule if best else None,
            ]
        )
    columns = ["layer", "operator", "default", "best", "reduction", "tried", "best schedule"]
    print_table(columns, rows, left=2)
