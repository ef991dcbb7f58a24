"""`TimelineRecorder`: listens to a board while programs run on its core 0."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TypeVar

from covp.device.board import Board
from covp.device.machine.mark_log import MOST_MARKS, MarkLog
from covp.device.phase_count import CORE
from covp.device.timeline import (
    MOST_EVENTS,
    Access,
    Handling,
    JobSpan,
    LineChange,
    PeripheralPlace,
    Stall,
    TimelineLog,
    Transfer,
)
from covp.errors import UsageError
from covp.hardware.job_unit import JobRecord, JobUnit
from covp.hardware.observer import Observer, RegisterAccess
from covp.hardware.peripheral import Peripheral

_Item = TypeVar("_Item")


class TimelineRecorder(Observer):
    """A recorder that listens while it is entered; execution takes no cycle more for it.

    Args:
        board: whose core 0 runs.
        names: returns the names of the functions that the core's counter knows, by number.
        most: marks of functions; see `MarkLog`.

    Attributes:
        log: what happened; None before the end of the context.
    """

    def __init__(
        self, board: Board, names: Callable[[], tuple[str, ...]], most: int = MOST_MARKS
    ) -> None:
        self.log: TimelineLog | None = None
        self._board, self._names, self._most = board, names, most
        self._core, self._clock = board.cores[0], board.clock
        self._marks = MarkLog(self._core.counter)
        self._bases: dict[Peripheral, int] = {}
        self._on_entry: Callable[[int, int], None] | None = None
        self._forget()

    def _forget(self) -> None:
        self._stalls: list[Stall] = []
        self._accesses: list[Access] = []
        self._changes: list[LineChange] = []
        self._handlings: list[Handling] = []
        self._transfers: list[Transfer] = []
        self._jobs: list[JobSpan] = []
        self._lost: Counts[str] = Counts()

    def __enter__(self) -> TimelineRecorder:
        if any(isinstance(other, TimelineRecorder) for other in self._board.bus.observers):
            raise UsageError("the timeline of this device is recorded already")
        self._bases = {model: base for base, model in self._board.peripherals.values()}
        self._registered = ExitStack()
        self._registered.enter_context(self._board.bus.observe(self))
        self._registered.enter_context(self._clock.observe(self))
        for _, model in self._board.shared.peripherals.values():
            model.interrupt.on_change = partial(self._record_line, model)
            if isinstance(model, JobUnit):
                model.on_end = partial(self._record_job, model)
        interrupts = self._core.interrupts
        self._on_entry, interrupts.on_entry = interrupts.on_entry, self._record_entry
        interrupts.on_return = self._record_return
        self.restarted()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._registered.close()
        for _, model in self._board.shared.peripherals.values():
            model.interrupt.on_change = None
            if isinstance(model, JobUnit):
                model.on_end = None
        self._core.interrupts.on_entry = self._on_entry
        self._core.interrupts.on_return = None
        if self._board.is_open:
            self.log = self._make_log()

    def restarted(self) -> None:
        """Forget what happened until now."""
        self._forget()
        self._begin = self._clock.now
        self._phase = self._core.counter.phase()[0]
        self._instructions = self._core.instructions
        self._marks.begin(len(self._names()), self._most)

    def _make_log(self) -> TimelineLog:
        return TimelineLog(
            self._begin,
            self._clock.now,
            (self._instructions, self._core.instructions),
            self._phase,
            self._marks.end(),
            self._names(),
            {
                name: PeripheralPlace(base, model.registers, model.interrupt.number)
                for name, (base, model) in self._board.peripherals.items()
            },
            self._stalls,
            self._accesses,
            self._changes,
            self._handlings,
            self._transfers,
            self._jobs,
            self._lost,
        )

    def _keep(self, items: list[_Item], item: _Item) -> None:
        if len(items) < MOST_EVENTS:
            items.append(item)
        else:
            self._lost[type(item).__name__] += 1

    # -- what is heard ------------------------------------------------------------------------

    def accessed(self, access: RegisterAccess) -> None:
        """Record an access of the core to a register."""
        master, start, model, offset, size, value, is_store = access
        if master != CORE:
            return
        address = self._bases[model] + offset
        known = Access(start, self._clock.now, model.name, address, size, value, is_store)
        self._keep(self._accesses, known)

    def stalled(self, cycle: int, cycles: int) -> None:
        """Record cycles that passed without an instruction."""
        self._keep(self._stalls, Stall(cycle, cycle + cycles, self._core.sleep.is_asleep))

    def moved(self, master: str, place: str, is_write: bool, size: int) -> None:
        """Record bytes that hardware moved."""
        self._keep(self._transfers, Transfer(self._clock.now, master, place, is_write, size))

    def _record_job(self, unit: JobUnit, start: int, end: int, record: JobRecord) -> None:
        self._keep(self._jobs, JobSpan(start, end, unit.name, record))

    def _record_line(self, model: Peripheral, level: bool) -> None:
        number = model.interrupt.number
        line = -1 if number is None else number
        self._keep(self._changes, LineChange(self._clock.now, model.name, line, level))

    def _record_entry(self, line: int, pc: int) -> None:
        if self._on_entry is not None:
            self._on_entry(line, pc)
        self._keep(self._handlings, Handling(self._clock.now, line))

    def _record_return(self) -> None:
        self._keep(self._handlings, Handling(self._clock.now, None))
