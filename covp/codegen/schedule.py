"""Schedules: the choices that a kernel leaves open, as data to search and to keep."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from covp.errors import UsageError

UNROLLS = (1, 2, 3, 4, 6, 8)
"""Elements that one iteration of a simple loop may process."""


@dataclass(frozen=True)
class Schedule:
    """One choice: a tile (the shape of the inner loop) and a value for each of its knobs.

    As text, which is what reports and records hold: ``packed pairs=3 channels=2 unroll=2``.
    """

    tile: str
    knobs: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return " ".join([self.tile, *(f"{name}={value}" for name, value in self.knobs.items())])

    def __hash__(self) -> int:
        return hash(str(self))

    def __getitem__(self, knob: str) -> int:
        return self.knobs[knob]

    @staticmethod
    def parse(text: str) -> Schedule:
        """Return the inverse of ``str``.

        Raises:
            UsageError: the text has another form.
        """
        tile, *pairs = text.split()
        try:
            return Schedule(
                tile, {name: int(value) for name, value in (p.split("=") for p in pairs)}
            )
        except ValueError:
            raise UsageError(
                f"{text!r} is not a schedule; the form is 'tile knob=1 knob=2'"
            ) from None


@dataclass(frozen=True)
class KnobSpace:
    """All values of all knobs of one tile; which points are valid depends on the layer."""

    tile: str
    knobs: Mapping[str, Sequence[int]]

    def __iter__(self) -> Iterator[Schedule]:
        for values in itertools.product(*self.knobs.values()):
            yield Schedule(self.tile, dict(zip(self.knobs, values, strict=True)))


def valid_schedules(
    spaces: Iterable[KnobSpace], default: Schedule, is_valid: Callable[[Schedule], bool]
) -> list[Schedule]:
    """Return the default, then every other point of the spaces that is valid."""
    points = (point for space in spaces for point in space)
    return [default, *(point for point in points if point != default and is_valid(point))]
