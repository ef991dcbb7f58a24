"""Output of ``covp run --causes``: a breakdown of each layer's and function's cycles by cause."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from covp.cli.output import echo, print_table
from covp.cli.provenance import cycles_column
from covp.device.phase_count import Causes, FunctionCount
from covp.evaluation import Evaluation
from covp.report.quantities import operator_label
from covp.report.table import Table, Value, numbers, texts
from covp.runtime.profile import Profile

_HEADINGS = {
    "operand": "load-use",
    "multiply": "multiply, divide",
    "custom": "custom instructions",
    "fetch": "fetch wait",
    "data": "data wait",
    "cache": "cache miss",
    "waited": "waiting, asleep",
}
_MOST = 20
"""Functions that are printed one by one."""


class _Row(NamedTuple):
    """A layer, or what lies between them."""

    layer: str
    operator: str
    cycles: int | None
    causes: Causes | None
    functions: tuple[FunctionCount, ...]


def print_causes(result: Evaluation) -> None:
    """Print two tables: layers, and the functions that take the most cycles."""
    profile = result.profile
    total, rows = profile.causes or {}, _rows(profile)
    causes = [cause for cause, cycles in total.items() if cycles]
    titles = [_HEADINGS.get(cause, cause) for cause in causes]
    cycles = cycles_column(profile.sources.cycles)
    table = Table(
        "cycles by cause",
        [*texts("layer", "operator"), *numbers(*titles, cycles)],
        [[row.layer, row.operator, *_cells(row.causes, causes), row.cycles] for row in rows],
        ["", "total", *_cells(total, causes), profile.cycles],
    )
    print_table(table)
    _print_functions(rows, causes, [*titles, cycles])


def _rows(profile: Profile) -> list[_Row]:
    layers = [
        _Row(
            f"{entry.index}",
            operator_label(entry.op, entry.name),
            entry.cycles,
            entry.causes,
            entry.functions,
        )
        for entry in profile.layers
    ]
    between = profile.between
    return [*layers, _Row("", "between layers", between.cycles, between.causes, between.functions)]


def _print_functions(rows: Iterable[_Row], causes: list[str], titles: list[str]) -> None:
    counts = [(row.layer, function) for row in rows for function in row.functions]
    counts.sort(key=lambda count: -count[1].cycles)
    columns = [*texts("layer", "function"), *numbers("instructions", *titles)]
    cells: list[list[Value]] = [
        [layer, one.name or "(none)", one.instructions, *_cells(one.causes, causes), one.cycles]
        for layer, one in counts[:_MOST]
    ]
    print_table(Table("functions, without those that they call", columns, cells))
    if others := counts[_MOST:]:
        cycles = sum(one.cycles for _, one in others)
        echo(f"{len(others)} more functions took {cycles:,} cycles")


def _cells(spent: Causes | None, causes: Iterable[str]) -> list[int | None]:
    return [None if spent is None else spent.get(cause, 0) for cause in causes]
