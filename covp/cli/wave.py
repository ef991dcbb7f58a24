"""The options of ``covp run --wave``, and its line."""

from __future__ import annotations

import re
from pathlib import Path

import click

from covp.cli.groups import option
from covp.cli.output import echo
from covp.device.wave import FIRST_CYCLES, LAYER_CYCLES, Recorded, Wave
from covp.errors import UsageError

file = option(
    "--wave",
    heading="Waveform",
    metavar="FILE",
    help="Write the signals of the core's RTL to a .fst or .vcd file (device rtl).",
)
cycles = option(
    "--wave-cycles",
    heading="Waveform",
    metavar="FROM:TO",
    help=f"Of these cycles; TO may be left out. Default: the first {FIRST_CYCLES:,}, "
    f"of a layer {LAYER_CYCLES:,}.",
)
layer = option(
    "--wave-layer",
    heading="Waveform",
    type=click.IntRange(0),
    metavar="N",
    help="Record the cycles of layer N, counted from its start.",
)


def read_wave(file: str | None, cycles: str | None, layer: int | None) -> Wave | None:
    """Return what is to be recorded; None without a file.

    Args:
        file, cycles, layer: the options.

    Raises:
        UsageError: the suffix or the window is none, or there is a window without a file.
    """
    if file is None:
        if cycles is not None or layer is not None:
            given = "--wave-layer" if cycles is None else "--wave-cycles"
            raise UsageError(f"{given} needs --wave FILE")
        return None
    if cycles is None:
        return Wave(Path(file), 0, FIRST_CYCLES if layer is None else LAYER_CYCLES)
    window = re.fullmatch(r"([0-9]*):([0-9]*)", cycles)
    if window is None:
        raise UsageError(f"--wave-cycles {cycles}: give FROM:TO, such as 0:50000, or FROM:")
    first, end = window.groups()
    return Wave(Path(file), int(first or 0), int(end) if end else None)


def print_wave(recorded: Recorded, layer: int | None) -> None:
    """Print one line on standard error: what the file holds, and how much there is besides."""
    wave, where = recorded.wave, "the inference" if layer is None else f"layer {layer}"
    size = wave.file.stat().st_size
    last = wave.first + recorded.cycles
    text = f"{wave.file}: cycles {wave.first:,} to {last - 1:,} of {recorded.of:,} of {where}, "
    more = "; --wave-cycles FROM:TO takes others" if last < recorded.of else ""
    echo(f"{text}{size / 1e6:,.1f} MB{more}", err=True)
