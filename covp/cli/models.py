"""``covp models``: the zoo, and getting the official files."""

from __future__ import annotations

from dataclasses import asdict

import click
import msgspec

from covp.cli import options
from covp.cli.lists import ListedModel
from covp.cli.output import echo, print_json, print_table
from covp.graph import zoo
from covp.report.table import Table, Value, numbers, texts


@click.group(invoke_without_command=True)
@options.as_json
@click.pass_context
def models(context: click.Context, as_json: bool) -> None:
    """List the model zoo; `covp models fetch` downloads the official files."""
    if context.invoked_subcommand is not None:
        return
    found = [zoo.find(name) for name in zoo.names(more=True)]
    if as_json:
        print_json([msgspec.convert(asdict(m) | {"path": str(m.path)}, ListedModel) for m in found])
        return
    rows: list[list[Value]] = [
        [m.name, m.description, m.source, m.macs, str(m.path)] for m in found
    ]
    columns = [*texts("model", "task", "source"), *numbers("MACs", "file")]
    print_table(Table("", columns, rows))


@models.command()
@click.argument("names", nargs=-1)
def fetch(names: tuple[str, ...]) -> None:
    """Download official models (all by default), checked against pinned SHA-256 hashes."""
    for model in zoo.fetch(names, lambda name: echo(f"fetching {name}", err=True)):
        skipped = "skipped: there is no official file, its weights are synthetic"
        echo(f"{model.name}: {skipped if model.source == 'synthetic' else model.path}")
