"""`timeline_of`: the timeline of an evaluated inference, of a recorded log alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from covp.codegen.lifetimes import arena_tensors, live_bytes
from covp.device.abilities import TimelineRecording
from covp.device.stop import Source
from covp.device.timeline import TimelineLog
from covp.errors import UsageError
from covp.evaluation import Evaluation
from covp.report.timeline.calls import short_calls
from covp.report.timeline.of_log import CORE, counters_of, notes_of, tracks_of
from covp.report.timeline.phases import phase_spans, windows
from covp.report.timeline.tracks import CounterTrack, Slice, Timeline, Track, Value, of_args
from covp.runtime.measurement import BETWEEN, FIRST_LAYER
from covp.runtime.profile import LayerProfile
from covp.runtime.session import Session


class recording:
    """A context in which a session is recorded: calls of kernels, runs of models.

    Args:
        session: on a device that knows when what happens.

    Raises:
        UsageError: the session's device does not.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        abilities = session.device.abilities
        if abilities.timeline is None:
            raise UsageError("the session's device records no timeline: use device virtual")
        self._causes, self._phases = abilities.causes, abilities.phases
        self._recording: TimelineRecording = abilities.timeline.record_timeline()

    def __enter__(self) -> recording:
        self._session.sync()
        if self._causes is not None and self._phases is not None:
            self._causes.count_functions()
            self._phases.set_phases(())
        self._recording.__enter__()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                self._session.sync()
        finally:
            self._recording.__exit__(type(error) if error else None, error, None)
            if self._causes is not None:
                self._causes.count_functions(False)

    @property
    def timeline(self) -> Timeline:
        """Return what was executed. Raises UsageError before the end of the context."""
        log = self._recording.log
        if log is None:
            raise UsageError("the timeline is known when its context has ended")
        return timeline_of_log(log, self._session.platform.clock_hz)


class LayerPlace(NamedTuple):
    """Cycles that a layer, or a part of it, took.

    Attributes:
        layer: position in the program.
        start, end: the first cycle, and the one past the last.
    """

    layer: int
    start: int
    end: int


def layer_counters(result: Evaluation, places: Sequence[LayerPlace]) -> list[CounterTrack]:
    """Return bytes of the arena in use, and those that the core moved where they were counted.

    Args:
        result: of the run.
        places: of its layers.
    """
    live = live_bytes(arena_tensors(result.program), len(result.program.layers))
    points = tuple((place.start, live[place.layer]) for place in places)
    return [CounterTrack(CORE, "arena bytes live", points), *_traffic_tracks(result, places)]


def _traffic_tracks(result: Evaluation, places: Sequence[LayerPlace]) -> list[CounterTrack]:
    """Return sums at the end of each layer; without what the core moves between them."""
    totals: Counter[str] = Counter()
    points: dict[str, list[tuple[int, float]]] = {}
    ends = {place.layer: place.end for place in places}  # of the last part
    for layer, end in sorted(ends.items(), key=lambda item: item[1]):
        traffic = result.profile.layers[layer].traffic or {}
        for memory, moved in traffic.get(CORE, {}).items():
            for way in ("read", "written", "fetched"):
                name = f"{memory}: bytes {way}"
                totals[name] += getattr(moved, way)
                points.setdefault(name, [(places[0].start, 0)]).append((end, totals[name]))
    return [CounterTrack(CORE, name, tuple(own)) for name, own in points.items() if totals[name]]


_UNPLACED = "the device does not say when a layer began: they stand one after another, and what "


def timeline_of(result: Evaluation) -> Timeline:
    """Return the timeline of an inference.

    Args:
        result: of a run with `Wanted.timeline`.

    Raises:
        UsageError: the device does not know the cycles of a layer.
    """
    if result.timeline is not None:
        found = _add_log(result, result.timeline)
    else:
        found = _layers_alone(result)
    about = {**_about(result), **found.about}
    layers = found.track(CORE, "layers").slices
    places = [
        LayerPlace(int(one.args["layer"]), one.start, one.end)
        for one in layers
        if "layer" in one.args
    ]
    whole = Slice(f"{result.model} on {result.platform.name}", 0, found.cycles, about)
    tracks = (Track(CORE, "run", (whole,)), *found.tracks)
    counters = (*found.counters, *layer_counters(result, places))
    return replace(found, about=about, tracks=tracks, counters=counters)


