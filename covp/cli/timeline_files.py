"""The options ``--trace`` and ``--vcd``: what happened when, as files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from covp.cli.groups import option
from covp.cli.output import echo
from covp.evaluation import Evaluation
from covp.report.timeline import demand_writable, timeline_of, write_trace, write_vcd

trace = option(
    "--trace",
    heading="Timeline",
    metavar="FILE.json",
    help="Write layers, functions, jobs, accesses and interrupts in time, for ui.perfetto.dev.",
)
vcd = option(
    "--vcd",
    heading="Timeline",
    metavar="FILE.vcd",
    help="Write the accesses to registers, interrupt lines and busy units as waveforms.",
)


def demand_places(*files: str | Path | None) -> None:
    """Raise UsageError if one of the files cannot be written."""
    for file in files:
        if file is not None:
            demand_writable(file)


def save_trace(file: str, results: Mapping[str, Evaluation]) -> None:
    """Write the timelines of runs side by side, and say so on standard error.

    Args:
        file: its name.
        results: by name; the empty one where there is one run.
    """
    timelines = {name: timeline_of(result) for name, result in results.items()}
    write_trace(file, timelines)
    slices = sum(len(track.slices) for one in timelines.values() for track in one.tracks)
    echo(f"{file}: {slices:,} slices{_size(file)}; open it at ui.perfetto.dev", err=True)
    for name, one in timelines.items():
        for note in one.notes:
            echo(f"{file}: {f'{name}: ' if name else ''}{note}", err=True)


def save_vcd(file: str, result: Evaluation) -> None:
    """Write the accesses to registers, and say so on standard error."""
    log = result.timeline
    assert log is not None, "Wanted.accesses"
    write_vcd(file, log, result.platform.clock_hz)
    echo(f"{file}: {len(log.accesses):,} accesses to registers{_size(file)}", err=True)


def _size(file: str) -> str:
    return f", {Path(file).stat().st_size / 1e6:,.1f} MB"
