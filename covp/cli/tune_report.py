"""Output of ``covp tune``: tables of layers and objectives, or JSON."""

from __future__ import annotations

from typing import get_args

from covp.base.request import Objective
from covp.building.tune.records import ScheduleTrial, pareto_front
from covp.building.tune.tuner import LayerResult
from covp.cli.output import echo, print_table
from covp.evaluation.further_documents import TunedLayer, TunedTrial
from covp.report.quantities import operator_label
from covp.report.table import Table, numbers, texts


def print_layers(results: list[LayerResult]) -> None:
    """Print the kernel's own choice beside the best schedule found, one row per layer."""
    rows = []
    for result in results:
        default, best = result.default, result.best
        before, after = (spent(trial) if trial else None for trial in (default, best))
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


def print_objectives(results: list[LayerResult]) -> None:
    """Print the three objectives side by side, over all layers that have a choice."""
    for objective in get_args(Objective):
        chosen = [trial for r in results if (trial := r.best_for(objective)) is not None]
        cost = sum(spent(trial) or 0 for trial in chosen)
        flash = sum(trial.flash_bytes for trial in chosen)
        unit = _unit(chosen[0]) if chosen else "instructions"
        echo(f"--optimize {objective:8} {cost:>12,} {unit} {flash:>10,} B flash")


def print_wrong_outputs(results: list[LayerResult]) -> None:
    """Print schedules that do not match the reference: never used, but a kernel is wrong."""
    for result in results:
        for trial in result.trials:
            if not trial.exact:
                echo(f"OUTPUT DIFFERS: layer {result.op.index}, {trial.schedule}")


def spent(trial: ScheduleTrial) -> int | None:
    """Return the trial's cost in what its device measures: instructions, else cycles, else ns."""
    costs = (trial.instructions, trial.cycles, trial.nanoseconds)
    return next((cost for cost in costs if cost is not None), None)


def _unit(trial: ScheduleTrial) -> str:
    if trial.instructions is not None:
        return "instructions"
    return "cycles" if trial.cycles is not None else "ns"


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
