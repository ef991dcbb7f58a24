"""`evaluate_points`: the rows of points, in a worker process or in this one.

Points that differ in parameters of time alone are designs of one program: it is built and run once,
with these parameters as the files say, and the points are retimed from the trace of that run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from covp.errors import CovpError
from covp.evaluation.varied import PLATFORM
from covp.exploration.retiming import Retimed, retime
from covp.exploration.sweep.estimates import area_um2, cycles_source
from covp.exploration.sweep.points import Point, Row
from covp.exploration.sweep.runs import RecordedDesign, build_and_run, timing_only

Figures = dict[str, Any]


def evaluate_points(points: Sequence[Point]) -> list[Row]:
    """Return the rows of points, in their order.

    A function of the points alone: whoever calls it, in whatever process and together with
    whatever other points, gets the same rows. A point that fails is a row with the reason.
    """
    programs: dict[tuple[Point, tuple[str, ...]], list[int]] = {}
    for number, point in enumerate(points):
        programs.setdefault(_program(point), []).append(number)
    rows: dict[int, Row] = {}
    for (base, free), numbers in programs.items():
        own = [points[number] for number in numbers]
        rows |= zip(numbers, _rows(base, free, own), strict=True)
    return [rows[number] for number in range(len(points))]


def _program(point: Point) -> tuple[Point, tuple[str, ...]]:
    """Return the design that runs for a point, and the parameters in which the point differs."""
    try:
        free = timing_only(point)
    except CovpError:
        free = frozenset()  # it will fail when it is built
    fixed = tuple(pair for pair in point.vary if pair[0] not in free)
    return point.like(fixed), tuple(sorted(free))


def _rows(base: Point, free: Sequence[str], points: Sequence[Point]) -> list[Row]:
    """Return the rows of points of one program.

    Args:
        base: the program, with what is free as the files say.
        free: the parameters that are retimed.
        points: with a value for each of them.
    """
    try:
        found = build_and_run(base, with_trace=bool(free), like=points if free else ())
    except CovpError as error:
        return [point.row(_failure(error)) for point in points]
    if not free:
        return [point.row(found.figures) for point in points]
    figures = _retime(found, free, points)
    left = [number for number, each in enumerate(figures) if each is None]
    if found.trace is not None and found.trace.places.contests:
        _place_anew(free, points, figures, left)
    return [
        point.row(_alone(point) if each is None else each)
        for point, each in zip(points, figures, strict=True)
    ]


def _place_anew(
    free: Sequence[str],
    points: Sequence[Point],
    figures: list[Figures | None],
    left: Sequence[int],
) -> None:
    """Retime points whose layers are elsewhere, each from a run of one that has them there.

    Args:
        free, points: as of `_rows`.
        figures: of the points; set where they are retimed.
        left: the numbers of the points that are to be.
    """
    while left:
        try:
            found = build_and_run(points[left[0]], True, [points[number] for number in left])
        except CovpError:
            retimed: list[Figures | None] = [None] * len(left)
        else:
            retimed = _retime(found, free, [points[number] for number in left])
        for number, own in zip(left, retimed, strict=True):
            figures[number] = own
        # the first is retimed from its own run, or cannot be at all
        left = [number for number in left[1:] if figures[number] is None]


def _retime(
    found: RecordedDesign, free: Sequence[str], points: Sequence[Point]
) -> list[Figures | None]:
    """Return the figures of points of one program by retiming; None: the point has to run."""
    trace = found.trace
    if trace is None:
        return [None] * len(points)
    owners = {PLATFORM, *trace.places.backends}
    known = [name for name in free if name.partition(".")[0] in owners]  # others do nothing here
    values = [point.values for point in points]
    try:
        designs = retime(trace, {name: [each[name] for each in values] for name in known})
    except CovpError:
        # one of them has a value that is not allowed; the others are as they are without it
        half = len(points) // 2
        parts = (points[:half], points[half:]) if half else ()
        return [each for part in parts for each in _retime(found, free, part)] or [None]
    exact = _repeat(designs.is_exact, len(points))
    return [
        {**found.figures, **own, **cycles_source(point), "area_um2": area_um2(point)}
        if is_exact
        else None
        for point, own, is_exact in zip(points, _figures(designs, len(points)), exact, strict=True)
    ]


def _figures(designs: Retimed, count: int) -> list[Figures]:
    """Return the figures that differ between designs, for each of ``count`` designs."""
    columns = {
        "cycles": _repeat(designs.cycles, count),
        "seconds": _repeat(designs.seconds, count),
        "waiting": _repeat(designs.waiting, count),
        "instructions": _repeat(designs.instructions, count),
        "energy_j": _repeat(designs.energy_j, count),
        "how": ["retimed"] * count,
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _repeat(column: Any, count: int) -> list[Any]:
    """Return the values of ``count`` designs; a single one is repeated."""
    if column is None:
        return [None] * count
    values: list[Any] = column.tolist()
    return values * count if len(values) == 1 else values


def _alone(point: Point) -> Figures:
    """Return the figures of a point that runs with all of its values."""
    try:
        return build_and_run(point).figures
    except CovpError as error:
        return _failure(error)


def _failure(error: CovpError) -> Figures:
    return {"status": "failed", "reason": " ".join(str(error).split())}
