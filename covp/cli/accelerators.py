"""``covp accelerators``: what can be named with --accel."""

from __future__ import annotations

import click

from covp.accelerator.registry import list_backends
from covp.cli import options
from covp.cli.output import print_json


@click.command()
@options.as_json
def accelerators(as_json: bool) -> None:
    """List the accelerators that can be named with --accel, with their parameters."""
    known = list_backends()
    if as_json:
        print_json(
            [
                {
                    "name": info.name,
                    "description": info.description,
                    "origin": info.origin,
                    "parameters": [
                        {"name": p.name, "default": p.default, "description": p.description}
                        for p in info.parameters
                    ],
                }
                for info in known
            ]
        )
        return
    for info in known:
        click.echo(f"{info.name} ({info.origin}): {info.description}")
        for p in info.parameters:
            click.echo(f"    {p.name}={p.text(p.default)}  {p.description}")
