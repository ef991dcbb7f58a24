"""`Segments`: the raw record of a run, cut where its path meets the time of units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

PHASE, STARTED, POLLED, LOOKED, SLEPT, ENDED = range(6)
"""Why a segment ends: a phase begins; a unit is started, its STATUS or its interrupt is read; the
core sleeps; the record ends."""


@dataclass(frozen=True)
class CutEvent:
    """A cut that is no phase's.

    Attributes:
        kind: one of the above.
        unit: the hardware model, of those that have one.
        is_over: of `LOOKED`, whether the unit was done.
    """

    kind: int
    unit: object = None
    is_over: bool = False


@dataclass(frozen=True)
class Segments:
    """The counts of what was executed, up to each cut.

    Attributes:
        events: of the cuts that are no phase's, in order.
        cuts: a record for each cut, see `covp.device.machine.native_counter.SegmentCut`: kind, the
            phase that ended, totals, how many of ``runs`` and ``operands`` there are up to it.
        runs: by how much the counts of blocks have grown.
        operands: the same for operands, by the position in `Trace.operands`.
        memories: for each block of the trace two bytes for each instruction: 1 + the place in the
            platform of the memory that it was expected to access (0: none) and
            `covp.device.timing.trace.TWO_WORDS`; and how often in a run.
        misses: (cuts, caches of other sizes, memories and two): misses up to each cut; then sets
            that the core went through to empty the cache, each in a cycle; and loads among the
            misses of what was stored up to two instructions before.
    """

    events: tuple[CutEvent, ...]
    cuts: NDArray[Any]
    runs: NDArray[Any]
    operands: NDArray[Any]
    memories: tuple[bytes, ...]
    misses: NDArray[np.int64]
