"""``--overlap``: what was promised and what it took; with ``--explain`` all schedules."""

from __future__ import annotations

from collections.abc import Iterator

from covp.base.plural import pluralize
from covp.cli.output import echo, print_table
from covp.evaluation import Evaluation
from covp.report.table import Table, Value, numbers, texts


def overlap_lines(result: Evaluation) -> Iterator[str]:
    """Yield the line of the report; none without ``--overlap``."""
    found = result.build.overlap
    if found is None:
        return
    if not found.hidden:
        least = min(each.cycles for each in found.alternatives if each.can_be_made)
        yield (
            f"overlap: nothing is gained; of {len(found.alternatives)} schedules the best takes "
            f"{least:,} of {found.alone:,} cycles"
        )
        return
    took = "" if result.profile.cycles is None else f", took {result.profile.cycles:,}"
    yield (
        f"overlap: {found.hidden:,} of {found.alone:,} cycles are hidden, promised "
        f"{found.promised:,}{took} ({found.chosen})"
    )


def print_schedules(result: Evaluation) -> None:
    """Print every schedule that was considered, with its cycles before the run."""
    found = result.build.overlap
    if found is None:
        return
    echo("\nschedules of core and units (cycles before the run)")
    rows: list[list[Value]] = [[each.what, each.cycles, each.basis] for each in found.alternatives]
    print_table(Table("", [*texts("schedule"), *numbers("cycles", "from")], rows))
    for name, count in found.rows.items():
        echo(f"  {name}: bands of {pluralize(count, 'row')}")