def timeline_of_log(log: TimelineLog, clock_hz: int) -> Timeline:
    """Return the timeline of whatever was recorded: all but layers.

    Args:
        log: of the device.
        clock_hz: of its core.
    """
    inside = windows(phase_spans(log))
    found = Timeline(
        clock_hz,
        inside[-1].end - inside[0].start if inside else 0,
        _short_calls(log),
        tuple(tracks_of(log, inside)),
        tuple(counters_of(log, inside)) if inside else (),
        tuple(notes_of(log)),
    )
    return _shift_times(found, inside[0].start) if inside else found


def _add_log(result: Evaluation, log: TimelineLog) -> Timeline:
    found = timeline_of_log(log, result.platform.clock_hz)
    spans = phase_spans(log)
    start = windows(spans)[0].start
    layers = [
        _layer_slice(result, span.phase, span.start - start, span.end - start, span.instructions)
        for span in spans
        if span.phase >= BETWEEN
    ]
    return replace(found, tracks=(Track(CORE, "layers", tuple(layers)), *found.tracks))


def _layer_slice(result: Evaluation, phase: int, start: int, end: int, instructions: int) -> Slice:
    if phase == BETWEEN:
        args = {"cycles": end - start, "instructions": instructions}
        return Slice("between layers", start, end, args)
    layer = phase - FIRST_LAYER
    entry = result.profile.layers[layer]
    return Slice(_name(entry), start, end, _layer_args(layer, entry, end - start, instructions))


def _name(entry: LayerProfile) -> str:
    return f"{entry.index} {entry.op} {entry.name}" if entry.name != entry.op else entry.op


def _layer_args(
    layer: int, entry: LayerProfile, cycles: int, instructions: int | None
) -> dict[str, Value]:
    return of_args(
        [
            ("layer", layer),
            ("index", entry.index),
            ("operator", entry.op),
            ("on", entry.target),
            ("cycles", cycles),
            ("instructions", instructions),
            ("macs", entry.macs),
            ("schedule", entry.schedule or None),
        ]
    )


def _layers_alone(result: Evaluation) -> Timeline:
    """Return the timeline of a device that knows what each layer takes, and not when."""
    profile = result.profile
    if profile.cycles is None or any(entry.cycles is None for entry in profile.layers):
        raise UsageError(f"device {result.device} does not know the cycles of a layer")
    slices: list[Slice] = []
    start = 0
    for layer, entry in enumerate(profile.layers):
        end = start + (entry.cycles or 0)
        args = _layer_args(layer, entry, end - start, entry.instructions)
        slices.append(Slice(_name(entry), start, end, args))
        start = end
    rest = profile.cycles - start
    if rest > 0:
        args = of_args([("cycles", rest), ("instructions", profile.between.instructions)])
        slices.append(Slice("between layers, all together", start, start + rest, args))
    return Timeline(
        result.platform.clock_hz,
        start + max(rest, 0),
        {},
        (Track(CORE, "layers", tuple(slices)),),
        notes=(f"{_UNPLACED}lies between is at the end",),
    )


def _about(result: Evaluation) -> dict[str, Value]:
    source = result.profile.sources.cycles
    return of_args(
        [
            ("model", result.model),
            ("model_source", result.source),
            ("platform", result.platform.name),
            ("device", result.device),
            ("accelerators", ", ".join(result.build.accelerators) or "none"),
            ("toolchain", result.toolchain),
            ("clock_hz", result.platform.clock_hz),
            ("cycles", result.profile.cycles),
            ("instructions", result.profile.instructions),
            ("cycles_are", source.kind if source else None),
            ("cycles_model", (source.model or None) if source else None),
            ("cycles_assume", (source.assumes or None) if source else None),
            ("cycles_error", _error(source)),
        ]
    )


def _error(source: Source | None) -> str | None:
    if source is None or source.kind != "estimated":
        return None
    return "unchecked" if source.error is None else f"{source.error:.1%}"


def _short_calls(log: TimelineLog) -> dict[str, Value]:
    """Return cycles of each function in calls that have no slice."""
    return {f"short_call_cycles_of_{name}": own for name, (_, own) in short_calls(log).items()}


def _shift_times(timeline: Timeline, start: int) -> Timeline:
    """Return times in cycles since ``start``."""
    tracks = tuple(
        replace(
            track,
            slices=tuple(
                Slice(one.name, one.start - start, one.end - start, one.args)
                for one in track.slices
            ),
        )
        for track in timeline.tracks
    )
    counters = tuple(
        CounterTrack(one.owner, one.name, tuple((at - start, value) for at, value in one.points))
        for one in timeline.counters
    )
    return replace(timeline, tracks=tracks, counters=counters)
