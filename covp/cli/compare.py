"""``covp compare``: the core alone beside core and accelerator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

import click

from covp.base.request import BuildOptions, RunOptions
from covp.chip.platform_file import load_platform
from covp.cli import data as samples_and_labels
from covp.cli import options, timeline_files
from covp.cli.groups import GroupedCommand
from covp.cli.output import echo, print_json, print_table, progress, warn
from covp.cli.platforms import compare_platforms
from covp.cli.verdict import amount, difference_lines, equality, reproduction, source_lines
from covp.errors import UsageError
from covp.evaluation import Comparison, Evaluation, ScheduleSource, Wanted, survey
from covp.evaluation import compare as core_and_accelerators
from covp.evaluation.comparison import share_text
from covp.evaluation.documents import Compare
from covp.report.table import Table, Value, numbers, texts


@click.command(cls=GroupedCommand)
@options.models
@options.platforms
@options.accelerators
@options.build_options()
@options.run_options()
@samples_and_labels.options
@timeline_files.trace
@options.as_json
def compare(
    models: tuple[str, ...],
    platforms: tuple[str, ...],
    accelerators: tuple[str, ...],
    build_options: BuildOptions,
    run_options: RunOptions,
    data: samples_and_labels.SampleOptions | None,
    trace: str | None,
    as_json: bool,
) -> int:
    """Run each of MODELS on the core alone and with the accelerators; one row per model.

    With several platforms, run each model on each of them, with the accelerators if any are
    named: where it fits, what it costs there, and what memory is left.
    """
    timeline_files.demand_places(trace)
    boards = [load_platform(platform) for platform in platforms]
    samples_and_labels.demand_fit(data, models, build_options)
    device = run_options.device
    how: dict[str, Any] = {
        "accelerators": accelerators, "build_options": build_options, "run_options": run_options
    }  # fmt: skip
    if len(boards) > 1:
        if trace is not None:
            raise UsageError("--trace shows runs on one platform: name one with -p")
        tries = partial(survey, platforms=boards, **how)
        return compare_platforms(tries, models, boards, accelerators, data, device, as_json)
    if not accelerators:
        raise UsageError(
            "one platform is compared with accelerators on it: name one with --accel, "
            "or several platforms with -p"
        )
    board, wanted = boards[0], Wanted(timeline=trace is not None)
    try_one = partial(core_and_accelerators, platform=board, wanted=wanted, **how)
    found = [
        _with_data(comparison, data, model, device)
        for model, comparison in zip(models, _compare(models, try_one), strict=True)
    ]
    warn(chain.from_iterable(map(_warnings, found)))
    if trace is not None:
        timeline_files.save_trace(trace, _side_by_side(found))
    if as_json:
        print_json(
            Compare(
                platform=board.name,
                accelerators=list(accelerators),
                rows=[comparison.record() for comparison in found],
            )
        )
    else:
        _report(models, platforms[0], accelerators, found, run_options.seed)
    return 0 if all(comparison.matches_reference for comparison in found) else 1


def _compare(models: Sequence[str], try_one: Callable[..., Comparison]) -> list[Comparison]:
    with progress("running", 2 * len(models)) as advance:
        return [try_one(model, starts=partial(_advance, advance, model)) for model in models]


def _with_data(
    comparison: Comparison,
    data: samples_and_labels.SampleOptions | None,
    model: str,
    device: str,
) -> Comparison:
    runs = [comparison.alone, comparison.accelerated]
    return Comparison(*samples_and_labels.run_data(runs, data, model, device))


def _side_by_side(found: list[Comparison]) -> dict[str, Evaluation]:
    """Return all runs, by the names that they have in a trace."""
    runs = {}
    for number, comparison in enumerate(found):
        model = comparison.alone.model
        again = any(other.alone.model == model for other in found[:number])
        model = f"{model} {number}" if again else model
        runs[f"{model} alone:"] = comparison.alone
        runs[f"{model} accelerated:"] = comparison.accelerated
    return runs


def _warnings(comparison: Comparison) -> list[str]:
    warnings = (*comparison.alone.warnings, *comparison.accelerated.warnings)
    return [f"{comparison.alone.model}: {warning}" for warning in warnings]


def _advance(advance: Callable[[str], None], model: str, how: str) -> None:
    advance(f"{model} {how}")


def _report(
    models: tuple[str, ...],
    platform: str,
    accelerators: tuple[str, ...],
    found: list[Comparison],
    seed: int,
) -> None:
    first = found[0].alone
    source = first.profile.sources.cycles
    names = " + ".join(accelerators)
    echo(f"{first.platform.name} alone and with {names}, {first.toolchain}")
    schedules = (comparison.alone.build.schedules for comparison in found)
    echo(f"{sum(schedules, ScheduleSource())}")
    speedup = "speedup (est. cycles)" if source and source.kind == "estimated" else "speedup"
    columns = [
        *texts("model"),
        *numbers("instructions alone", f"with {names}", "reduction", speedup),
        *numbers("MACs offloaded", "simulation", "bit-exact"),
    ]
    if any(comparison.alone.data for comparison in found):
        columns += numbers("accuracy alone", f"accuracy with {names}")
    rows = [_row(comparison)[: len(columns)] for comparison in found]
    print_table(Table("", columns, rows, drop=("simulation", "MACs offloaded")))
    for comparison in found:
        for line in _data_lines(comparison, names):
            echo(line)
    for line in _verdicts(models, platform, accelerators, found, seed):
        echo(line)
    if source is not None:
        echo(f"cycles: {source}")
        for unit in found[0].accelerated.program.accelerators:
            echo(f"cycles of {unit.name}: {unit.backend.known_timing or 'unchecked'}")
    if any(comparison.alone.source == "synthetic" for comparison in found):
        echo(
            "synthetic: a stand-in of the same topology with random weights; instructions depend "
            "on these, and where official ones are zero a stand-in takes more; "
            "`covp models fetch` gets the official files where there are any"
        )


def _verdicts(
    models: tuple[str, ...],
    platform: str,
    accelerators: tuple[str, ...],
    found: list[Comparison],
    seed: int,
) -> Iterator[str]:
    """Yield how much was compared, and the first difference of each wrong run."""
    runs = [
        (run, reproduction(model, platform, names, seed))
        for model, comparison in zip(models, found, strict=True)
        for run, names in ((comparison.alone, ()), (comparison.accelerated, accelerators))
    ]
    if line := amount([run for run, _ in runs]):
        yield line
    for comparison in found:
        for line in source_lines(comparison.alone):
            yield f"file of {comparison.alone.model}: {line}"
    for run, again in runs:
        if not run.matches_reference:
            for line in difference_lines(run, again):
                yield f"wrong in {run.model}: {line}"


def _row(comparison: Comparison) -> list[Value]:
    alone, accelerated = comparison.alone, comparison.accelerated
    saved, faster = comparison.instructions_saved, comparison.speedup
    return [
        alone.model + (" (synthetic)" if alone.source == "synthetic" else ""),
        alone.profile.instructions,
        accelerated.profile.instructions,
        None if saved is None else f"{saved:.1%}",
        None if faster is None else f"{faster:.1f}x",
        share_text(comparison.mac_coverage),
        f"{alone.simulation_seconds + accelerated.simulation_seconds:.2f} s",
        equality([alone, accelerated]),
        samples_and_labels.accuracy_cell(alone.data),
        samples_and_labels.accuracy_cell(accelerated.data),
    ]


def _data_lines(comparison: Comparison, names: str) -> Iterator[str]:
    """Yield lines on samples; with accelerators only where these computed them."""
    model = comparison.alone.model
    for how, run in (("alone", comparison.alone), (f"with {names}", comparison.accelerated)):
        if run.data is not None and (how == "alone" or run.data.on == "device"):
            for line in samples_and_labels.data_lines(run.data):
                yield f"{model} {how}: {line}"
