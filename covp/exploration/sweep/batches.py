"""`Batches`: which points are evaluated together, and what becomes of those that fail."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field

from covp.exploration.sweep.points import Point

Batch = tuple[Point, ...]

_SECONDS = 2.0
"""Duration of a batch to aim for: the most that a kill costs, and the interval of progress."""
_FIRST = 4
"""Points of a group's first batch."""
_GROWTH = 8
"""Largest factor between the points of a batch and those of the one before."""
_LARGEST = 10_000


def binary(point: Point) -> Hashable:
    """Return what points of one program share: it is built and run once for all of them."""
    return point.model, point.platform, point.accelerators, point.options


@dataclass
class _Group:
    """Points of one binary. ``size``: of its next batch; 0 until the first has come back."""

    waiting: deque[Point] = field(default_factory=deque)
    size: int = 0


class Batches:
    """The points of a sweep in batches.

    A group's first batch goes alone, as it builds and runs what the others need. Later ones are as
    large as two seconds allow.

    Args:
        points: each once.
        group: of a point; points of one group are best evaluated together.
    """

    def __init__(self, points: Iterable[Point], group: Callable[[Point], Hashable]) -> None:
        self._group = group
        self._groups: dict[Hashable, _Group] = {}
        for point in points:
            self._groups.setdefault(group(point), _Group()).waiting.append(point)
        self._ready = deque(self._groups.values())
        self._again: deque[Batch] = deque()

    def take(self) -> Batch | None:
        """Return the next batch; None where there is none now."""
        if self._again:
            return self._again.popleft()
        if self._ready:
            group = self._ready[0]
            count = min(group.size or _FIRST, len(group.waiting))
            batch = tuple(group.waiting.popleft() for _ in range(count))
            if not group.waiting or not group.size:
                self._ready.popleft()
            return batch
        return None

    def came_back(self, batch: Batch, seconds: float) -> None:
        """Note that a batch is done, by whomever; the rest of its group can be evaluated now."""
        group = self._groups[self._group(batch[0])]
        was_closed = group.size == 0
        fitting = int(_SECONDS / max(seconds / len(batch), 1e-9))
        group.size = max(1, min(fitting, _GROWTH * len(batch), _LARGEST))
        if was_closed and group.waiting:
            self._ready.appendleft(group)

    def broke(self, batch: Batch) -> bool:
        """Queue the halves of a failed batch; return False where it is one point."""
        self.came_back(batch, _SECONDS)
        half = len(batch) // 2
        if half:
            self._again.extend((batch[:half], batch[half:]))
        return half > 0
