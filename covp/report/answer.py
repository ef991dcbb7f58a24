"""`answer`: what a sweep found, in a sentence for each model, and its parameters as figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from covp.report import designs
from covp.report.figures.parameters import Line, curves, heat_map
from covp.report.objectives import HARDLY, Objective, Row, shown, values
from covp.report.page import Figure, Note, PagePart
from covp.report.point_columns import Grid, certainty
from covp.report.sweep_tables import best

_MOST_MAPS = 6
_UNITS = {"macs_per_cycle": "MACs a cycle", "bytes_per_cycle": "bytes a cycle"}


def answer(
    rows: Sequence[Row], objectives: Sequence[Objective], limits: str = ""
) -> list[PagePart]:
    """Return the best point of each model by the first objective, and what parameters do to it.

    Args:
        rows: that worked and satisfy the constraints, in order: of equal points the first is best.
        objectives: the first one decides; of equal points the others.
        limits: the constraints as text.
    """
    models = list(dict.fromkeys(str(row["model"]) for row in rows))
    of_models = [[row for row in rows if row["model"] == model] for model in models]
    sentences = [_sentence(of_one, objectives, limits) for of_one in of_models]
    parts: list[PagePart] = [Note(text) for text in sentences if text]
    figures = list(_figures(rows, objectives))
    return [*parts, *(figures if len(figures) == 1 else [Grid(figures)] if figures else [])]


def _sentence(rows: Sequence[Row], objectives: Sequence[Objective], limits: str) -> str:
    """Empty where no point has the first objective."""
    first, found = objectives[0], best(rows, objectives)
    if found is None:
        return ""
    sure = f", {certainty(found)}" if first.name in ("cycles", "seconds") else ""
    kind = f" (estimated{sure})" if first.figure.kind == "estimated" else ""
    alone = [row for row in rows if designs.setup(row) == designs.CORE_ALONE]
    other, name = best(alone, objectives), "the best core alone"
    if other is None or found in alone:
        worst = first.reverse()
        other, name = best(rows, [worst]), "the worst of the points"
    within = f" within {limits}" if limits else ""
    told = [
        f"{found['model']}{within}: {_design(found)}: {_amount(first, found[first.name])}{kind}",
        _compare(first, found[first.name], other[first.name] if other else 0, name),
    ]
    enough = ", ".join(_enough(rows, found, first))
    if found in alone and len(alone) < len(rows):
        enough = "no accelerator is better"
    return f"{''.join(told)}{f'; {enough}' if enough else ''}."


def _design(row: Row) -> str:
    """Such as "qconv2d on riscv32 with 64 MACs a cycle and 8 bytes a cycle"."""
    said = [_value(row, name, value) for name, value in (row.get("vary") or {}).items()]
    listed = " and ".join(filter(None, (", ".join(said[:-1]), said[-1]))) if said else ""
    return f"{designs.setup(row)} on {row['platform']}{f' with {listed}' if said else ''}"


def _value(row: Row, name: str, value: Any) -> str:
    owner, _, last = name.rpartition(".")
    number = f"{value:,}" if isinstance(value, int) else str(value)
    if last in _UNITS:
        return f"{number} {_UNITS[last]}"
    single = len(row.get("accelerators") or ()) == 1 and not owner.startswith("platform")
    title = last if single else name.removeprefix("platform.")
    return f"{title.replace('_', ' ').replace('.', ' ')} {number}"


def _amount(objective: Objective, value: float) -> str:
    if objective.unit in ("J", "s"):
        return shown(value, objective.unit)
    if objective.most:
        return f"{objective.title.lower()} {value:.4f}"
    return f"{value:,.0f} {objective.unit or objective.title.lower()}"


def _compare(objective: Objective, value: float, other: float, name: str) -> str:
    if value == other or not value or not other:
        return ""
    if objective.most:
        return f", {name} has {other:.4f}"
    ratio = other / value
    by = (
        f"{ratio:,.{0 if ratio >= 10 else 1}f} times"
        if ratio >= 2
        else f"{100 * abs(1 - 1 / ratio):.1f} %"
    )
    return f", {by} {'less' if ratio > 1 else 'more'} than {name}"


def _enough(rows: Sequence[Row], found: Row, objective: Objective) -> Iterator[str]:
    """Yield the parameters whose greater values bring nothing, all else as in the best."""
    for name in found.get("vary") or {}:
        line = _line(rows, found, name)
        points = [(row["vary"][name], float(row[objective.name])) for row in line]
        if len(points) < 2 or any(isinstance(v, (str, bool)) for v, _ in points):
            continue
        points.sort()
        same = [abs(y - found[objective.name]) <= HARDLY * abs(found[objective.name])
                for _, y in points]  # fmt: skip
        i = same.index(True)
        if 0 < i < len(points) - 1 and all(same[i:]):
            gain = (
                "nothing"
                if len({y for _, y in points[i:]}) == 1
                else f"less than {100 * HARDLY:.0f} %"
            )
            brings = "brings" if objective.most else "saves"
            yield f"more than {_value(found, name, points[i][0])} {brings} {gain}"


def _line(rows: Sequence[Row], found: Row, name: str) -> list[Row]:
    """Return the points that are as one in all but a parameter, by its value."""

    def but_one(row: Row) -> Any:
        own = tuple(designs.factor(row, factor) for factor in designs.FACTORS)
        return own, {n: v for n, v in (row.get("vary") or {}).items() if n != name}

    wanted = but_one(found)
    return [row for row in rows if name in (row.get("vary") or {}) and but_one(row) == wanted]


def _figures(rows: Sequence[Row], objectives: Sequence[Objective]) -> Iterator[Figure]:
    """Yield a heat map of two varied parameters per set-up, else a figure per parameter."""
    first = objectives[0]
    known = values(rows, first.name)
    rows = [row for row, y in zip(rows, known, strict=True) if y == y]  # not NaN
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        own = tuple(designs.factor(row, factor) for factor in designs.FACTORS)
        groups.setdefault(own, []).append(row)
    differ = [len(set(column)) > 1 for column in zip(*groups, strict=True)]
    names = {own: ", ".join(str(v) for v, d in zip(own, differ, strict=True) if d and v)
             for own in groups}  # fmt: skip
    varied = {own: _list_variables(members) for own, members in groups.items()}
    all_varied = list(dict.fromkeys(name for some in varied.values() for name in some))
    both = [own for own, some in varied.items() if len(some) == 2]
    if len(all_varied) == 2 and 0 < len(both) <= _MOST_MAPS:
        alone = [f"{names[own] or designs.CORE_ALONE} {_amount(first, one[first.name])}"
                 for own, members in groups.items() if not varied[own]
                 for one in [best(members, objectives)] if one]  # fmt: skip
        caption = f"Without these parameters: {'; '.join(alone)}." if alone else ""
        for i, own in enumerate(both, 1):
            yield heat_map(f"map-{i}", groups[own], all_varied, first, names[own], caption)
        return
    for i, name in enumerate(all_varied, 1):
        lines = []
        for own, members in groups.items():
            found = best(members, objectives)
            points = _line(members, found, name) if found else []
            if name in varied[own] and len(points) > 1:
                lines.append(Line(names[own], points))
            elif found and designs.setup(found) == designs.CORE_ALONE:
                lines.append(Line(names[own], [found], level=True))
        lines = _together(lines, name, first.name)
        if not all(line.level for line in lines):
            yield curves(f"curve-{i}", name, lines, first, len(all_varied) > 1)


def _together(lines: Sequence[Line], parameter: str, figure: str) -> list[Line]:
    """Return one line in place of those that would cover each other."""
    alike: dict[Any, list[Line]] = {}
    for line in lines:
        there = tuple((r["vary"].get(parameter), r[figure]) for r in line.points)
        alike.setdefault((line.level, there), []).append(line)
    return [replace(some[0], name=" = ".join(one.name for one in some)) for some in alike.values()]


def _list_variables(rows: Sequence[Row]) -> list[str]:
    return [n for n in designs.parameters(rows) if len({designs.factor(r, n) for r in rows}) > 1]
