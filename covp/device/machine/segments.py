"""`SegmentLog`: what a core executed between the places where its path meets the time of units."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.device.machine.native_caches import GHOST_COUNTS, Ghosts
from covp.device.machine.native_counter import SegmentCut, SegmentOperands, SegmentRun
from covp.device.timing.segments import ENDED, LOOKED, POLLED, SLEPT, STARTED, CutEvent, Segments
from covp.device.timing.trace import Trace
from covp.errors import DeviceError


class SegmentLog:
    """A log that cuts a core's execution from now on; a `covp.hardware.clock.Witness`.

    Args:
        library: the native side of the counter.
        machine: the counter's state there.
        is_running: whether an instruction is being executed.
        pace: the cycles that a job is to take, from those that its model says.
        ghosts: caches of other sizes.

    Raises:
        DeviceError: the host has no memory for it.
    """

    def __init__(
        self,
        library: ctypes.CDLL,
        machine: int,
        is_running: Callable[[], bool],
        pace: Callable[[int], int],
        ghosts: Ghosts,
    ) -> None:
        self._library, self._machine = library, machine
        self._is_running, self._pace = is_running, pace
        self._events: list[CutEvent] = []
        self._ghosts = ghosts
        kept = library.machine_keep_segments(machine)
        if not kept or not library.machine_add_ghosts(machine, ghosts.native, ghosts.count):
            raise DeviceError("not enough host memory for segments")

    def on_start(self, unit: object, cycles: int) -> int:
        """End a segment where a unit accepts a job; return the job's cycles."""
        self._cut(STARTED, unit)
        return self._pace(cycles)

    def on_poll(self, unit: object) -> None:
        """End a segment where the core reads a unit's STATUS."""
        self._cut(POLLED, unit)

    def on_pending_read(self, unit: object, is_over: bool) -> None:
        """End a segment where the core reads whether an interrupt is pending."""
        self._cut(LOOKED, unit, is_over)

    def on_sleep(self) -> None:
        """End a segment where the core waits for an interrupt."""
        self._cut(SLEPT)

    def end(self) -> None:
        """End the last segment here."""
        self._cut(ENDED)

    def _cut(self, kind: int, unit: object = None, is_over: bool = False) -> None:
        self._events.append(CutEvent(kind, unit, is_over))
        self._library.machine_cut(self._machine, kind, self._is_running())

    def segments(self, trace: Trace) -> Segments:
        """Return all segments up to the latest cut.

        Args:
            trace: of the same core, with every block that ran.
        """
        counts = self._library.machine_segment_counts(self._machine)
        cuts = (SegmentCut * max(1, counts.cuts))()
        runs = (SegmentRun * max(1, counts.runs))()
        operands = (SegmentOperands * max(1, counts.operands))()
        self._library.machine_segments(self._machine, cuts, runs, operands)
        return Segments(
            events=tuple(self._events),
            cuts=_table(cuts, counts.cuts),
            runs=_table(runs, counts.runs),
            operands=_table(operands, counts.operands),
            memories=tuple(
                self._memories(position, block.instructions)
                for position, block in enumerate(trace.blocks)
            ),
            misses=self._misses(counts.cuts),
        )

    def _misses(self, cuts: int) -> NDArray[np.int64]:
        found = np.zeros((cuts, self._ghosts.count, GHOST_COUNTS), np.int64)
        self._library.machine_ghost_misses(self._machine, found.ctypes.data)
        return found

    def _memories(self, position: int, instructions: int) -> bytes:
        found = (ctypes.c_uint8 * 2 * max(1, instructions))()
        self._library.machine_expected(self._machine, position, found)
        return bytes(found)[: 2 * instructions]


def _table(items: ctypes.Array[Any], count: int) -> NDArray[Any]:
    """Copy structures to a numpy array of records."""
    return np.array(np.ctypeslib.as_array(items)[:count])
