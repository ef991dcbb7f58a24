"""``covp fits``: models on every platform: where they fit a budget, and what they cost there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import click

from covp.base.request import BuildOptions, RunOptions
from covp.chip.platform_file import load_platform
from covp.cli import options, timeline_files
from covp.cli.cost_reports import in_joules
from covp.cli.groups import GroupedCommand, option
from covp.cli.output import echo, print_json, print_table, progress, warn
from covp.cli.verdict import equality, reproduction
from covp.evaluation.energy import Energy
from covp.evaluation.fits import Limits, Placing, order
from covp.evaluation.fits import fits as tried
from covp.evaluation.further_documents import Fitting
from covp.report.table import Cell, Column, Table, Value, numbers, texts

_COLUMNS = [
    *texts("platform", "fits"),
    *(Column(name, format=",", bar=True) for name in ("time", "flash", "RAM", "energy")),
    *numbers("error of cycles", "bit-exact"),
]


@click.command(cls=GroupedCommand)
@options.models
@option(
    "--budget",
    default="",
    metavar="ms=50,ram=64K",
    heading="Target",
    help="The most of one inference: ms, ram, flash, mj. The rows are sorted by the first of them.",
)
@options.platforms_or_all
@options.accelerators
@options.build_options()
@options.run_options("seed", "check")
@option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.html",
    heading="Report",
    help="The table as a page too.",
)
@options.as_json
def fits(
    models: tuple[str, ...],
    budget: str,
    platforms: tuple[str, ...],
    accelerators: tuple[str, ...],
    build_options: BuildOptions,
    run_options: RunOptions,
    output: Path | None,
    as_json: bool,
) -> int:
    """Try MODELS on every platform: which one fits, how fast it is there, in how much memory.

    The outputs of one inference are compared with the reference; --check layers compares all
    layers, as `covp run` does.
    """
    limits = Limits.read(budget)
    timeline_files.demand_places(output)
    boards = [load_platform(platform) for platform in platforms]
    found: list[Placing] = []
    given: dict[str, str] = {}
    with progress("running", len(models) * len(boards)) as advance:
        for model in models:
            for fit in tried(model, boards, accelerators, limits, build_options, run_options):
                found.append(fit)
                given[fit.trial.model] = model
                advance(f"{fit.trial.model} on {fit.trial.platform.name}")
    found = order(found)
    warn(warning for fit in found if fit.trial.result for warning in fit.trial.result.warnings)
    if output is not None:
        _write_page(output, budget, found)
    if as_json:
        rows = [fit.record() for fit in found]
        print_json(Fitting(budget=dict(limits.limits), rows=rows))
    else:
        paths = {board.name: name for board, name in zip(boards, platforms, strict=True)}
        for name, model in given.items():
            of_one = [fit for fit in found if fit.trial.model == name]
            _report(name, budget, of_one)

            def command(board: str, model: str = model) -> str:
                return reproduction(model, paths[board], accelerators, run_options.seed)

            _print_next(of_one, command)
        if output is not None:
            echo(f"{output}")
    return 0 if all(f.trial.result.matches_reference for f in found if f.trial.result) else 1


def _report(model: str, budget: str, found: Sequence[Placing]) -> None:
    within = f" within {budget}" * bool(budget)
    fitting = sum(fit.fits for fit in found)
    echo(f"{model}: fits {fitting} of {len(found)} platforms{within}")
    print_table(_table("", found))
    if any(fit.is_smaller for fit in found):
        echo("(size): with --optimize size, as the fastest schedules take too much flash")
    for fit in found:
        if fit.trial.result is None:
            echo(f"{fit.trial.platform.name}: {fit.reason}")


def _print_next(found: Sequence[Placing], command: Callable[[str], str]) -> None:
    """Print the command that shows the first that fits."""
    for fit in [fit for fit in found if fit.fits][:1]:
        size = " --optimize size" * fit.is_smaller
        echo(f"more of one: {command(fit.trial.platform.name)}{size}")


def _table(title: str, found: Sequence[Placing]) -> Table:
    rows = [_row(fit) for fit in found]
    return Table(title, _COLUMNS, rows, drop=["bit-exact", "energy", "error of cycles"])


def _row(fit: Placing) -> list[Value | Cell]:
    board, says, result = fit.trial.platform, fit.short, fit.trial.result
    says = f"yes{' (size)' * fit.is_smaller}" if says is None else f"NO: {says}"
    start = [Cell(board.name, board.name, board.description), Cell(says, says, fit.reason or "")]
    if result is None:
        return [*start, *[None] * (len(_COLUMNS) - 2)]
    seconds, energy = result.profile.seconds, result.energy
    joules = energy.joules if isinstance(energy, Energy) else None
    return [
        *start,
        None if seconds is None else Cell(seconds, f"{seconds * 1e3:,.2f} ms"),
        result.memory.flash_bytes,
        result.memory.ram_bytes,
        None if joules is None else Cell(joules, in_joules(joules)),
        _trust(fit),
        equality([result]),
    ]


def _trust(fit: Placing) -> str | None:
    """Return how far the cycles can be off."""
    result = fit.trial.result
    source = result.profile.sources.cycles if result else None
    if source is None:
        return None
    if fit.trial.platform.is_lower_bound:
        return "lower bound"
    return "unchecked" if source.error is None else f"<{source.error:.1%}"


def _write_page(path: Path, budget: str, found: Sequence[Placing]) -> None:
    from covp.report.page import Note, Section, write_page

    sections = []
    for model in dict.fromkeys(fit.trial.model for fit in found):
        note = f"one inference of {model}; budget: {budget or 'none'}; times are estimates"
        table = _table("Platforms", [fit for fit in found if fit.trial.model == model])
        sections.append(Section(model, [Note(note), table]))
    write_page(path, "Where it fits", sections)
