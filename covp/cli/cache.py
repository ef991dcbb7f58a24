"""``covp cache``: where it is, its size, clearing and limiting it."""

from __future__ import annotations

import click

from covp.cli import options
from covp.cli.output import echo, print_json, print_table
from covp.report.table import Table, numbers, texts


@click.group(invoke_without_command=True)
@options.as_json
@click.pass_context
def cache(context: click.Context, as_json: bool) -> None:
    """Show the cache folder: path, size, entries, and damaged ones that were made anew."""
    if context.invoked_subcommand is not None:
        return
    from covp.base.cache_upkeep import state
    from covp.cli.lists import CacheState

    now = state()
    if as_json:
        print_json(
            CacheState(
                path=str(now.path),
                bytes=now.bytes,
                entries=now.entries,
                repaired=now.repaired,
                limit_bytes=now.limit,
                kinds=now.kinds,
            )
        )
        return
    echo(f"{now.path}")
    columns = [*texts("kind"), *numbers("bytes")]
    print_table(Table("", columns, [*now.kinds.items()], ["all", now.bytes]))
    limit = "no limit" if now.limit is None else f"limit {now.limit:,} bytes"
    echo(f"{now.entries:,} entries, {now.repaired:,} repaired, {limit}")


@cache.command()
@click.option("--all", "everything", is_flag=True, help="Tuner records and fetched models too.")
def clear(everything: bool) -> None:
    """Remove what can be made again: objects, images, native code, signatures."""
    from covp.base import cache_upkeep

    echo(f"{cache_upkeep.clear(everything):,} bytes freed")


@cache.command()
@click.argument("size", metavar="SIZE|none")
def limit(size: str) -> None:
    """Keep the cache below SIZE, such as 500M or 2G; what was used least recently goes first."""
    from covp.base.cache_upkeep import set_limit

    freed = set_limit(None if size == "none" else options.size(size))
    echo(f"limit {size}, {freed:,} bytes freed")
