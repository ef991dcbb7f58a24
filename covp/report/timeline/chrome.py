"""Chrome's trace-event format, which ui.perfetto.dev and chrome://tracing read.

"Trace Event Format", Google 2016: complete events "X", counters "C", metadata "M"; times are
microseconds. Theirs have three decimals here, as Perfetto keeps nanoseconds. A cycle need not be a
whole number of those, so every slice also has its cycles.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from covp.report.timeline.files import written_whole
from covp.report.timeline.tracks import CounterTrack, Slice, Timeline, Track

Json = dict[str, Any]


def trace_events(timelines: Mapping[str, Timeline]) -> Iterator[Json]:
    """Yield the events of several timelines side by side.

    Args:
        timelines: by a name that stands before those of their owners; empty where there is one.
    """
    process = 0
    for name, timeline in timelines.items():
        owners = dict.fromkeys(
            [*(t.owner for t in timeline.tracks), *(c.owner for c in timeline.counters)]
        )
        for owner in owners:
            process += 1
            yield _about(process, "process_name", {"name": f"{name} {owner}".strip()})
            yield _about(process, "process_sort_index", {"sort_index": process})
            own = [track for track in timeline.tracks if track.owner == owner]
            for thread, track in enumerate(own, 1):
                yield from _track_events(process, thread, track, timeline.clock_hz)
            for counter in timeline.counters:
                if counter.owner == owner:
                    yield from _counter_events(process, counter, timeline.clock_hz)


def write_trace(path: str | Path, timelines: Timeline | Mapping[str, Timeline]) -> None:
    """Write a JSON file for ui.perfetto.dev; as a whole, or not at all.

    Args:
        path: of the file.
        timelines: one, or several by name, side by side.

    Raises:
        CovpError: the file cannot be written.
    """
    named = {"": timelines} if isinstance(timelines, Timeline) else timelines
    about = [
        {**({"run": name} if name else {}), **one.about, "notes": list(one.notes)}
        for name, one in named.items()
    ]
    with written_whole(path) as file:
        file.write('{"displayTimeUnit": "ns",\n"otherData": ')
        file.write(json.dumps(about[0] if len(about) == 1 else {"runs": about}))
        file.write(',\n"traceEvents": [')
        separator, encoder = "\n", json.JSONEncoder(separators=(",", ":"))
        for event in trace_events(named):
            file.write(separator + encoder.encode(event))
            separator = ",\n"
        file.write("\n]}\n")


def _about(process: int, name: str, args: Json, thread: int = 0) -> Json:
    return {"ph": "M", "pid": process, "tid": thread, "name": name, "args": args}


def _track_events(process: int, thread: int, track: Track, hertz: int) -> Iterator[Json]:
    yield _about(process, "thread_name", {"name": track.name}, thread)
    yield _about(process, "thread_sort_index", {"sort_index": thread}, thread)
    for one in _outer_first(track.slices):
        start = _nanoseconds(one.start, hertz)
        yield {
            "ph": "X",
            "pid": process,
            "tid": thread,
            "ts": start / 1000,
            "dur": (_nanoseconds(one.end, hertz) - start) / 1000,
            "name": one.name,
            "cat": track.name,
            "args": {"start_cycle": one.start, "cycles": one.cycles, **one.args},
        }


def _outer_first(slices: Sequence[Slice]) -> Sequence[Slice]:
    return sorted(slices, key=lambda one: (one.start, -one.end))


def _counter_events(process: int, counter: CounterTrack, hertz: int) -> Iterator[Json]:
    # Perfetto calls a counter by the names of the event and of its value
    name, _, what = counter.name.rpartition(" ")
    for cycle, value in counter.points:
        yield {
            "ph": "C",
            "pid": process,
            "tid": 0,
            "ts": _nanoseconds(cycle, hertz) / 1000,
            "name": name,
            "args": {what: value},
        }


def _nanoseconds(cycle: int, hertz: int) -> int:
    """Rounded down, so that what lies in a slice still does."""
    return cycle * 1_000_000_000 // hertz
