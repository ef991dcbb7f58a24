"""`CoreCounts`: what is counted and recorded of the programs on a board's core 0."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence

from covp.chip.platform_file.caches import GhostCache
from covp.device.board import Board
from covp.device.counted_phases import CountedPhases
from covp.device.machine.mark_log import MOST_MARKS
from covp.device.machine.native_caches import Ghosts
from covp.device.machine.segments import SegmentLog
from covp.device.phase_count import PhaseCount
from covp.device.timeline_recorder import TimelineRecorder
from covp.device.timing.trace import Trace


class CoreCounts:
    """The counts by phase, cause, function, memory and block of code of a board's core 0.

    Counts of phases are kept from `set_phases` on, the others from when a method here starts them.

    Args:
        board: whose core 0 runs the programs.
    """

    def __init__(self, board: Board) -> None:
        self._board, self._core = board, board.cores[0]
        self._counter = self._core.counter
        self._explains = True
        self._by_function = False
        self._function_names: tuple[str, ...] = ("",)
        self._executions: dict[int, ctypes.c_uint64] = {}

    # -- by phase -----------------------------------------------------------------------------

    def set_phases(self, markers: Sequence[tuple[int, int]]) -> None:
        """Set the markers that phases begin at; all phases start at zero.

        Args:
            markers: (address, phase), as in `CountsByPhase.set_phases`.
        """
        cleared = [(address & ~self._core.thumb, phase) for address, phase in markers]
        phases = 1 + max((phase for _, phase in markers), default=0)
        self._function_names = self._set_functions() if self._by_function else ("",)
        explains = self._explains or self._by_function or self._board.ledger is not None
        self._counter.explains = explains
        self._counter.set_markers(cleared, phases)
        for observer in self._board.bus.observers:
            observer.restarted()

    def current_phase(self) -> int:
        """Return the phase that is current now, also after a fault."""
        return self._counter.phase()[0]

    def phases(self) -> CountedPhases:
        """Return the counts of all phases since `set_phases`, to be compared with later ones."""
        if not self._counter.explains:
            return CountedPhases(self._counter.buckets())
        memories = [memory.region.name for memory in self._core.memories]
        return CountedPhases.of(self._counter, self._function_names, memories, self._board.ledger)

    def since(self, before: CountedPhases | None) -> tuple[PhaseCount, ...]:
        """Return the counts of each phase since ``before``; empty where no phases are set."""
        return () if before is None else self.phases().since(before)

    def explain_cycles(self, on: bool) -> None:
        """Keep the causes of cycles from the next `set_phases` on, or no more."""
        self._explains = on

    def count_functions(self, on: bool = True) -> None:
        """Count by function from the next `set_phases` on, or no more."""
        if self._by_function and not on:
            self._counter.set_functions((), 1)
        self._by_function = on

    def _set_functions(self) -> tuple[str, ...]:
        """Tell the counter all functions; return their names by number."""
        functions = self._board.names.symbols.functions()
        marks = {end: 0 for _, end, _ in functions}
        marks |= {start: number for number, (start, _, _) in enumerate(functions, 1)}
        self._counter.set_functions(tuple(marks.items()), 1 + len(functions))
        return ("", *(name for _, _, name in functions))

    def count_traffic(self) -> None:
        """Count the bytes that the core and hardware move, by memory."""
        self._board.count_traffic()
        self._counter.look_at_accesses()
        self._core.engine.ctl_flush_tb()

    def record_timeline(self, most: int = MOST_MARKS) -> TimelineRecorder:
        """Return a context that records a timeline while it is entered.

        Args:
            most: marks of functions; where there are more, the shortest calls are left out.
        """
        self._board.check_open()
        return TimelineRecorder(self._board, lambda: self._function_names, most)

    # -- by block of code ---------------------------------------------------------------------

    def trace(self) -> Trace:
        """Return what the core executed so far, for timing by other models."""
        return self._counter.trace()

    def keep_segments(
        self, pace: Callable[[int], int], shapes: Sequence[GhostCache] = ()
    ) -> SegmentLog:
        """Record segments from now on.

        Args:
            pace, shapes: as in `TracesCode.keep_segments`.
        """
        core = self._core
        ghosts = Ghosts(self._board.platform, shapes)
        log = core.counter.keep_segments(lambda: core.execution.running, pace, ghosts)
        core.engine.ctl_flush_tb()
        self._board.clock.call_witness(log)
        return log

    def count_conditional(self, addresses: Iterable[int]) -> None:
        """Count executions of the conditional instructions at ``addresses`` from now on."""
        for address in addresses:
            if address not in self._executions:
                self._executions[address] = self._counter.count_executions(address)
                self._core.forget_code(address, 2)

    def conditional_counts(self) -> dict[int, int]:
        """Return how often each conditional instruction was executed, and not skipped."""
        return {address: count.value for address, count in self._executions.items()}
