"""``covp reproduce``: a saved run once more, and what differs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from covp.cli import options
from covp.cli.groups import GroupedCommand
from covp.cli.output import echo, print_json, progress
from covp.evaluation.data.files import read_array
from covp.evaluation.reproduce import ChangedValue
from covp.evaluation.reproduce import reproduce as run_again

_SHOWN = 12


@click.command(cls=GroupedCommand)
@click.argument("file", metavar="RUN.json", type=click.Path(path_type=Path))
@options.inputs
@options.as_json
def reproduce(file: Path, inputs: tuple[str, ...], as_json: bool) -> int:
    """Run what RUN.json, of `covp run --json`, records; exit status 1 if a figure differs.

    Model, platform, options, seed and schedules are those of the file where they are still there;
    what of them has changed is named first.
    """
    with progress("running", None):
        compared, found = run_again(file, [read_array(path) for path in inputs])
    figures = [one for one in found if not one.is_cause]
    if as_json:
        print_json(
            {
                "schema": "covp.reproduce/1",
                "compared": compared,
                "equal": not figures,
                "differences": [asdict(one) | {"is_cause": one.is_cause} for one in found],
            }
        )
    else:
        _report(compared, found, figures)
    return 1 if figures else 0


def _report(compared: int, found: list[ChangedValue], figures: list[ChangedValue]) -> None:
    causes = [one for one in found if one.is_cause]
    if figures:
        echo(f"DIFFERS: {len(figures)} of {compared:,} values are not those of the file")
    else:
        echo(f"reproduced: {compared - len(causes):,} values are those of the file")
    for title, group in (("changed since", causes), ("differs", figures)):
        for one in group[:_SHOWN]:
            key = one.key.removeprefix("origin.")
            echo(f"{title}: {key}: {_short(one.then)}, now {_short(one.now)}")
        if len(group) > _SHOWN:
            echo(f"{title}: {len(group) - _SHOWN:,} more; --json has all")


def _short(value: object) -> str:
    """Return a value in a few letters."""
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return text if len(text) <= 60 else f"{text[:40]}..."
