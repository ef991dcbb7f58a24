"""Numbers over time: instructions, multiply-accumulates of units, bytes that masters moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate

from covp.device.timeline import JobSpan, TimelineLog, Transfer
from covp.report.timeline.tracks import CounterTrack

MOST_POINTS = 2000
"""Points of a counter; more are thinned out evenly, the last one stays."""

Point = tuple[int, float]


def thinned(points: Sequence[Point]) -> tuple[Point, ...]:
    """At most `MOST_POINTS`; of several at the same cycle the last."""
    latest = sorted(dict(points).items())
    step = max(1, -(-len(latest) // MOST_POINTS))
    return (*latest[:-1:step], *latest[-1:])


def instruction_points(log: TimelineLog) -> list[Point]:
    """Retired since the recording began, at the entries of functions and phases."""
    first, last = log.instructions
    marks = log.marks.marks
    points = zip(marks["cycle"].tolist(), (marks["instructions"] - first).tolist(), strict=True)
    return [(log.begin, 0), *points, (log.end, last - first)]


def mac_points(jobs: Sequence[JobSpan]) -> list[Point]:
    """Multiply-accumulates that a unit has done; empty where its model says of none."""
    totals = accumulate(job.record.macs or 0 for job in jobs)
    points: list[Point] = [(job.end, total) for job, total in zip(jobs, totals, strict=True)]
    return points if points and points[-1][1] else []


def byte_counters(transfers: Iterable[Transfer]) -> list[CounterTrack]:
    """Bytes that each master has read from, and written to, each memory."""
    totals: Counter[tuple[str, str]] = Counter()
    points: dict[tuple[str, str], list[Point]] = {}
    for transfer in transfers:
        what = "written" if transfer.is_write else "read"
        key = transfer.master, f"{transfer.memory}: bytes {what}"
        totals[key] += transfer.size
        points.setdefault(key, []).append((transfer.cycle, totals[key]))
    return [CounterTrack(*key, tuple(found)) for key, found in points.items()]
