"""Functions as nested slices, from the marks at which the core entered another function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

from covp.device.machine.mark_log import BUCKET, CALL
from covp.device.timeline import JobSpan, TimelineLog, Transfer
from covp.report.timeline.phases import CycleWindow
from covp.report.timeline.tracks import CounterTrack, Slice, of_args

NO_FUNCTION = "(no function)"
"""Code outside of functions, and the hardware's own steps into and out of handlers."""


class _Stretch(NamedTuple):
    """A function runs, and none that it calls."""

    function: int
    is_call: bool
    start: int
    end: int
    short_cycles: int
    short_calls: int


@dataclass(slots=True)
class _Frame:
    """A function that was entered and has not returned."""

    function: int
    start: int
    end: int = 0
    own: int = 0
    short_cycles: int = 0
    short_calls: int = 0


def function_slices(log: TimelineLog, windows: Sequence[CycleWindow]) -> list[Slice]:
    """Return every call of a function in some windows, in cycles of the device's clock.

    A function that is entered at its first address was called by the one before; one that is
    entered elsewhere and was called earlier goes on, and all that were called since have returned.
    """
    end = log.marks.lost_at if log.marks.lost else log.end
    stretches = list(_stretches(log, end))
    known = [CycleWindow(window.start, min(window.end, end)) for window in windows]
    return [
        _slice(log, frame)
        for window in known
        for frame in _frames(_clip(stretches, window), window)
        if frame.start < frame.end
    ]


def _stretches(log: TimelineLog, end: int) -> Iterator[_Stretch]:
    marks: Any = log.marks.marks
    marks = marks[marks["kind"] != BUCKET]
    ends = [*marks["cycle"].tolist()[1:], end]
    for mark, end in zip(marks.tolist(), ends, strict=False):
        cycle, _, short_cycles, short_calls, kind, number, *_ = mark
        yield _Stretch(number, kind == CALL, cycle, end, short_cycles, short_calls)


def _clip(stretches: Iterable[_Stretch], window: CycleWindow) -> Iterator[_Stretch]:
    for stretch in stretches:
        part = window.clip(stretch.start, stretch.end)
        if part is None:
            continue
        yield _Stretch(
            stretch.function, stretch.is_call, *part, stretch.short_cycles, stretch.short_calls
        )


def _frames(stretches: Iterable[_Stretch], window: CycleWindow) -> list[_Frame]:
    """Return frames in the order in which they were entered."""
    frames: list[_Frame] = []
    stack: list[_Frame] = []
    for stretch in stretches:
        if not stretch.is_call and any(f.function == stretch.function for f in stack):
            while stack[-1].function != stretch.function:
                stack.pop().end = stretch.start
        else:
            stack.append(_Frame(stretch.function, stretch.start))
            frames.append(stack[-1])
        top = stack[-1]
        top.own += stretch.end - stretch.start - stretch.short_cycles
        top.short_cycles += stretch.short_cycles
        top.short_calls += stretch.short_calls
    for frame in stack:
        frame.end = window.end
    return frames


def _slice(log: TimelineLog, frame: _Frame) -> Slice:
    is_short = frame.short_calls or None
    return Slice(
        log.functions[frame.function] or NO_FUNCTION,
        frame.start,
        frame.end,
        of_args(
            [
                ("self_cycles", frame.own),
                ("short_calls", is_short and frame.short_calls),
                ("short_call_cycles", is_short and frame.short_cycles),
            ]
        ),
    )


def short_calls(log: TimelineLog) -> dict[str, tuple[int, int]]:
    """Return functions whose calls are too short for slices: their number, and own cycles."""
    found: dict[str, tuple[int, int]] = {}
    for number, (cycles, calls) in enumerate(log.marks.short.tolist()):
        if calls:
            name = log.functions[number] or NO_FUNCTION
            before = found.get(name, (0, 0))  # static functions may have the same name
            found[name] = before[0] + calls, before[1] + cycles
    return found


MOST_POINTS = 2000
"""Points of a counter; more are thinned out evenly, the last one stays."""

Point = tuple[int, float]


def thin_out(points: Sequence[Point]) -> tuple[Point, ...]:
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
    """Return bytes that each master has read from, and written to, each memory."""
    totals: Counter[tuple[str, str]] = Counter()
    points: dict[tuple[str, str], list[Point]] = {}
    for transfer in transfers:
        what = "written" if transfer.is_write else "read"
        key = transfer.master, f"{transfer.memory}: bytes {what}"
        totals[key] += transfer.size
        points.setdefault(key, []).append((transfer.cycle, totals[key]))
    return [CounterTrack(*key, tuple(found)) for key, found in points.items()]
