"""``covp mlperf``: performance, accuracy and energy in the manner of MLPerf Tiny."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from covp.base.request import BuildOptions
from covp.cli import options
from covp.cli.groups import GroupedCommand
from covp.cli.output import echo, print_json, print_table, progress, warn
from covp.cli.provenance import model_note
from covp.errors import UsageError
from covp.evaluation.comparison import share_text
from covp.evaluation.energy import Energy
from covp.evaluation.further_documents import Mlperf
from covp.firmware.mlperf.points import MeasuredPoint, MlperfQuality
from covp.firmware.mlperf.sweep import LABEL, sweep
from covp.report.table import Table, Value, escape_markdown, numbers, texts

_TEXTS = ("model", "platform", "accelerators")
_NUMBERS = (
    "latency (est.)", "inferences/s", "energy (est.)", "flash", "RAM", "MACs offloaded", "accuracy",
    "target", "outputs",
)  # fmt: skip


def print_rows(rows: Sequence[MeasuredPoint]) -> None:
    """Print the label, the table, and the notes on it."""
    echo(LABEL)
    print_table(_table(rows))
    for line in _notes(rows):
        echo(line)


def markdown(rows: Sequence[MeasuredPoint]) -> str:
    """Return the same as a Markdown document."""
    notes = "".join(f"- {escape_markdown(note)}\n" for note in _notes(rows))
    return f"# {LABEL}\n\n{_table(rows).markdown()}\n{notes}"


def _table(rows: Sequence[MeasuredPoint]) -> Table:
    """Return the columns that some row has; accuracies only where samples were given."""
    unwanted = set()
    if not any(row.quality for row in rows):
        unwanted |= {"accuracy", "target"}
    if not any(row.point.accelerators for row in rows):
        unwanted |= {"MACs offloaded"}
    shown = [name for name in _NUMBERS if name not in unwanted]
    return Table(
        "",
        [*texts(*_TEXTS), *numbers(*shown)],
        [_cells(row, [*_TEXTS, *shown]) for row in rows],
        drop=("outputs", "MACs offloaded", "inferences/s"),
    )


def _cells(row: MeasuredPoint, columns: Sequence[str]) -> list[Value]:
    found: dict[str, Value] = dict.fromkeys(columns)
    found |= {
        "model": row.point.graph.name + (" (synthetic)" * _is_synthetic(row)),
        "platform": row.point.platform.name,
        "accelerators": " + ".join(row.point.accelerators) or "none",
    }
    cost = row.result
    if cost is not None:
        joules = cost.energy.joules if isinstance(cost.energy, Energy) else None
        found |= {
            "latency (est.)": _shown(cost.profile.seconds, 1e3, ",.2f", " ms"),
            "inferences/s": _shown(row.inferences_per_second, 1, ",.1f"),
            "energy (est.)": _shown(joules, 1e6, ",.1f", " uJ"),
            "flash": cost.memory.flash_bytes,
            "RAM": cost.memory.ram_bytes,
            "MACs offloaded": share_text(cost.mac_coverage),
            "outputs": "right" if cost.matches_reference else "DIFFER",
        }
    if row.quality is not None:
        found["accuracy"] = _value(row.quality, row.quality.value)
        found["target"] = _target(row.quality)
    return [found[name] for name in columns]


def _shown(value: float | None, factor: float, form: str, unit: str = "") -> str | None:
    return None if value is None else f"{value * factor:{form}}{unit}"


def _is_synthetic(row: MeasuredPoint) -> bool:
    return row.point.graph.source == "synthetic"


def _value(quality: MlperfQuality, value: float) -> str:
    return f"AUC {value:.3f}" if quality.metric == "AUC" else f"{value:.1%}"


def _target(quality: MlperfQuality) -> str:
    if quality.target is None:
        return "-"
    verdict = "pass" if quality.meets_target else "below"
    return f"{_value(quality, quality.target)}: {verdict}"


def _notes(rows: Sequence[MeasuredPoint]) -> Iterator[str]:
    """Yield one line each, for all rows that it is true of."""
    notes: list[str] = []
    for row in rows:
        point, cost = row.point, row.result
        if row.reason is not None:
            notes.append(f"{point}: {row.reason}")
        if cost is not None and not cost.matches_reference:
            notes.append(f"{point}: OUTPUTS DIFFER from the reference; see `covp run`")
        if cost is not None and isinstance(cost.energy, str):
            units = " + ".join(point.accelerators)
            notes.append(f"no energy with {units}: {cost.energy}")
    for row in rows:
        if row.quality is not None:
            notes.append(_samples(row, row.quality))
        if row.point.graph.streaming is not None:
            notes.append(f"{row.point.graph.name}: latency and energy of one new row of the stream")
        if row.result is not None and row.result.profile.sources.cycles is not None:
            source = row.result.profile.sources.cycles
            notes.append(f"cycles on {row.point.platform.name}: {source}")
        if note := model_note(row.point.graph.source):
            notes.append(f"{row.point.graph.name}: {note}")
    yield from dict.fromkeys(notes)


def _samples(row: MeasuredPoint, quality: MlperfQuality) -> str:
    assert row.point.task is not None
    where = {"device": "on the emulated core", "reference": "by the reference, the same bits"}
    return (
        f"accuracy of {row.point.graph.name}: {row.point.task.name}, {quality.samples:,} files, "
        f"{quality.inferences:,} inferences {where[quality.computed_by]}"
    )


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
    for row in rows:
        warn(f"{row.point}: {text}" for text in (row.result.warnings if row.result else ()))
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
