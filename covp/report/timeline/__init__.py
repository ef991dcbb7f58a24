"""Timelines of a run: for ui.perfetto.dev, and register accesses as a value change dump."""

from covp.report.timeline.chrome import trace_events, write_trace
from covp.report.timeline.files import demand_writable
from covp.report.timeline.of_run import recording, timeline_of, timeline_of_log
from covp.report.timeline.tracks import CounterTrack, Slice, Timeline, Track
from covp.report.timeline.vcd import write_vcd

__all__ = [
    "CounterTrack",
    "Slice",
    "Timeline",
    "Track",
    "demand_writable",
    "recording",
    "timeline_of",
    "timeline_of_log",
    "trace_events",
    "write_trace",
    "write_vcd",
]
