"""`Segments`: the raw record of a run, cut where its path meets the time of units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

PHASE, STARTED, POLLED, LOOKED, SLEPT, ENDED = range(6)
"""Why a segment ends: a phase begins; a unit is started, its STATUS or its interrupt is read; the
core sleeps; the record ends."""
NO_MEMORY = 0xFF


@dataclass(frozen=True)
class Event:
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
    """What was executed up to each cut.

    Attributes:
        events: of the cuts that are no phase's, in order.
        cuts: a record for each cut, see `covp.machine.native_counter.SegmentCut`: kind, the phase
            that ended, totals, how many of ``runs`` and ``operands`` there are up to it.
        runs: by how much the counts of blocks have grown.
        operands: the same for operands, by the number of `OperandRuns` in the order of first runs.
        memories: for each block of the trace, the memory that each instruction was expected to
            access, by its place in the platform; `NO_MEMORY`: none.
        misses: (cuts, caches of other sizes, memories): misses up to each cut.
    """

    events: tuple[Event, ...]
    cuts: NDArray[Any]
    runs: NDArray[Any]
    operands: NDArray[Any]
    memories: tuple[bytes, ...]
    misses: NDArray[np.int64]
