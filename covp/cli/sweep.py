"""``covp sweep``: many designs, evaluated by workers, kept in a folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from covp.base.dependencies import load_extra
from covp.cli import options
from covp.cli.groups import GroupedCommand
from covp.cli.output import echo, print_json, print_table
from covp.errors import UsageError
from covp.exploration.sweep.api import STORE
from covp.exploration.sweep.api import sweep as run_sweep
from covp.exploration.sweep.constraints import is_feasible
from covp.exploration.sweep.export import record
from covp.exploration.sweep.points import Row
from covp.exploration.sweep.result import SweepResult
from covp.exploration.sweep.spec import schema as file_schema
from covp.report.memory_bound import memory_bound
from covp.report.table import Table, Value, numbers, texts

if TYPE_CHECKING:
    from covp.exploration.sweep.status import SweepProgress


_MOST = 40
"""Rows of the table."""
_REASONS = 5
_TEXTS = ("model", "platform", "accelerators", "varied")


def print_result(result: SweepResult) -> None:
    """Print all rows that have figures if they are few; else those of the front."""
    good = [row for row in result.rows if row.is_ok]
    rows, title = good, ""
    if len(good) > _MOST:
        rows = _different(result)
        what = ", ".join(result.objectives)
        title = f"The front of {what} among {len(good):,} designs, of equal ones the first:"
    unknown = [name for name in result.objectives if all(getattr(r, name) is None for r in good)]
    if rows:
        _print_rows(rows[:_MOST], title)
    elif good and len(unknown) == len(result.objectives):
        echo(f"no front: no design has {', '.join(unknown)}; leave it out of `objectives`")
    elif good:
        echo(f"no front: {_why_empty(result)}")
    if len(rows) > _MOST:
        echo(f"and {len(rows) - _MOST:,} more on the front")
    for line in memory_bound([record(row, ()) for row in good]):
        echo(line)
    if rows and unknown:
        echo(f"no design has {', '.join(unknown)}: it decides nothing")
    _print_counts(result)


def _why_empty(result: SweepResult) -> str:
    """Return why the front is empty although designs have figures."""
    limits, rows = result.spec.limits, [row for row in result.rows if row.is_ok]
    if result.feasible:
        return f"no design has all of {', '.join(result.objectives)}"
    nearest = min(rows, key=lambda row: max(limit.excess(row) for limit in limits))
    broken = [
        f"{limit.figure} of {getattr(nearest, limit.figure):,}"
        for limit in limits
        if limit.holds(nearest) is False
    ]
    return f"every design breaks a constraint; the nearest one has {' and '.join(broken)}"


def _unknown(result: SweepResult) -> str:
    """Return the figures with a limit that designs lack which break none."""
    names = [limit.figure for limit in result.spec.limits]
    rows = result.feasible
    return ", ".join(n for n in dict.fromkeys(names) if any(getattr(r, n) is None for r in rows))


def _different(result: SweepResult) -> list[Row]:
    """Return the front without rows that have the same objectives as one before."""
    figures = {
        (row.model, *(getattr(row, name) for name in result.objectives)): row
        for row in reversed(result.front)
    }
    return list(reversed(figures.values()))


def _print_rows(rows: list[Row], title: str) -> None:
    figures = numbers(
        "cycles (est.)", "ms (est.)", "energy (est.)", "area (est.)", "flash", "RAM", "outputs"
    )
    cells = [_cells(row) for row in rows]
    # what is the same of all stands above the table
    same = [len({row[i] for row in cells}) == 1 and len(cells) > 1 for i in range(len(_TEXTS))]
    places = [i for i in range(len(cells[0])) if i >= len(_TEXTS) or not same[i]]
    common = ", ".join(str(cells[0][i]) for i in range(len(_TEXTS)) if same[i])
    columns = [*texts(*_TEXTS), *figures]
    table = Table(
        f"{title} {common}:".strip() if common else title,
        [columns[i] for i in places],
        [[row[i] for i in places] for row in cells],
        drop=("outputs", "RAM", "flash", "area (est.)", "energy (est.)", "ms (est.)"),
    )
    print_table(table)


def _cells(row: Row) -> tuple[Value, ...]:
    model = f"{row.model} (SYNTHETIC)" if row.model_source == "synthetic" else row.model
    varied = ", ".join(f"{name}={value}" for name, value in row.vary.items())
    outputs = {True: "bit-exact", False: "WRONG", None: None}[row.matches_reference]
    return (
        model, row.platform, " + ".join(row.accelerators) or "-", varied, row.cycles,
        _scale(row.seconds, 1e3, ""), _scale(row.energy_j, 1e6, " uJ"),
        _scale(row.area_um2, 1e-6, " mm2"), row.flash_bytes, row.ram_bytes, outputs,
    )  # fmt: skip


def _scale(value: float | None, factor: float, unit: str) -> str | None:
    return None if value is None else f"{value * factor:.4g}{unit}"


def _print_counts(result: SweepResult) -> None:
    """Print how many designs there are, which constraints they keep, and why others failed."""
    limits = result.spec.limits
    good = [row for row in result.rows if row.is_ok]
    echo(f"{len(good):,} designs with figures, {len(result.failed):,} failed")
    if limits:
        kept = [is_feasible(row, limits) for row in good]
        echo(f"{kept.count(True):,} keep all constraints: {', '.join(result.spec.constraints)}")
        if None in kept:
            echo(f"{kept.count(None):,} break none, but {_unknown(result)} is not known of them")
    unchecked = {row.cycles_model for row in good if row.cycles_model and row.cycles_error is None}
    if unchecked:
        echo(f"timing models without a known error: {', '.join(sorted(unchecked))}")
    reasons = list(dict.fromkeys(str(row.reason) for row in result.failed))
    for reason in reasons[:_REASONS]:
        count = sum(row.reason == reason for row in result.failed)
        echo(f"failed{f' ({count:,} designs)' if count > 1 else ''}: {reason}")
    if len(reasons) > _REASONS:
        echo(f"and {len(reasons) - _REASONS:,} more reasons: see them with --csv or --json")


_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(cls=GroupedCommand)
@click.argument("spec", metavar="SWEEP.yaml", required=False)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder for the rows (required); a sweep already in it is resumed.",
)
@click.option("--jobs", type=click.IntRange(1), help="Processes; default: one per CPU core.")
@click.option(
    "--scheduler", metavar="tcp://HOST:PORT", help="Dask cluster that does the work instead."
)
@click.option(
    "--store",
    metavar="URL",
    help="Keep the rows in this database (postgresql://...), which several machines may write.",
)
@click.option("--retry-failed", is_flag=True, help="Evaluate failed designs again.")
@click.option("--status", is_flag=True, help="Print the progress of the sweep in DIR and exit.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of the file, for editors.")
@click.option("--csv", type=_FILE, metavar="FILE", help="Write all rows there as CSV.")
@click.option("--parquet", type=_FILE, metavar="FILE", help="Write all rows there as Parquet.")
@options.as_json
def sweep(
    spec: str | None,
    output: Path | None,
    jobs: int | None,
    scheduler: str | None,
    store: str | None,
    retry_failed: bool,
    status: bool,
    schema: bool,
    csv: Path | None,
    parquet: Path | None,
    as_json: bool,
) -> int:
    """Evaluate the designs of SWEEP.yaml: models x platforms x accelerators x parameters.

    Rows are kept as they come. A sweep that was ended goes on where it is when it is started again
    with the same DIR; a design that fails is a row with the reason.
    """
    if schema:
        print_json(file_schema())
        return 0
    if spec is not None and not Path(spec).is_file():
        raise UsageError(f"{spec}: no such file; name the file of a sweep")
    if output is None and not (status and store):
        raise UsageError("name a folder for the rows: -o DIR")
    where = store or str(output / STORE if output else "")
    if status:
        return _print_status(where, as_json)
    if spec is None or output is None:
        raise UsageError("name the file of a sweep: covp sweep SWEEP.yaml -o DIR")
    for file in filter(None, (csv, parquet)):
        if not file.absolute().parent.is_dir():
            raise UsageError(f"cannot be written: {file.parent} is not a folder", where=file)
    if parquet:
        load_extra("pyarrow", "sweep")
    with _progress() as tell:
        result = run_sweep(
            spec,
            output,
            store=store,
            scheduler=scheduler,
            jobs=jobs,
            retry_failed=retry_failed,
            tell=tell,
        )
    if csv:
        result.to_csv(csv)
    if parquet:
        result.to_parquet(parquet)
    if as_json:
        print_json(result.record())
    else:
        print_result(result)
    return 1 if result.wrong or len(result.failed) == len(result.rows) else 0


def _print_status(where: str, as_json: bool) -> int:
    load_extra("sqlalchemy", "sweep")
    from covp.exploration.sweep.status import read_status

    status = read_status(where)
    if as_json:
        print_json(status.record())
    else:
        echo(str(status))
    return 0


@contextmanager
def _progress() -> Iterator[Any]:
    """Yield the callback for progress: a bar with rate and time left, nothing in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = BarColumn(), TextColumn("{task.description}")
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def tell(now: SweepProgress) -> None:
            finished = now.done + now.failed
            bar.update(task, total=finished + now.left, completed=finished, description=str(now))

        yield tell
