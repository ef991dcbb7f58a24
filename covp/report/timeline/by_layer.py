"""Numbers that change from layer to layer: what the arena holds, what the core has moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from covp.evaluation import Evaluation
from covp.evaluation.lifetimes import arena_tensors, live_bytes
from covp.report.timeline.of_log import CORE
from covp.report.timeline.tracks import CounterTrack


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
    """Bytes of the arena that hold something, and where they were counted those the core moved.

    Args:
        result: of the run.
        places: of its layers.
    """
    live = live_bytes(arena_tensors(result.program), len(result.program.layers))
    points = tuple((place.start, live[place.layer]) for place in places)
    return [CounterTrack(CORE, "arena bytes live", points), *_moved(result, places)]


def _moved(result: Evaluation, places: Sequence[LayerPlace]) -> list[CounterTrack]:
    """Sums at the end of each layer; without what the core moves between them."""
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
