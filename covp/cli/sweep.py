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
from covp.cli.output import echo, print_json
from covp.cli.sweep_report import print_result
from covp.errors import UsageError
from covp.exploration.sweep.api import STORE
from covp.exploration.sweep.api import sweep as run_sweep
from covp.exploration.sweep.spec import schema as file_schema

if TYPE_CHECKING:
    from covp.exploration.sweep.status import SweepProgress

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
        print_json({"schema": "covp.sweep-status/1", **status.record()})
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
