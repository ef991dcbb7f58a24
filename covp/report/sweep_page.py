"""`write_sweep_page`: the report of a sweep's points, and of what changed since another sweep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path

from covp.errors import UsageError
from covp.report import designs, point_columns
from covp.report.answer import answer
from covp.report.effects import GRID, effects
from covp.report.figures.pareto import pareto
from covp.report.figures.sensitivity import levels, sensitivity
from covp.report.memory_bound import memory_bound
from covp.report.objectives import HARDLY, OBJECTIVES, Objective, Row, hardly_vary, objectives_of
from covp.report.page import Facts, Figure, FigureTile, Note, PagePart, Section, Tiles, write_page
from covp.report.point_columns import SWEEP, Grid, PointColumn, Points, PointTable, columns_of
from covp.report.sweep_change import change, listing, summary
from covp.report.sweep_tables import best_designs, failures, front_designs

_MOST_FRONTS = 6


@dataclass(frozen=True)
class Sweep:
    """One sweep, as a report needs it.

    Attributes:
        label: what it is called beside others, e.g. its folder.
        rows: dictionaries with the names of the document ``covp.sweep/1``.
        objectives: that it was made for, by name, the first ones first; empty: all that differ.
        constraints: its limits, as text.
        feasible: of each row, whether it is within them; None where a figure is not known.
    """

    label: str
    rows: Sequence[Row]
    objectives: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    feasible: tuple[bool | None, ...] = ()


def read_sweep(folder: Path) -> Sweep:
    """Return all rows that a folder of ``covp sweep`` has, while it runs or later.

    Args:
        folder: the sweep's ``-o``, with its file and, unless the rows went to another store, them.

    Raises:
        UsageError: there is no sweep, it has no rows yet, or the extra ``sweep`` is not installed.
        CovpError: it cannot be read.
    """
    from covp.base.dependencies import load_extra
    from covp.exploration.sweep.export import record

    load_extra("sqlalchemy", "sweep")
    from covp.exploration.sweep.api import COPY, STORE
    from covp.exploration.sweep.reader import read_spec
    from covp.exploration.sweep.store import stored_rows

    if not (folder / COPY).is_file():
        raise UsageError("there is no sweep; `covp sweep FILE.yaml -o` makes one", where=folder)
    spec = read_spec(folder / COPY)
    rows = [record(row, spec.limits) for row in stored_rows(folder / STORE)]
    if not rows:
        raise UsageError(
            "the sweep has no rows yet; `covp sweep --status` tells more", where=folder
        )
    return Sweep(
        label=folder.resolve().name,
        rows=rows,
        objectives=spec.search.objectives,
        constraints=spec.constraints,
        feasible=tuple(row["feasible"] for row in rows),
    )


def write_sweep_page(path: Path, sweeps: Sequence[Sweep]) -> None:
    """Write the report of one sweep, or of several and what changed from each to the next.

    Args:
        path: of the HTML file, which is replaced.
        sweeps: oldest first.

    Raises:
        UsageError: the file cannot be written, or the extra ``report`` is not installed.
    """
    title = "Sweep " + ", ".join(sweep.label for sweep in sweeps)
    write_page(
        path,
        title,
        sweep_sections(sweeps),
        style=point_columns.style(),
        script=point_columns.script(),
    )


def sweep_sections(sweeps: Sequence[Sweep]) -> list[Section]:
    """Return the sections of the report."""
    several = len(sweeps) > 1
    rows = [
        {**row, SWEEP: sweep.label} if several else row
        for sweep in sweeps
        for row in designs.sort_rows(designs.shorten_names(sweep.rows))
    ]
    last = sweeps[-1]
    objectives = _objectives(rows, last.objectives)
    columns = columns_of(rows)
    same = hardly_vary(rows, objectives)
    varying = [one for one in objectives if one not in same]
    sections = [
        Section("Answer", [*_answer(last, objectives), *_warnings(rows)]),
        Section("Designs", _designs(columns, varying, same)),
        Section("Best", _best(last, objectives)),
        Section("Sensitivity", _sensitivity(last, varying)),
        Section("Points", _overview(rows, columns)),
    ]
    if several:
        sections.append(Section("Changes", _changes(sweeps, objectives)))
    failed = failures(rows)
    return [*sections, Section("Failed", [failed])] if failed.rows else sections


def _objectives(rows: Sequence[Row], named: Sequence[str]) -> list[Objective]:
    """Return the objectives that differ among the points, first those that the sweep names."""
    differ = objectives_of(rows)
    own = [OBJECTIVES[name] for name in named if name in OBJECTIVES]
    found = [*own, *(one for one in differ if one not in own)]
    return [one for one in found if any(row.get(one.name) is not None for row in rows)]


def _overview(rows: Sequence[Row], columns: Sequence[PointColumn]) -> list[PagePart]:
    worked = [row for row in rows if row["status"] == "ok"]
    run = sum(row.get("how") == "run" for row in worked)
    checked = [row["cycles_error"] for row in worked if row.get("cycles_error") is not None]
    error = f"at most ±{100 * max(checked):.2g} %" if checked else "of no timing model known"
    tiles = [
        FigureTile("Points", f"{len(rows):,}", f"{len(rows) - len(worked):,} failed"),
        FigureTile("Run", f"{run:,}", "emulated instruction by instruction"),
        FigureTile("Retimed", f"{len(worked) - run:,}", "from the trace of a run"),
        FigureTile("Error of cycles", error, f"{len(worked) - len(checked):,} points unchecked"),
    ]
    same = [
        (column.title, _one_level(column))
        for column in columns
        if len(column.levels) == 1 and column.role in ("factor", "parameter")
    ]
    models = ", ".join(
        dict.fromkeys(str(row["cycles_model"]) for row in worked if row.get("cycles_model"))
    )
    versions = ", ".join(dict.fromkeys(str(row.get("covp_version")) for row in rows))
    facts = [*same, ("Timing models", models or "none"), ("covp", versions)]
    text = (
        "Instructions are exact. Cycles, time and energy are estimates of the timing models "
        "named above; an error is that of the model on programs that it was not fitted on, and "
        "“unchecked” means that no real core was compared with."
    )
    return [Tiles(tiles), Facts(facts), Note(text)]


def _warnings(rows: Sequence[Row]) -> list[PagePart]:
    parts: list[PagePart] = []
    random = dict.fromkeys(str(r["model"]) for r in rows if r.get("model_source") == "synthetic")
    if random:
        parts.append(Note(f"The weights of {', '.join(random)} are random.", "warning"))
    wrong = sum(row.get("matches_reference") is False for row in rows)
    if wrong:
        parts.append(
            Note(f"{wrong:,} points compute something else than the reference.", "warning")
        )
    return parts


def _one_level(column: PointColumn) -> str:
    level = column.levels[0]
    return f"{level:,}" if column.format else str(level)


def _designs(
    columns: Sequence[PointColumn], objectives: Sequence[Objective], same: Sequence[Objective]
) -> list[PagePart]:
    """Return the figures of what varies; what hardly does is named with its values."""
    pairs = default_pairs(objectives)
    figures = [
        Figure(
            f"{x.name}-{y.name}",
            f"{x.title} and {y.title.lower() if y.title != 'RAM' else y.title}",
            pareto(x, y, columns).to_dict(),
            canvas=True,
        )
        for x, y in pairs
    ]
    note = (
        "Large points are not dominated by any other shown point of their model; the line is the "
        "front. Drag across a figure to choose points: the other figures and the table show these "
        "alone. A double click ends that."
    )
    parts: list[PagePart] = [Points(columns)]
    if figures:
        parts += [Note(note), Grid(figures)]
    if same:
        parts.append(Note(_hardly(columns, same)))
    return [*parts, *_levels(columns, objectives), PointTable("Points")]


def _hardly(columns: Sequence[PointColumn], same: Sequence[Objective]) -> str:
    levels = {column.key: column.levels for column in columns}
    ends = [
        f"{one.label} {levels[one.name][0]:,.6g} to {levels[one.name][-1]:,.6g}" for one in same
    ]
    return (
        f"Hardly vary (less than {100 * HARDLY:.0f} % over the points of a model), so without a "
        f"figure: {'; '.join(ends)}. The table has them."
    )


def _levels(columns: Sequence[PointColumn], objectives: Sequence[Objective]) -> list[PagePart]:
    """Return the figure of what each value of a parameter brings, where one was varied."""
    varied = [c for c in columns if c.role in ("parameter", "factor") and c.key != "model"]
    if not any(len(c.levels) > 1 for c in varied) or all(one.most for one in objectives):
        return []
    caption = "Of the points that the filters show; the bars hold the middle half of them."
    spec = levels(columns, objectives).to_dict()
    return [Figure("levels", "What each value brings", spec, caption)]


def default_pairs(objectives: Sequence[Objective]) -> list[tuple[Objective, Objective]]:
    """Return the first objective with each other one, then the others with each other; six at most.

    Cycles and time say much the same and are no pair while there is another one.
    """
    pairs = list(combinations(objectives, 2))
    others = [pair for pair in pairs if {one.name for one in pair} != {"cycles", "seconds"}]
    return (others or pairs)[:_MOST_FRONTS]


def _chosen(sweep: Sweep) -> list[Row]:
    """Return the rows that worked and do not break the constraints, in order."""
    feasible = sweep.feasible or (True,) * len(sweep.rows)
    rows = zip(designs.shorten_names(sweep.rows), feasible, strict=True)
    chosen: list[Row] = [row for row, good in rows if good is not False and row["status"] == "ok"]
    return designs.sort_rows(chosen)


def _answer(sweep: Sweep, objectives: Sequence[Objective]) -> list[PagePart]:
    found = answer(_chosen(sweep), objectives, ", ".join(sweep.constraints)) if objectives else []
    return found or [Note("No point has figures and satisfies the constraints.", "warning")]


def _best(sweep: Sweep, objectives: Sequence[Objective]) -> list[PagePart]:
    chosen = _chosen(sweep)
    if not chosen or not objectives:
        return [
            Note("No point satisfies the constraints: " + ", ".join(sweep.constraints), "warning")
        ]
    limits = ", ".join(sweep.constraints)
    text = f"Of the {len(chosen):,} points that do not break {limits}." if limits else ""
    unknown = sum(good is None for good in sweep.feasible)
    if unknown:
        text += f" Of {unknown:,} of them a figure with a limit is not known."
    return [best_designs(chosen, objectives, text), front_designs(chosen, objectives)]


def _sensitivity(sweep: Sweep, objectives: Sequence[Objective]) -> list[PagePart]:
    found = effects(designs.shorten_names(sweep.rows), objectives)
    if not found:
        return [Note("Nothing was varied, or nothing changed.", "missing")]
    exact = all(one.method == GRID for one in found)
    caption = (
        "The share of an objective's variance that a parameter alone brings (bar), and with all "
        "interactions (line); exact, as the points are a full grid."
        if exact
        else "Of points on a full grid the share of the variance that a parameter alone brings "
        "(bar), and with its interactions (line), exact. Of other points an association only: the "
        "squared rank correlation of a number, the variance between the means of names. The "
        "pointer on a bar tells which."
    )
    spec = sensitivity(found, designs.FACTORS).to_dict()
    notes = [Note(line) for line in memory_bound(designs.shorten_names(sweep.rows))]
    return [Figure("sensitivity", "Which parameter matters most", spec, caption), *notes]


def _changes(sweeps: Sequence[Sweep], objectives: Sequence[Objective]) -> list[PagePart]:
    parts: list[PagePart] = []
    for old, new in pairwise(sweeps):
        before, after = (designs.sort_rows(designs.shorten_names(one.rows)) for one in (old, new))
        found = change(before, after)
        differing = len(found.differences)
        text = (
            f"From {old.label} to {new.label}: {len(found.both):,} points are in both, "
            f"{differing:,} of them differ; {len(found.only_before):,} are only in {old.label}, "
            f"{len(found.only_after):,} only in {new.label}."
        )
        parts.append(Note(text))
        if found.both:
            parts.append(summary(found, objectives))
        if differing:
            parts.append(listing(found, objectives))
    return parts
