"""`Timeline`: a run as tracks of slices and counters, in cycles since its first one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Value = int | float | str | bool


@dataclass(frozen=True)
class Slice:
    """Something that took a while.

    Attributes:
        name: of it.
        start, end: its first cycle, and the one past its last.
        args: what else is known of it.
    """

    name: str
    start: int
    end: int
    args: Mapping[str, Value] = field(default_factory=dict)

    @property
    def cycles(self) -> int:
        """Cycles that it took."""
        return self.end - self.start


@dataclass(frozen=True)
class Track:
    """Slices of which two are apart, or one lies in the other; the outer one comes first.

    Attributes:
        owner: what the track belongs to, such as "core" or the name of an accelerator.
        name: such as "layers".
        slices: by their start.
    """

    owner: str
    name: str
    slices: tuple[Slice, ...]


@dataclass(frozen=True)
class CounterTrack:
    """A number over time.

    Attributes:
        owner: as of a `Track`.
        name: two words at least, such as "instructions retired".
        points: the cycle from which on it has a value, and that; by cycle.
    """

    owner: str
    name: str
    points: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Timeline:
    """A run in time.

    Attributes:
        clock_hz: cycles of a second.
        cycles: of all, from 0 on.
        about: what ran, and where the cycles come from.
        tracks, counters: those that have something, grouped by owner.
        notes: what is left out, one line each.
    """

    clock_hz: int
    cycles: int
    about: Mapping[str, Value]
    tracks: tuple[Track, ...]
    counters: tuple[CounterTrack, ...] = ()
    notes: tuple[str, ...] = ()

    def track(self, owner: str, name: str) -> Track:
        """Return the track ``name`` of an ``owner``. Raises KeyError: none, or an empty one."""
        for track in self.tracks:
            if (track.owner, track.name) == (owner, name):
                return track
        raise KeyError(f"{owner}/{name}")


def of_args(pairs: Sequence[tuple[str, Value | None]]) -> dict[str, Value]:
    """Return arguments of a slice, without those that are None."""
    return {name: value for name, value in pairs if value is not None}
