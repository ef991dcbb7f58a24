"""Tracks of a recording: what the core, units, peripherals and the bus did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from covp.device.timeline import TimelineLog
from covp.report.timeline import units
from covp.report.timeline.calls import (
    Point,
    byte_counters,
    function_slices,
    instruction_points,
    mac_points,
    short_calls,
    thin_out,
)
from covp.report.timeline.phases import CycleWindow
from covp.report.timeline.tracks import CounterTrack, Slice, Track

CORE, INTERRUPTS, REGISTERS = "core", "interrupts", "register accesses"
"""Owners of tracks; others are masters of the bus, of which the core is one."""


def tracks_of(log: TimelineLog, inside: Sequence[CycleWindow]) -> list[Track]:
    """Return all tracks but the layers', in cycles of the device, clipped to some windows."""
    found = [
        Track(CORE, "functions", tuple(function_slices(log, inside))),
        Track(CORE, "waiting", _clip_slices(units.stall_slices(log.stalls, log.jobs), inside)),
    ]
    for unit in _names(job.unit for job in log.jobs):
        jobs = [job for job in log.jobs if job.unit == unit]
        found.append(Track(unit, "jobs", _clip_slices(units.job_slices(jobs), inside)))
        for engine, steps in units.engine_slices(jobs).items():
            found.append(Track(unit, engine, _clip_slices(steps, inside)))
    busy = {job.unit for job in log.jobs}
    for master in _names(transfer.master for transfer in log.transfers):
        if master not in busy:
            own = [transfer for transfer in log.transfers if transfer.master == master]
            slices = _clip_slices(units.transfer_slices(own), inside)
            found.append(Track(master, "transfers", slices))
    found += [*_register_tracks(log, inside), *_interrupt_tracks(log, inside)]
    return [track for track in found if track.slices]


def _register_tracks(log: TimelineLog, inside: Sequence[CycleWindow]) -> Iterator[Track]:
    accesses = list(units.one_by_one(log.accesses))
    for name, place in log.places.items():
        own = (access for access in accesses if access.peripheral == name)
        yield Track(REGISTERS, name, _clip_slices(units.access_slices(own, place), inside))


def _interrupt_tracks(log: TimelineLog, inside: Sequence[CycleWindow]) -> Iterator[Track]:
    names = {place.line: name for name, place in log.places.items() if place.line is not None}
    handlers = units.handler_slices(log.handlings, names, log.end)
    yield Track(INTERRUPTS, "handlers", _clip_slices(handlers, inside))
    for name, place in log.places.items():
        changes = [change for change in log.changes if change.peripheral == name]
        slices = _clip_slices(units.line_slices(changes, log.end), inside)
        yield Track(INTERRUPTS, f"line {place.line}: {name}", slices)


def counters_of(log: TimelineLog, inside: Sequence[CycleWindow]) -> list[CounterTrack]:
    """Return numbers over time, in cycles of the device's clock."""
    found = [CounterTrack(CORE, "instructions retired", tuple(instruction_points(log)))]
    for unit in _names(job.unit for job in log.jobs):
        jobs = [job for job in log.jobs if job.unit == unit]
        found.append(CounterTrack(unit, "MACs done", tuple(mac_points(jobs))))
    found += byte_counters(log.transfers)
    clipped = [CounterTrack(one.owner, one.name, _within(one.points, inside)) for one in found]
    return [one for one in clipped if one.points]


def notes_of(log: TimelineLog) -> list[str]:
    """Return what is left out, one line each."""
    notes = []
    if short := short_calls(log):
        calls = sum(count for count, _ in short.values())
        notes.append(
            f"{calls:,} calls of less than {log.marks.shortest:,} cycles have no slice: they are "
            "short_call_cycles of their callers"
        )
    if log.marks.lost:
        notes.append(f"the last {log.marks.lost:,} entries of functions are left out")
    for kind, count in log.lost.items():
        notes.append(f"the last {count:,} events of kind {kind} are left out")
    return notes


def _names(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _clip_slices(slices: Iterable[Slice], inside: Sequence[CycleWindow]) -> tuple[Slice, ...]:
    """Return the parts of slices that lie in some windows."""
    return tuple(
        replace(one, start=part[0], end=part[1])
        for one in slices
        for window in inside
        if (part := window.clip(one.start, one.end)) is not None
    )


def _within(points: Iterable[Point], inside: Sequence[CycleWindow]) -> tuple[Point, ...]:
    """Return points of a sum, which begins at 0, from the first window to the end of the last."""
    start, end = inside[0].start, inside[-1].end
    given = list(points)
    base = max((value for cycle, value in given if cycle <= start), default=0)
    own = [(cycle, value - base) for cycle, value in given if start < cycle <= end]
    return thin_out([(start, 0), *own]) if own else ()
