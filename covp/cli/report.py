"""``covp report``: runs and sweeps as one HTML page, as figures and as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from covp.cli.output import echo
from covp.errors import UsageError

if TYPE_CHECKING:
    from covp.evaluation.documents import Run
    from covp.report.page import Section


@click.command()
@click.argument("inputs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.html",
    help="The page: one file that needs no network. Default, without the options below: beside "
    "the first of INPUTS, or in its folder.",
)
@click.option(
    "--label",
    "names",
    multiple=True,
    metavar="NAME",
    help="A name for each run, in their order, such as a commit; once for each.",
)
@click.option(
    "--csv",
    "table",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.csv",
    help="One row per layer, with the columns of Vela, X-CUBE-AI and SCALE-Sim.",
)
@click.option(
    "--model-explorer",
    "nodes",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.json",
    help="Cycles of each node for Google's Model Explorer; beside it share and placement.",
)
@click.option(
    "--figures",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Write each figure as a file.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["png", "svg"]),
    default="png",
    show_default=True,
    help="Format of the figures' files.",
)
def report(
    inputs: tuple[Path, ...],
    output: Path | None,
    names: tuple[str, ...],
    table: Path | None,
    nodes: Path | None,
    folder: Path | None,
    form: str,
) -> int:
    """Show INPUTS as a page and figures: files of `covp run --json` and `covp compare --json`.

    Or the folders of one or more sweeps, the oldest first.
    """
    if not any((output, table, nodes, folder)):
        output = _page_of(inputs[0])
    more: list[Path] = []
    folders = [path.is_dir() for path in inputs]
    if any(folders):
        if not all(folders):
            raise UsageError("INPUTS are files of runs or folders of sweeps, not both")
        if table is not None:
            raise UsageError("--csv takes runs; `covp sweep` writes a sweep's rows with its --csv")
        if nodes is not None:
            raise UsageError("--model-explorer takes a run")
        _write_sweeps(inputs, names, output, folder, form)
    else:
        runs = _runs(inputs, names)
        if table is not None:
            from covp.report.columns import write_csv

            write_csv(table, runs)
        if nodes is not None:
            more = _write_nodes(nodes, runs)
        if output is not None or folder is not None:
            _write_runs(runs, output, folder, form)
    for path in (output, table, *more, folder):
        if path is not None:
            echo(f"{path}")
    return 0


def _page_of(first: Path) -> Path:
    """Return the default path of the page."""
    return first / "report.html" if first.is_dir() else first.with_suffix(".html")


def _runs(files: Sequence[Path], names: Sequence[str]) -> list[tuple[str, Run]]:
    """Return the runs of all files, each with its name."""
    from covp.report.run_labels import labels, read_runs

    found = [(path, run) for path in files for run in read_runs(path)]
    runs = [run for _, run in found]
    return list(zip(labels(runs, [path for path, _ in found], names), runs, strict=True))


def _write_nodes(path: Path, runs: Sequence[tuple[str, Run]]) -> list[Path]:
    from covp.report.model_graph import write_node_data

    if len(runs) > 1:
        raise UsageError(f"--model-explorer takes one run, not {len(runs)}")
    return write_node_data(path, runs[0][1])


def _write_runs(
    runs: Sequence[tuple[str, Run]], output: Path | None, folder: Path | None, form: str
) -> None:
    from covp.report import extra

    extra.altair()  # says how to get it
    from covp.report.run_page import run_sections, write_run_page

    if output is not None:
        write_run_page(output, runs)
    if folder is not None:
        _save(run_sections(runs), folder, form)


def _write_sweeps(
    folders: Sequence[Path],
    names: Sequence[str],
    output: Path | None,
    figures: Path | None,
    form: str,
) -> None:
    from covp.report import extra

    extra.altair()
    from covp.report.sweep_page import read_sweep, sweep_sections, write_sweep_page

    if names and len(names) != len(folders):
        raise UsageError(f"--label: {len(names)} names for {len(folders)} sweeps")
    sweeps = [read_sweep(folder) for folder in folders]
    if names:
        sweeps = [replace(one, label=name) for one, name in zip(sweeps, names, strict=True)]
    if output is not None:
        write_sweep_page(output, sweeps)
    if figures is not None:
        _save(sweep_sections(sweeps), figures, form)


def _save(sections: Sequence[Section], folder: Path, form: str) -> None:
    from covp.report.save import figures_of, save_figures

    save_figures(figures_of(sections), folder, form)
