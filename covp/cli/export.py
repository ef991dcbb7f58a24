"""``covp export``: a model as a C project that stands alone."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from covp.cli import options
from covp.cli.output import print_json, warn
from covp.cli.provenance import model_note
from covp.evaluation import Sample, build, recorded_schedules
from covp.export import export_project
from covp.platform_file import load_platform
from covp.toolchain import get_toolchain
from covp.tune.records import Objective


@click.command()
@click.argument("model")
@options.platform
@options.accelerators
@options.allow_slower
@options.toolchain
@options.operators
@options.shapes
@options.states
@options.streaming
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), metavar="DIR")
@options.seed
@options.optimize
@options.max_scratch
@options.flash_trade
@options.tuned
@options.as_json
def export(
    model: str,
    platform: str,
    accelerators: tuple[str, ...],
    allow_slower: bool,
    toolchain: str,
    shapes: dict[str, tuple[int, ...]],
    states: dict[str, str],
    streaming: int,
    output: Path,
    seed: int,
    optimize: Objective,
    max_scratch: int | None,
    flash_trade: int,
    tuned: bool,
    as_json: bool,
) -> int:
    """Write MODEL as C with start-up code, linker script, Makefile and a checked main to DIR."""
    board = load_platform(platform)
    made = build(
        model,
        board,
        accelerators,
        allow_slower=allow_slower,
        toolchain=toolchain,
        schedules=recorded_schedules(
            board, toolchain, optimize, max_scratch=max_scratch, flash_trade=flash_trade
        )
        if tuned
        else None,
        shapes=shapes,
        states=states,
        streaming=streaming,
    )
    warn(made.program.warnings)
    sample = Sample.random(made.graph, seed)
    compiler = get_toolchain(toolchain, board.core)
    written = export_project(made.program, compiler, output, sample.inputs, sample.outputs)
    if as_json:
        files = [path.as_posix() for path in written]
        print_json(
            {
                "schema": "covp.export/1",
                "model_source": made.source,
                "schedules": asdict(made.schedules),
                "warnings": list(made.program.warnings),
                "folder": str(output),
                "files": files,
            }
        )
    else:
        if note := model_note(made.source):
            click.echo(f"{made.model}: {note}")
        click.echo(f"{made.schedules}")
        click.echo(f"{len(written)} files in {output}; build with: make -C {output}")
    return 0
