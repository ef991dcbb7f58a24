"""A reader of Chrome's trace-event format, written from its specification, that takes no errors.

"Trace Event Format" (Google, 2016): "Complete Events", "Counter Events", "Metadata Events", "JSON
Object Format".
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

_KEYS = {
    "X": {"ph", "pid", "tid", "ts", "dur", "name", "cat", "args"},
    "C": {"ph", "pid", "tid", "ts", "name", "args"},
    "M": {"ph", "pid", "tid", "name", "args"},
}


@dataclass
class ReadSlice:
    name: str
    start: int
    end: int
    nanoseconds: tuple[int, int]
    args: dict[str, Any]
    inner: list[ReadSlice] = field(default_factory=list)

    @property
    def cycles(self) -> int:
        return self.end - self.start


@dataclass
class ReadTrace:
    """By the names of process and thread, or process and counter; times of counters in ns."""

    about: dict[str, Any]
    tracks: dict[tuple[str, str], list[ReadSlice]]
    counters: dict[tuple[str, str], list[tuple[int, float]]]


def read_trace(path: Path) -> ReadTrace:
    """The content of a file; AssertionError where something does not hold."""
    document = json.loads(path.read_text())
    assert set(document) == {"displayTimeUnit", "otherData", "traceEvents"}
    assert document["displayTimeUnit"] == "ns"
    names: dict[tuple[str, int, int], str] = {}
    slices: dict[tuple[int, int], list[ReadSlice]] = defaultdict(list)
    points: dict[tuple[int, str], list[tuple[int, float]]] = defaultdict(list)
    for event in document["traceEvents"]:
        kind, pid, tid, args = (event[key] for key in ("ph", "pid", "tid", "args"))
        assert set(event) == _KEYS[kind] and isinstance(pid, int) and isinstance(tid, int), event
        if kind == "X":
            slices[pid, tid].append(_slice(event))
        elif kind == "C":
            ((what, value),) = args.items()
            points[pid, f"{event['name']} {what}"].append((_nanoseconds(event["ts"]), value))
        elif event["name"] in ("process_sort_index", "thread_sort_index"):
            assert set(args) == {"sort_index"} and isinstance(args["sort_index"], int)
        else:
            assert event["name"] in ("process_name", "thread_name") and set(args) == {"name"}
            key = event["name"], pid, tid
            assert key not in names and (tid == 0) == (event["name"] == "process_name")
            names[key] = args["name"]
    for found in slices.values():
        _nest(found)
    for series in points.values():
        assert all(a[0] < b[0] for a, b in pairwise(series)), series
    processes = {pid: name for (kind, pid, _), name in names.items() if kind == "process_name"}
    assert len(set(processes.values())) == len(processes)
    tracks = {
        (processes[pid], names["thread_name", pid, tid]): found
        for (pid, tid), found in slices.items()
    }
    assert len(tracks) == len(slices), "two tracks of one name"
    counters = {(processes[pid], name): series for (pid, name), series in points.items()}
    return ReadTrace(document["otherData"], tracks, counters)


def _slice(event: dict[str, Any]) -> ReadSlice:
    start, args = _nanoseconds(event["ts"]), event["args"]
    assert isinstance(event["name"], str) and event["name"]
    return ReadSlice(
        event["name"],
        args["start_cycle"],
        args["start_cycle"] + args["cycles"],
        (start, start + _nanoseconds(event["dur"])),
        args,
    )


def _nanoseconds(time: float) -> int:
    value = Fraction(str(time)) * 1000
    assert value.denominator == 1 and value >= 0, f"{time} us is no whole number of nanoseconds"
    return int(value)


def _nest(slices: list[ReadSlice]) -> None:
    """Each lies in those before it that have not ended, in cycles and in nanoseconds."""
    assert all(a.start <= b.start for a, b in pairwise(slices))
    stack: list[ReadSlice] = []
    for one in slices:
        assert one.start <= one.end
        while stack and stack[-1].end <= one.start:
            stack.pop()
        if stack:
            outer = stack[-1]
            assert one.end <= outer.end, (outer, one)
            assert outer.nanoseconds[0] <= one.nanoseconds[0], (outer, one)
            assert one.nanoseconds[1] <= outer.nanoseconds[1], (outer, one)
            outer.inner.append(one)
        stack.append(one)
