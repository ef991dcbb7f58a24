"""``covp bisect``: a model's first wrong layer, function and line, and a test that shows it."""

from __future__ import annotations

import click

from covp.base.plural import pluralize
from covp.base.request import BuildOptions, RunOptions
from covp.building.schedules import schedules_of
from covp.chip.platform_file import load_platform
from covp.cli import options
from covp.cli.groups import GroupedCommand, option
from covp.cli.output import echo, print_json
from covp.evaluation.data.files import read_array
from covp.testing.bisect import Against, Verdict
from covp.testing.bisect import bisect as search
from covp.testing.bisect.bisect import KINDS


class _TwoWords(GroupedCommand):
    """Joins the two words of ``--against toolchain gcc``."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Parse as click does, with ``--against KIND WORD`` joined to one argument."""
        joined: list[str] = []
        words = iter(args)
        for word in words:
            joined.append(word)
            if word == "--against":
                kind = next(words, "")
                pair = kind in KINDS and kind != "reference"
                joined += [f"{kind} {next(words, '')}" if pair else kind] if kind else []
        return super().parse_args(context, joined)


def _against(context: click.Context, option: click.Parameter, text: str) -> Against:
    return Against.parse(text)


@click.command(cls=_TwoWords)
@options.model
@options.platform
@options.accelerators
@options.build_options(without=("overlap", "require_offload"))
@options.run_options("device", "seed")
@options.inputs
@option(
    "--against",
    heading="Checks",
    default="reference",
    show_default=True,
    metavar="WHAT",
    callback=_against,
    help="What layers are compared with: reference, toolchain gcc, device rtl, platform NAME, or "
    "build FILE.py, whose function build(program) returns another program.",
)
@option(
    "--ulps",
    heading="Checks",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Floats of two builds may be so many representable numbers apart.",
)
@option(
    "-o",
    "--output",
    heading="Report",
    metavar="DIR",
    help="Where the test is written; bisect_MODEL by default.",
)
@options.as_json
def bisect(
    model: str,
    platform: str,
    accelerators: tuple[str, ...],
    build_options: BuildOptions,
    run_options: RunOptions,
    inputs: tuple[str, ...],
    against: Against,
    ulps: int,
    output: str | None,
    as_json: bool,
) -> int:
    """Find MODEL's first wrong layer, then the function and line, and write a small test of it.

    Each layer runs alone, from the reference's tensors. Exit status 1: a layer differs.
    """
    values = [read_array(path) for path in inputs]
    board = load_platform(platform)
    verdict = search(
        model,
        platform,
        accelerators,
        build_options,
        run_options,
        against=against,
        schedules=schedules_of(board, build_options, run_options.device),
        inputs=values,
        ulps=ulps,
        folder=output,
        report=lambda what: echo(what, err=True) if not as_json else None,
    )
    if as_json:
        print_json(verdict)
    else:
        _print(verdict)
    return 0 if verdict.finding is None else 1


def _print(verdict: Verdict) -> None:
    finding = verdict.finding
    if finding is None:
        echo(
            f"nothing differs from {verdict.against}: {pluralize(verdict.layers, 'layer')} x "
            f"{pluralize(verdict.inputs, 'input')}, in {verdict.seconds:.2f} s"
        )
        return
    for line in finding.lines:
        echo(line)
    if finding.test is not None:
        used = f"{finding.test.used:,} of {finding.test.elements:,} input elements are not zero"
        echo(f"a test that shows it: {finding.test.path} ({used})")
