"""``covp check``: results against a baseline and budgets, for continuous integration."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from covp.cli import options, timeline_files
from covp.cli.junit import TestCase, junit, write_junit
from covp.cli.output import echo, print_json
from covp.errors import UsageError
from covp.evaluation.documents import Checked, Run
from covp.evaluation.regression import (
    FIGURES,
    RunVerdict,
    check_results,
    is_other,
    key_of,
    read_results,
    shown,
)
from covp.report.table import Table, Value, escape_markdown, figure_column, texts


@click.command()
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Earlier results; what is worse than there fails the check.",
)
@click.option(
    "--threshold",
    type=float,
    default=1.0,
    show_default=True,
    metavar="PERCENT",
    help="Allowed regression of instructions, cycles, flash, RAM or offload.",
)
@click.option(
    "--max-instructions", type=click.IntRange(0), metavar="N", help="Most instructions of each run."
)
@click.option("--max-ms", type=float, metavar="MS", help="Most time of each run.")
@click.option(
    "--max-flash", type=options.size, metavar="SIZE", help="Most flash of each run, such as 512K."
)
@click.option(
    "--max-ram", type=options.size, metavar="SIZE", help="Most RAM of each run, such as 64K."
)
@junit
@options.as_json
def check(
    results: tuple[Path, ...],
    baseline: Path | None,
    threshold: float,
    max_instructions: int | None,
    max_ms: float | None,
    max_flash: int | None,
    max_ram: int | None,
    junit: Path | None,
    as_json: bool,
) -> int:
    """Check RESULTS (files of `covp run --json`, `covp compare --json`, or lists of these).

    Prints a summary in Markdown. Exit status 1 when a figure is worse than the baseline's by more
    than the threshold, over a budget, or missing, or when outputs differ from the reference's.
    """
    limits = {
        "instructions": max_instructions,
        "ms": max_ms,
        "flash": max_flash,
        "ram": max_ram,
    }
    timeline_files.demand_places(junit)
    budgets = {name: float(most) for name, most in limits.items() if most is not None}
    _demand_sense(threshold, max_ms)
    if baseline is None and not budgets:
        raise UsageError("nothing to check against: name a --baseline or a --max-... budget")
    found = check_results(
        _read(results),
        [] if baseline is None else read_results(baseline),
        threshold=threshold / 100,
        budgets=budgets,
    )
    passed = not any(verdict.problems for verdict in found)
    if junit is not None:
        write_junit(junit, "covp check", [_case(verdict) for verdict in found])
    if as_json:
        rows = [verdict.record() for verdict in found]
        print_json(Checked(passed=passed, threshold=threshold / 100, rows=rows))
    else:
        echo("\n".join(_markdown(found)))
    return 0 if passed else 1


def _case(verdict: RunVerdict) -> TestCase:
    run = verdict.now or verdict.before
    assert run is not None
    return TestCase(run.title, "; ".join(verdict.problems), "\n".join(verdict.problems))


def _demand_sense(threshold: float, max_ms: float | None) -> None:
    for name, value in (("--threshold", threshold), ("--max-ms", max_ms)):
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise UsageError(f"{name} {value}: must be a number of at least 0")


def _read(paths: Sequence[Path]) -> list[Run]:
    found: dict[object, Run] = {}
    for path in paths:
        for run in read_results(path):
            if is_other(found.setdefault(key_of(run), run), run):
                raise UsageError(f"another file has another result of {run.title}", where=path)
    if not found:
        raise UsageError(f"{' '.join(map(str, paths))}: no model ran there")
    return list(found.values())


def _markdown(found: Sequence[RunVerdict]) -> Iterator[str]:
    failed = sum(bool(verdict.problems) for verdict in found)
    yield f"## covp check: {f'{failed} of {len(found)} failed' if failed else 'passed'}"
    yield ""
    columns = [*texts("run"), *map(figure_column, FIGURES.values()), *texts("")]
    yield Table("", columns, [_row(verdict) for verdict in found]).markdown()
    for verdict in found:
        run = verdict.now or verdict.before
        assert run is not None
        yield from (
            f"- **{escape_markdown(run.title)}**: {problem}" for problem in verdict.problems
        )
    yield from sorted({note for verdict in found for note in _compilers(verdict)})


def _row(verdict: RunVerdict) -> list[Value]:
    run = verdict.now or verdict.before
    assert run is not None
    cells = [_cell(name, *verdict.figure(name)) for name in FIGURES]
    return [run.title, *cells, verdict.word.upper() if verdict.problems else verdict.word]


def _compilers(verdict: RunVerdict) -> Iterator[str]:
    if verdict.now and verdict.before and verdict.now.toolchain != verdict.before.toolchain:
        yield (
            f"- the baseline is of {escape_markdown(verdict.before.toolchain)}, the results are of "
            f"{escape_markdown(verdict.now.toolchain)}: figures differ between compilers"
        )


def _cell(name: str, before: float | None, now: float | None) -> str:
    text = shown(name, now)
    if before is None or now is None or before == now:
        return text
    if FIGURES[name].better == "more":
        return f"{text} ({100 * (now - before):+.1f} points)"
    return f"{text} ({(now - before) / before:+.1%})" if before else f"{text} (from 0)"
