"""``covp compare``: the core alone beside core and accelerator."""

from __future__ import annotations

from typing import Any

import click

from covp.cli import options
from covp.cli.output import print_json, print_table, progress
from covp.evaluation import Evaluation, evaluate, speedup
from covp.tune.records import Objective


@click.command()
@click.argument("models", nargs=-1, required=True)
@options.platform
@click.option(
    "-a",
    "--accel",
    "accelerators",
    multiple=True,
    required=True,
    metavar="ACCEL",
    help="A name from `covp accelerators` or file.py:Class, with :key=value,...",
)
@options.device
@options.toolchain
@options.operators
@options.seed
@options.optimize
@options.max_scratch
@options.tuned
@options.as_json
def compare(
    models: tuple[str, ...],
    platform: str,
    accelerators: tuple[str, ...],
    device: str,
    toolchain: str,
    seed: int,
    optimize: Objective,
    max_scratch: int | None,
    tuned: bool,
    as_json: bool,
) -> int:
    """Run each of MODELS on the core alone and with the accelerators; a row a model."""
    pairs = []
    with progress("running", 2 * len(models)) as advance:
        for model in models:
            pair = []
            for chosen in ((), accelerators):
                advance(f"{model} {'with ' + ' '.join(chosen) if chosen else 'alone'}")
                pair.append(
                    evaluate(
                        model,
                        platform,
                        chosen,
                        device=device,
                        toolchain=toolchain,
                        seed=seed,
                        optimize=optimize,
                        tuned=tuned,
                        max_scratch=max_scratch,
                        # a model without a layer for it is a row with nothing saved
                        allow_unused=True,
                    )
                )
            pairs.append((pair[0], pair[1]))
    if as_json:
        print_json(_document(platform, accelerators, pairs))
    else:
        _report(accelerators, pairs)
    return 0 if all(e.matches_reference for pair in pairs for e in pair) else 1


def _document(
    platform: str, accelerators: tuple[str, ...], pairs: list[tuple[Evaluation, Evaluation]]
) -> dict[str, Any]:
    return {
        "schema": "covp.compare/1",
        "platform": pairs[0][0].platform.name,
        "accelerators": list(accelerators),
        "rows": [
            {
                "model": alone.model,
                "cpu": alone.record(),
                "accelerated": accelerated.record(),
                **speedup(alone, accelerated),
                "mac_coverage": accelerated.mac_coverage,
            }
            for alone, accelerated in pairs
        ],
    }


def _report(accelerators: tuple[str, ...], pairs: list[tuple[Evaluation, Evaluation]]) -> None:
    first = pairs[0][0]
    names = " + ".join(accelerators)
    click.echo(f"{first.platform.name} alone and with {names}, {first.toolchain}")
    columns = [
        "model",
        "instructions alone",
        f"with {names}",
        "saved",
        "speedup (est. cycles)",
        "MACs offloaded",
        "simulation",
        "bits",
    ]
    rows = []
    for alone, accelerated in pairs:
        gain = speedup(alone, accelerated)
        saved, faster = gain["instructions_saved"], gain["speedup"]
        exact = alone.matches_reference and accelerated.matches_reference
        rows.append(
            [
                alone.model + (" (synthetic)" if alone.source == "synthetic" else ""),
                alone.profile.instructions,
                accelerated.profile.instructions,
                None if saved is None else f"{saved:.1%}",
                None if faster is None else f"{faster:.1f}x",
                f"{accelerated.mac_coverage:.0%}",
                f"{alone.simulation_seconds + accelerated.simulation_seconds:.2f} s",
                "exact" if exact else "DIFFER",
            ]
        )
    print_table(columns, rows)
    if any(alone.source == "synthetic" for alone, _ in pairs):
        click.echo(
            "synthetic: a stand-in of the same topology with random weights; "
            "`covp models fetch` gets the official files where there are any"
        )
