"""``covp reproduce``: a saved run once more, and what differs."""

from __future__ import annotations

from pathlib import Path

import click

from covp.cli import options
from covp.cli.groups import GroupedCommand
from covp.cli.output import echo, print_json, progress
from covp.evaluation.data.files import read_array
from covp.evaluation.reproduce import Reproduced
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
        found = run_again(file, [read_array(path) for path in inputs])
    if as_json:
        print_json(found)
    else:
        _report(found)
    return 0 if found.equal else 1


def _report(found: Reproduced) -> None:
    causes = [one for one in found.differences if one.is_cause]
    figures = [one for one in found.differences if not one.is_cause]
    if figures:
        echo(f"DIFFERS: {len(figures)} of {found.compared:,} values are not those of the file")
    else:
        echo(f"reproduced: {found.compared - len(causes):,} values are those of the file")
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
