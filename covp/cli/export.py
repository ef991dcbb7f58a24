"""``covp export``: a model as a C project that stands alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from covp.base.request import BuildOptions
from covp.chip.platform_file import load_platform
from covp.cli import options
from covp.cli.groups import GroupedCommand
from covp.cli.output import echo, print_json, warn
from covp.cli.provenance import model_note
from covp.errors import UsageError
from covp.evaluation import Sample, build
from covp.evaluation.data.files import read_array
from covp.firmware import Application, Library, Project, export_project
from covp.firmware.document import Exported
from covp.firmware.firmware import board_warning
from covp.firmware.layouts import layout_names
from covp.firmware.mlperf.benchmarks import BENCHMARKS, find_benchmark
from covp.firmware.mlperf.firmware import tiny_application
from covp.firmware.mlperf.wake_word import is_wake_word, wake_word_application


@click.command(cls=GroupedCommand)
@options.model
@options.platform
@options.accelerators
@options.build_options()
@click.option(
    "--layout",
    type=click.Choice(layout_names()),
    default="make",
    show_default=True,
    help="The build system whose files are written.",
)
@click.option(
    "--sample",
    "samples",
    multiple=True,
    metavar="FILE.npy",
    help="The input of the self-test, one for each input; by default random numbers of --seed.",
)
@click.option(
    "--firmware",
    type=click.Choice(["selftest", "mlperf-tiny"]),
    default="selftest",
    show_default=True,
    help="What the firmware of the layouts make and cmake does: check itself, or speak the serial "
    "protocol of MLPerf Tiny.",
)
@click.option(
    "--benchmark",
    type=click.Choice(sorted(BENCHMARKS)),
    help="What MODEL is for, with --firmware mlperf-tiny; by default as `covp board` has it.",
)
@click.option("--prefix", metavar="NAME", help="What all C names begin with; default: the model's.")
@click.option(
    "--arena",
    type=click.Choice(["caller", "static"]),
    default="caller",
    show_default=True,
    help="Who owns the memory of activations: the caller, or the library as NAME_arena.",
)
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), metavar="DIR")
@options.seed
@options.as_json
def export(
    model: str,
    platform: str,
    accelerators: tuple[str, ...],
    build_options: BuildOptions,
    layout: str,
    samples: tuple[str, ...],
    firmware: str,
    benchmark: str | None,
    prefix: str | None,
    arena: str,
    output: Path,
    seed: int,
    as_json: bool,
) -> int:
    """Write MODEL as a C library with a self-test and a project around it to DIR."""
    tiny = firmware == "mlperf-tiny"
    _check_options(tiny, layout, samples, benchmark)
    values = [read_array(path) for path in samples]
    board = load_platform(platform)
    made = build(model, board, accelerators, build_options, name=prefix or "")
    silent = board_warning(board) if layout in ("make", "cmake") else None
    warnings = [*made.program.warnings, *([silent] if silent else [])]
    warn(warnings)
    sample = Sample.of(made.graph, values) if values else Sample.random(made.graph, seed)
    project = Project.of(made, sample, static_arena=arena == "static")
    if tiny:
        project = replace(project, application=_application(project.library, benchmark))
    written = export_project(project, output, layout)
    if as_json:
        print_json(
            Exported(
                model_source=made.source,
                schedules=made.schedules,
                warnings=warnings,
                layout=layout,
                folder=str(output),
                files=[path.as_posix() for path in written],
            )
        )
    else:
        if note := model_note(made.source):
            echo(f"{made.model}: {note}")
        echo(f"{made.schedules}")
        echo(f"{len(written)} files in {output}, see {output / 'README.md'}")
    return 0


def _application(library: Library, benchmark: str | None) -> Application:
    """Return the firmware that speaks MLPerf Tiny's protocol."""
    if benchmark is None and is_wake_word(library.program):
        return wake_word_application(library)
    return tiny_application(library, find_benchmark(library.program, benchmark))


def _check_options(
    tiny: bool, layout: str, samples: tuple[str, ...], benchmark: str | None
) -> None:
    """Raise UsageError for options that have no effect on this firmware."""
    if tiny and layout not in ("make", "cmake"):
        raise UsageError(
            f"--firmware mlperf-tiny: the layout {layout} has no firmware; take make or cmake"
        )
    if tiny and samples:
        raise UsageError("--sample: the firmware mlperf-tiny gets its inputs from the host")
    if benchmark and not tiny:
        raise UsageError("--benchmark belongs to --firmware mlperf-tiny")
