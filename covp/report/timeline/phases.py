"""Phases over time, and which parts of a recording belong to the program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from covp.device.machine.mark_log import BUCKET
from covp.device.timeline import TimelineLog

_OUTSIDE = 0


@dataclass(frozen=True)
class PhaseSpan:
    """A phase was current.

    Attributes:
        phase: its number.
        start, end: cycles of the device's clock.
        instructions: retired in it.
    """

    phase: int
    start: int
    end: int
    instructions: int


class CycleWindow(NamedTuple):
    """Cycles of the device's clock."""

    start: int
    end: int

    def clip(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the part of the cycles from ``start`` to ``end`` in the window, or None.

        A moment, of no cycles, is its own part.
        """
        first, last = max(start, self.start), min(end, self.end)
        return (first, last) if first < last or first == last == start == end else None


def phase_spans(log: TimelineLog) -> list[PhaseSpan]:
    """Return all phases of a recording, in the order of time; empty ones are left out."""
    marks = log.marks.marks
    changes = [
        (log.begin, log.instructions[0], log.phase),
        *(
            (int(mark["cycle"]), int(mark["instructions"]), int(mark["number"]))
            for mark in marks[marks["kind"] == BUCKET]
        ),
        (log.end, log.instructions[1], -1),
    ]
    return [
        PhaseSpan(phase, start, end, after - before)
        for (start, before, phase), (end, after, _) in pairwise(changes)
        if start < end
    ]


def windows(spans: Sequence[PhaseSpan]) -> list[CycleWindow]:
    """Return the parts of a recording in which the program ran; all where no phases were set."""
    if all(span.phase == _OUTSIDE for span in spans):
        return [CycleWindow(spans[0].start, spans[-1].end)] if spans else []
    return list(_inside(spans))


def _inside(spans: Sequence[PhaseSpan]) -> Iterator[CycleWindow]:
    start: int | None = None
    for span in spans:
        if span.phase == _OUTSIDE:
            if start is not None:
                yield CycleWindow(start, span.start)
            start = None
        elif start is None:
            start = span.start
    if start is not None:
        yield CycleWindow(start, spans[-1].end)
