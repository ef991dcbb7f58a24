"""Output of ``covp sweep``: the designs, or of many the best, and the failures."""

from __future__ import annotations

from covp.cli.output import echo, print_table
from covp.exploration.sweep.constraints import is_feasible
from covp.exploration.sweep.export import record
from covp.exploration.sweep.points import Row
from covp.exploration.sweep.result import SweepResult
from covp.report.memory_bound import memory_bound
from covp.report.table import Table, Value, numbers, texts

_MOST = 40
"""Rows of the table."""
_REASONS = 5
_TEXTS = ("model", "platform", "accelerators", "varied")


def print_result(result: SweepResult) -> None:
    """Print all rows that have figures if they are few; else those of the front."""
    good = [row for row in result.rows if row.is_ok]
    rows, title = good, ""
    if len(good) > _MOST:
        rows = _different(result)
        what = ", ".join(result.objectives)
        title = f"The front of {what} among {len(good):,} designs, of equal ones the first:"
    unknown = [name for name in result.objectives if all(getattr(r, name) is None for r in good)]
    if rows:
        _print_rows(rows[:_MOST], title)
    elif good and len(unknown) == len(result.objectives):
        echo(f"no front: no design has {', '.join(unknown)}; leave it out of `objectives`")
    elif good:
        echo(f"no front: {_why_empty(result)}")
    if len(rows) > _MOST:
        echo(f"and {len(rows) - _MOST:,} more on the front")
    for line in memory_bound([record(row, ()) for row in good]):
        echo(line)
    if rows and unknown:
        echo(f"no design has {', '.join(unknown)}: it decides nothing")
    _print_counts(result)


def _why_empty(result: SweepResult) -> str:
    """Return why the front is empty although designs have figures."""
    limits, rows = result.spec.limits, [row for row in result.rows if row.is_ok]
    if result.feasible:
        return f"no design has all of {', '.join(result.objectives)}"
    nearest = min(rows, key=lambda row: max(limit.excess(row) for limit in limits))
    broken = [
        f"{limit.figure} of {getattr(nearest, limit.figure):,}"
        for limit in limits
        if limit.holds(nearest) is False
    ]
    return f"every design breaks a constraint; the nearest one has {' and '.join(broken)}"


def _unknown(result: SweepResult) -> str:
    """Return the figures with a limit that designs lack which break none."""
    names = [limit.figure for limit in result.spec.limits]
    rows = result.feasible
    return ", ".join(n for n in dict.fromkeys(names) if any(getattr(r, n) is None for r in rows))


def _different(result: SweepResult) -> list[Row]:
    """Return the front without rows that have the same objectives as one before."""
    figures = {
        (row.model, *(getattr(row, name) for name in result.objectives)): row
        for row in reversed(result.front)
    }
    return list(reversed(figures.values()))


def _print_rows(rows: list[Row], title: str) -> None:
    figures = numbers(
        "cycles (est.)", "ms (est.)", "energy (est.)", "area (est.)", "flash", "RAM", "outputs"
    )
    cells = [_cells(row) for row in rows]
    # what is the same of all stands above the table
    same = [len({row[i] for row in cells}) == 1 and len(cells) > 1 for i in range(len(_TEXTS))]
    places = [i for i in range(len(cells[0])) if i >= len(_TEXTS) or not same[i]]
    common = ", ".join(str(cells[0][i]) for i in range(len(_TEXTS)) if same[i])
    columns = [*texts(*_TEXTS), *figures]
    table = Table(
        f"{title} {common}:".strip() if common else title,
        [columns[i] for i in places],
        [[row[i] for i in places] for row in cells],
        drop=("outputs", "RAM", "flash", "area (est.)", "energy (est.)", "ms (est.)"),
    )
    print_table(table)


def _cells(row: Row) -> tuple[Value, ...]:
    model = f"{row.model} (SYNTHETIC)" if row.model_source == "synthetic" else row.model
    varied = ", ".join(f"{name}={value}" for name, value in row.vary.items())
    outputs = {True: "bit-exact", False: "WRONG", None: None}[row.matches_reference]
    return (
        model, row.platform, " + ".join(row.accelerators) or "-", varied, row.cycles,
        _scale(row.seconds, 1e3, ""), _scale(row.energy_j, 1e6, " uJ"),
        _scale(row.area_um2, 1e-6, " mm2"), row.flash_bytes, row.ram_bytes, outputs,
    )  # fmt: skip


def _scale(value: float | None, factor: float, unit: str) -> str | None:
    return None if value is None else f"{value * factor:.4g}{unit}"


def _print_counts(result: SweepResult) -> None:
    """Print how many designs there are, which constraints they keep, and why others failed."""
    limits = result.spec.limits
    good = [row for row in result.rows if row.is_ok]
    echo(f"{len(good):,} designs with figures, {len(result.failed):,} failed")
    if limits:
        kept = [is_feasible(row, limits) for row in good]
        echo(f"{kept.count(True):,} keep all constraints: {', '.join(result.spec.constraints)}")
        if None in kept:
            echo(f"{kept.count(None):,} break none, but {_unknown(result)} is not known of them")
    unchecked = {row.cycles_model for row in good if row.cycles_model and row.cycles_error is None}
    if unchecked:
        echo(f"timing models without a known error: {', '.join(sorted(unchecked))}")
    reasons = list(dict.fromkeys(str(row.reason) for row in result.failed))
    for reason in reasons[:_REASONS]:
        count = sum(row.reason == reason for row in result.failed)
        echo(f"failed{f' ({count:,} designs)' if count > 1 else ''}: {reason}")
    if len(reasons) > _REASONS:
        echo(f"and {len(reasons) - _REASONS:,} more reasons: see them with --csv or --json")
