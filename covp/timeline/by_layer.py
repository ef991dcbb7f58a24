"""Numbers that change from layer to layer: what the arena holds, what the core has moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from covp.device.phase_count import CORE as CORE_AS_MASTER
from covp.evaluation import Evaluation
from covp.evaluation.lifetimes import arena_tensors, live_bytes
from covp.timeline.of_log import CORE
from covp.timeline.tracks import CounterTrack


def layer_counters(result: Evaluation, places: Sequence[tuple[int, int]]) -> list[CounterTrack]:
    """Bytes of the arena that hold something, and where they were counted those the core moved.

    Args:
        result: of the run.
        places: of each layer the first cycle, and the one past the last.
    """
    live = live_bytes(arena_tensors(result.program), len(result.program.layers))
    points = tuple((start, bytes) for (start, _), bytes in zip(places, live, strict=True))
    return [CounterTrack(CORE, "arena bytes live", points), *_moved(result, places)]


def _moved(result: Evaluation, places: Sequence[tuple[int, int]]) -> list[CounterTrack]:
    """Sums at the end of each layer; without what the core moves between them."""
    totals: Counter[str] = Counter()
    points: dict[str, list[tuple[int, float]]] = {}
    for entry, (_, end) in zip(result.profile.layers, places, strict=True):
        for memory, moved in (entry.traffic or {}).get(CORE_AS_MASTER, {}).items():
            for way in ("read", "written", "fetched"):
                name = f"{memory}: bytes {way}"
                totals[name] += getattr(moved, way)
                points.setdefault(name, [(places[0][0], 0)]).append((end, totals[name]))
    return [CounterTrack(CORE, name, tuple(found)) for name, found in points.items()
            if totals[name]]  # fmt: skip
