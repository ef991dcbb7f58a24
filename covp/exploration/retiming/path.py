"""The path of a program through its segments: what runs, where units are started and waited for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from covp.device.timing.segments import LOOKED, POLLED, SLEPT, STARTED
from covp.errors import DeviceError
from covp.exploration.retiming.run_trace import POLL, RUN, SLEEP, START, STEP

NONE = -1


@dataclass(frozen=True)
class Cut:
    """The end of a segment.

    Attributes:
        kind: see `covp.device.timing.segments`.
        segment: which ran up to it.
        layer: its place, or that past the last one: between layers.
        unit: number of the unit; `NONE`: none.
        is_over: of a look at a unit's interrupt.
        instructions: of the segment.
    """

    kind: int
    segment: int
    layer: int
    unit: int = NONE
    is_over: bool = False
    instructions: int = 0

    def after(self, start: int) -> Cut:
        """Return the same where segments are counted from another number on."""
        return replace(self, segment=self.segment + start)


def path_of(cuts: Sequence[Cut]) -> NDArray[np.void]:
    """Return the steps of a program that never sleeps.

    Raises:
        DeviceError: it does.
    """
    jobs: dict[int, int] = {}
    steps = []
    for cut in cuts:
        if cut.kind in (LOOKED, SLEPT):
            raise DeviceError("a program that sleeps has two paths")
        steps.append(_step(cut, jobs))
    return np.array(steps, STEP)


def merge(eager: Sequence[Cut], lazy: Sequence[Cut]) -> NDArray[np.void]:
    """Return the steps of a program whose core sleeps where a unit is not done.

    Args:
        eager: with units that are done at once.
        lazy: with units that take longer than anything else.

    Raises:
        DeviceError: the two are not one path but for the sleep.
    """
    jobs: dict[int, int] = {}
    steps, others = [], iter(lazy)
    fast = iter(eager)
    for cut in fast:
        other = next(others, None)
        if other is None or _place(cut) != _place(other):
            raise _unlike(cut)
        if cut.kind != LOOKED:
            steps.append(_step(other, jobs))
            continue
        after, asleep = next(fast, None), next(others, None)
        awake, then = next(others, None), next(others, None)
        if not (after and asleep and awake and then) or not cut.is_over or other.is_over:
            raise _unlike(cut)
        slept = asleep.kind == SLEPT and awake.kind == LOOKED and awake.is_over
        if not slept or (after.kind, after.unit) != (then.kind, then.unit):
            raise _unlike(cut)
        parts = (after.segment, asleep.segment, awake.segment, then.segment)
        steps.append((SLEEP, other.segment, cut.unit, NONE, cut.layer, *parts))
        steps.append(_step(Cut(after.kind, NONE, after.layer, after.unit), jobs))
    if next(others, None) is not None:
        raise _unlike(None)
    return np.array(steps, STEP)


def _place(cut: Cut) -> tuple[int, int, int, int]:
    return cut.kind, cut.instructions, cut.layer, cut.unit


def _unlike(cut: Cut | None) -> DeviceError:
    where = "" if cut is None else f" (at layer {cut.layer})"
    return DeviceError(
        f"this program's path depends on how long units take{where}: it cannot be retimed, run it"
    )


_STEPS: Mapping[int, int] = {STARTED: START, POLLED: POLL}


def _step(cut: Cut, jobs: dict[int, int]) -> tuple[int, ...]:
    kind, job = _STEPS.get(cut.kind, RUN), NONE
    if kind == START:
        job = jobs.get(cut.unit, 0)
        jobs[cut.unit] = job + 1
    return kind, cut.segment, cut.unit, job, cut.layer, NONE, NONE, NONE, NONE
