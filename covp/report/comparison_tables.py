"""Tables of several runs: totals, and cycles by layer, with the ratio to the first run."""

from __future__ import annotations

from collections.abc import Sequence

from covp.evaluation.documents import Run
from covp.evaluation.figures import ARENA, CYCLES, ENERGY, FLASH, INSTRUCTIONS, OFFLOADED, RAM, TIME
from covp.report.figures.comparison import Named, first_cycles, layer_names
from covp.report.quantities import certainty, rows
from covp.report.table import Cell, Column, Table, Value, figure_cell, figure_column

Row = list[Value | Cell]
_COSTS = (TIME, ENERGY, FLASH, RAM, ARENA, OFFLOADED)


def totals_table(runs: Sequence[Named]) -> Table:
    """Return a table with one row per run."""
    firsts = first_cycles(runs)
    columns = [
        Column("run"),
        Column("covp"),
        Column("compiler"),
        *map(figure_column, (INSTRUCTIONS, CYCLES)),
        Column("error", "of the cycles"),
        Column("speed", "times the model's first", ".2f"),
        *map(figure_column, _COSTS),
        Column("matches the reference"),
    ]
    return Table("Runs", columns, [_total(name, run, firsts.get(run.model)) for name, run in runs])


def _total(name: str, run: Run, first: int | None) -> Row:
    words = {True: "yes", False: "NO", None: "not checked"}
    return [
        name,
        run.covp_version,
        run.toolchain,
        run.figure(INSTRUCTIONS),
        run.figure(CYCLES),
        certainty(run),
        first / run.cycles if first and run.cycles else None,
        *(figure_cell(one, run.figure(one)) for one in _COSTS),
        words[run.matches_reference],
    ]


def by_layer_table(runs: Sequence[Named]) -> Table | None:
    """Return cycles by layer of runs of one model; None for several models, or for one run."""
    if len(runs) < 2 or len({run.model for _, run in runs}) > 1:
        return None
    names = layer_names([run for _, run in runs])
    cycles = [{row: cost.cycles for row, cost in rows(run)} for _, run in runs]
    columns = [Column("layer")]
    for i, (name, run) in enumerate(runs):
        columns.append(Column(name, f"cycles, {certainty(run)}".strip(", "), ","))
        if i:
            columns.append(Column("speed", "times the first", ".2f"))
    found = [_across(name, [one.get(name) for one in cycles]) for name in names]
    total = _across("total", [run.cycles for _, run in runs])
    return Table("Cycles by layer", columns, found, total)


def _across(name: str, cycles: Sequence[int | None]) -> Row:
    """Return the cycles of one layer in each run, those after the first with their ratio to it."""
    first = cycles[0]
    row: Row = [name, first]
    for one in cycles[1:]:
        row += [one, first / one if first and one else None]
    return row
