"""``covp multicore``: firmware on all cores of a platform, run together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from covp.cli import options
from covp.cli.output import echo, print_json
from covp.errors import AcceleratorError, UsageError

if TYPE_CHECKING:
    from covp.firmware.multicore import System


def _by_core(
    context: click.Context, option: click.Parameter, given: tuple[str, ...]
) -> dict[str, list[str]]:
    """Return the values of CORE=VALUE options by core."""
    found: dict[str, list[str]] = {}
    for text in given:
        core, _, value = text.partition("=")
        if not (core and value):
            wrong = f"{text!r:.80} is not of the form {option.make_metavar(context)}."
            raise click.BadParameter(wrong.replace("...", ""), context, option)
        found.setdefault(core, []).append(value)
    return found


@click.command()
@click.argument("images", nargs=-1, required=True, callback=_by_core, metavar="CORE=FILE...")
@options.platform
@click.option(
    "--model",
    "models",
    multiple=True,
    callback=_by_core,
    metavar="CORE=MODEL",
    help="A model that a core's C files call; its library, NAME.h, is built with them.",
)
@options.streaming
@click.option(
    "-D",
    "--define",
    "defines",
    multiple=True,
    metavar="NAME=VALUE",
    help="A macro for the C files of all cores; repeatable.",
)
@click.option(
    "--samples",
    metavar="FILE",
    help="What the platform's sampler takes: .npy (time first), .wav or .csv, or tcp:HOST:PORT.",
)
@click.option(
    "--until",
    multiple=True,
    metavar="CORE",
    help="The run ends when this core has finished; repeatable. Default: when all have.",
)
@click.option(
    "--turn",
    type=click.IntRange(1, 1 << 18),
    default=1000,
    show_default=True,
    metavar="CYCLES",
    help="Length of a core's turn; shorter turns keep cores closer in time, but are slower.",
)
@click.option(
    "--timeout",
    type=options.Seconds(),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="Limit of host time for the whole run.",
)
@options.toolchain
@options.as_json
def multicore(
    images: dict[str, list[str]],
    platform: str,
    models: dict[str, list[str]],
    streaming: int,
    defines: tuple[str, ...],
    samples: str | None,
    until: tuple[str, ...],
    turn: int,
    timeout: float,
    toolchain: str,
    as_json: bool,
) -> int:
    """Run firmware on all cores of PLATFORM together, and report what each core did.

    FILE is a C file, one or more for each core, or an ELF file. The exit status is 1 where a main
    returned something negative.
    """
    from covp.firmware.multicore import System

    with System(platform, toolchain) as system:
        for core in models.keys() - images.keys():
            raise UsageError(f"--model {core}={models[core][0]}: the core has no C files")
        for core, files in images.items():
            _load(system, core, files, models.get(core, []), streaming, defines)
        if samples is not None:
            _feed(system, samples)
        done = system.run(until or None, timeout, turn)
    if as_json:
        print_json(done.document())
    else:
        echo(str(done))
    return int(any(core.status is not None and core.status < 0 for core in done.cores))


def _load(
    system: System,
    core: str,
    files: Sequence[str],
    models: Sequence[str],
    streaming: int,
    defines: Sequence[str],
) -> None:
    """Load the firmware of a core: an ELF file, or C files with a model."""
    from covp.building.builder import compile

    is_c = [Path(file).suffix in (".c", ".S") for file in files]
    if not any(is_c) and len(files) == 1 and not models:
        system.load_elf(core, files[0])
        return
    if not all(is_c) or len(models) > 1:
        raise UsageError(
            f"core {core}: its firmware is C files, with one model at most, or one ELF file"
        )
    own = system.platform.for_core(core)
    program = compile(models[0], own, streaming=streaming) if models else None
    system.load_c(core, files, program, [f"-D{define}" for define in defines])


def _feed(system: System, samples: str) -> None:
    """Give the platform's sampler its rows."""
    names = [one.name for one in system.platform.peripherals if one.model == "sampler"]
    if len(names) != 1:
        raise UsageError(f"--samples: {system.platform.name} has {len(names)} samplers, not one")
    sampler: Any = system.peripherals[names[0]]
    try:
        sampler.feed(samples)
    except AcceleratorError as error:  # of any other source it is the platform's mistake
        raise UsageError(f"--samples: {error}") from None
