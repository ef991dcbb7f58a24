"""`SharedPort`: one port of the memory for several units, which it serves in turns."""

from __future__ import annotations

from collections.abc import Hashable
from math import inf

from covp.chip.platform_file import Platform

_NOTHING = 1e-6
"""Cycles of moving that count as none: sums of fractions are not exact."""


class SharedPort:
    """A memory port of which each of the units that have something to move gets an equal share.

    Processor sharing (L. Kleinrock, Time-shared systems: a theoretical treatment, JACM 1967), the
    limit of taking turns word by word. What a unit alone would move in n cycles takes k * n while
    k units move something.
    """

    def __init__(self) -> None:
        self._left: dict[Hashable, float] = {}
        self._now = -inf

    @classmethod
    def of(cls, platform: Platform) -> SharedPort | None:
        """Return the port that a platform's accelerators share; None: each has its own."""
        slot = platform.accelerators
        return cls() if slot is not None and slot.shared_port else None

    def begin(self, job: Hashable, now: float, cycles: float) -> None:
        """Begin to move something.

        Args:
            job: a name for it; it has nothing under way.
            now: the cycle, while something is moved no earlier than those of earlier calls.
            cycles: of the port, if no other unit used it.
        """
        self._advance(now)
        if cycles > 0:
            self._left[job] = cycles

    def leave(self, job: Hashable, now: float) -> None:
        """Forget what a job has still to move, in the cycle ``now``."""
        self._advance(now)
        self._left.pop(job, None)

    def ends(self) -> dict[Hashable, float]:
        """Return the cycle in which each job will have moved all, if no other one begins."""
        found: dict[Hashable, float] = {}
        now, moved, waiting = self._now, 0.0, len(self._left)
        for job, left in sorted(self._left.items(), key=lambda item: item[1]):
            now += (left - moved) * waiting
            found[job], moved, waiting = now, left, waiting - 1
        return found

    def _advance(self, now: float) -> None:
        """Move what is moved up to a cycle."""
        while self._left and self._now < now:
            least, count = min(self._left.values()), len(self._left)
            step = min(now - self._now, least * count)
            self._now += step
            left = {job: own - step / count for job, own in self._left.items()}
            self._left = {job: own for job, own in left.items() if own > _NOTHING}
        # while nothing is moved a device may go back to an earlier state
        self._now = max(now, self._now) if self._left else now
