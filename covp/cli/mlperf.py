"""``covp mlperf``: performance, accuracy and energy in the manner of MLPerf Tiny."""

from __future__ import annotations

import os
import re
from pathlib import Path

import click

from covp.base.request import BuildOptions
from covp.cli import options
from covp.cli.groups import GroupedCommand
from covp.cli.mlperf_report import markdown, print_rows
from covp.cli.output import print_json, progress, warn
from covp.errors import UsageError
from covp.evaluation.further_documents import Mlperf
from covp.firmware.mlperf.sweep import LABEL, sweep

_PLUS = re.compile(r"\s*(?<!\+)\+(?=\s*[A-Za-z_.~/])\s*")
"""Between two accelerators of a set-up; not in c++/unit.py or 1e+6."""


def _setups(
    context: click.Context, option: click.Parameter, given: tuple[str, ...]
) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(_PLUS.split(text.strip())) for text in given)


@click.command(cls=GroupedCommand)
@options.models
@options.platforms
@options.accelerators
@click.option(
    "--setup",
    "setups",
    multiple=True,
    callback=_setups,
    metavar="ACCEL[+ACCEL...]",
    help="Other accelerators to measure as well, in place of those of -a; once for each set-up.",
)
@options.build_options(without=options.MODEL)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Samples for the accuracy: a folder with y_labels.csv, or one with ic01, kws01, vww01, "
    "ad01 as the official runner has it.",
)
@click.option(
    "--reference",
    is_flag=True,
    help="Find the accuracy with the bit-exact reference instead of the emulated core: faster.",
)
@options.jobs
@options.seed
@click.option(
    "--markdown",
    "report",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the table there as well, as Markdown.",
)
@options.as_json
def mlperf(
    models: tuple[str, ...],
    platforms: tuple[str, ...],
    accelerators: tuple[str, ...],
    setups: tuple[tuple[str, ...], ...],
    build_options: BuildOptions,
    data: Path | None,
    reference: bool,
    jobs: int | None,
    seed: int,
    report: Path | None,
    as_json: bool,
) -> int:
    """Measure each of MODELS on each platform, on the core alone and with accelerators.

    Latency, inferences per second, energy and memory; with --data accuracy beside the quality
    target of MLPerf Tiny's closed division. Figures are MLPerf-Tiny-style, emulated, not a
    submission.
    """
    if reference and data is None:
        raise UsageError("--reference finds the accuracy over samples: name them with --data")
    if report is not None and not report.absolute().parent.is_dir():
        raise UsageError(f"{report}: cannot be written: {report.parent} is not a folder")
    with progress("measuring", None) as advance:
        rows = sweep(
            models,
            platforms,
            tuple(dict.fromkeys(((), accelerators, *setups))),
            data=data,
            reference=reference,
            jobs=jobs or os.cpu_count() or 1,
            options=build_options,
            seed=seed,
            advance=advance,
        )
    warn(f"{row.point}: {text}" for row in rows if row.performance for text in
         row.performance.warnings)  # fmt: skip
    if report is not None:
        report.write_text(markdown(rows), encoding="utf-8")
    if as_json:
        print_json(
            Mlperf(
                label=LABEL,
                data=None if data is None else str(data),
                rows=[row.record() for row in rows],
            )
        )
    else:
        print_rows(rows)
    return 0 if all(row.is_right for row in rows) else 1
