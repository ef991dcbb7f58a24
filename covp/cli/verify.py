"""``covp verify``: property tests of an accelerator against the reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from covp.cli import options, timeline_files
from covp.cli.junit import TestCase, junit, write_junit
from covp.cli.output import echo, print_json
from covp.evaluation.further_documents import BesideRtl, Verified

if TYPE_CHECKING:
    from covp.evaluation.source import SourceCheck
    from covp.testing.verify.verification import Verdict


@click.command()
@click.argument("accelerator", metavar="ACCEL")
@click.option("-p", "--platform", default="riscv32", show_default=True, metavar="PLATFORM")
@click.option(
    "--examples",
    type=click.IntRange(1),
    default=200,
    show_default=True,
    help="Layers of each operator.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(1),
    default=90.0,
    show_default=True,
    help="Processor time after which no layer beyond the first 20 of each operator is tried.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="MODEL",
    help="Try this model's layers instead of those of the zoo's models; repeatable.",
)
@click.option(
    "--against",
    type=click.Choice(["rtl"]),
    help="Compare each job with the unit's Verilog: bits, registers, cycles.",
)
@options.shapes
@options.seed
@options.toolchain
@junit
@options.as_json
def verify(
    accelerator: str,
    platform: str,
    examples: int,
    seconds: float,
    models: tuple[str, ...],
    against: str | None,
    shapes: dict[str, tuple[int, ...]],
    seed: int,
    toolchain: str,
    junit: Path | None,
    as_json: bool,
) -> int:
    """Try layers on ACCEL, bit-exact against the reference, then misuse its registers.

    The driver runs on the emulated core of PLATFORM, the model on its bus. A failure is shrunk to
    the smallest layer and printed as a test. The reference of each --model is compared with
    onnxruntime or LiteRT executing its file, where these are installed.
    """
    from covp.evaluation.source import check_model
    from covp.testing.verify import verify as search

    timeline_files.demand_places(junit)

    def progress(what: str) -> None:
        if not as_json:
            echo(f"trying {what}", err=True)

    files = {model: check_model(model, shapes) for model in models}
    wrong = [found for found in files.values() if not found.holds]
    verdict = search(
        accelerator,
        platform,
        examples,
        seed,
        toolchain,
        progress,
        models or None,
        seconds,
        shapes,
        against is not None,
    )
    if junit is not None:
        write_junit(junit, f"covp verify {accelerator}", list(_cases(verdict, files)))
    if as_json:
        print_json(_document(verdict, files))
    else:
        _print(verdict, files)
        _print_end(verdict, seconds)
    return 1 if verdict.failure or wrong else 0


def _cases(verdict: Verdict, files: Mapping[str, SourceCheck]) -> Iterator[TestCase]:
    """Yield one for the search, one for misuse where it came so far, one for each model's file."""
    layers = ", ".join(f"{count} of {kind}" for kind, count in verdict.tried.items())
    if verdict.instructions and not verdict.tried:
        layers = "none after its instructions"
    yield TestCase(f"layers: {layers}", verdict.failure or "", verdict.test or "")
    if verdict.abuses:
        yield TestCase(f"{verdict.abuses} wrong uses of the registers")
    for model, found in files.items():
        yield TestCase(f"file of {model}", "" if found.holds else str(found))


def _document(verdict: Verdict, files: Mapping[str, SourceCheck]) -> Verified:
    return Verified(
        accelerator=verdict.accelerator,
        tried=dict(verdict.tried),
        accepted=dict(verdict.accepted),
        abuses=verdict.abuses,
        failure=verdict.failure,
        test=verdict.test,
        rejected=dict(verdict.rejected),
        too_large=dict(verdict.too_large),
        models=dict(verdict.models),
        sources={model: str(found) for model, found in files.items()},
        seconds=verdict.seconds,
        finished=verdict.finished,
        macs_per_cycle=verdict.rates[0],
        bytes_per_cycle=verdict.rates[1],
        rtl=_beside_rtl(verdict),
        instructions=verdict.instructions,
    )


def _beside_rtl(verdict: Verdict) -> BesideRtl | None:
    """Return how the model's formula of time compares with the RTL; None: it was not requested."""
    if not verdict.times:
        return None
    model, rtl = sum(job.model for job in verdict.times), sum(job.rtl for job in verdict.times)
    errors = [job.model / max(job.rtl, 1) - 1 for job in verdict.times]
    return BesideRtl(
        jobs=len(errors),
        cycles=rtl,
        error=model / max(rtl, 1) - 1,
        least=min(errors),
        most=max(errors),
    )


def _print(verdict: Verdict, files: Mapping[str, SourceCheck]) -> None:
    """Print what was tried."""
    if verdict.instructions:
        echo(f"{verdict.instructions} sequences of its instructions drawn")
    for kind, count in verdict.tried.items():
        took = verdict.accepted.get(kind, 0)
        large = verdict.too_large.get(kind, 0)
        note = f"; {large} more did not fit the memory" if large else ""
        echo(f"{kind}: {count} layers drawn, {took} taken by {verdict.accelerator}{note}")
    for reason, count in list(verdict.rejected.items())[:6]:
        echo(f"  {count} rejected: {reason}")
    if verdict.models:
        each = ", ".join(f"{name} {count}" for name, count in verdict.models.items())
        echo(f"layers of models: {each}")
    for model, found in files.items():
        echo(f"{'' if found.holds else 'SOURCE DIFFERS: '}file of {model}: {found}")
    if any(verdict.rates):
        macs, moved = verdict.rates
        each = f"{macs:.3g} MACs and " if macs else ""
        echo(f"by its own time the fastest job did {each}{moved:.3g} bytes per cycle")
    beside = _beside_rtl(verdict)
    if beside is not None:
        echo(
            f"{beside.jobs:,} jobs have the bits and registers of the RTL; timing() is "
            f"{beside.error:+.1%} off its {beside.cycles:,} cycles, {beside.least:+.1%} to "
            f"{beside.most:+.1%} of a job"
        )


def _print_end(verdict: Verdict, seconds: float) -> None:
    """Print the outcome."""
    if not verdict.finished:
        echo(f"{seconds:g} s of processor time were too few for all layers (--seconds)")
    if verdict.failure:
        echo(f"FAILED: {verdict.failure}")
        if verdict.test:
            echo(f"\nthe smallest failing layer, as a test:\n\n{verdict.test}")
        return
    echo("all outputs equal the reference, and nothing beside them was written")
    if verdict.abuses:
        echo(f"{verdict.abuses} wrong uses of the registers were rejected or harmless")
