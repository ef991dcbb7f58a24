"""`run_in_turns`: several cores of a board, run so that time is common."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from covp.device.board import Board, core_sources
from covp.device.machine.counter import Totals
from covp.device.machine.emulated_core import EmulatedCore
from covp.device.stop import Stop
from covp.errors import DeviceFault

_LONGEST_TURN = 1 << 18
"""Cycles; polling a register for so long is no reason yet to think that nothing will change it."""


@dataclass
class _Run:
    """A core on its way from ``pc`` to ``stop``."""

    core: EmulatedCore
    pc: int
    stop: int
    before: Totals

    @property
    def is_done(self) -> bool:
        return self.pc == self.stop and not self.core.sleep.is_asleep


def run_in_turns(
    board: Board,
    programs: Sequence[tuple[int, int]],
    timeout: float = 300.0,
    turn: int = 1000,
    until: Sequence[int] | None = None,
) -> tuple[Stop, ...]:
    """Run the board's first cores until each has reached its stop.

    The core that is furthest behind runs next, for a turn of cycles or until the next event. So
    cores are never further apart than a turn and a block of code, but for one that is stalled in
    a register access, which is ahead until the others have caught up. A store or signal of a core
    reaches another at most so much earlier or later than on hardware, and always at the same
    instruction: the run is repeatable. One that sleeps is never ahead, so that what wakes it comes
    in time. An event fires when every core has reached its cycle. A
    core that is done is halted, and the others go on without it.

    Args:
        board: with at least as many cores as programs.
        programs: (entry, stop) of core 0, 1, ...; bit 0 is ignored. Stack pointers are the
            caller's to set (`EmulatedCore.write_register`): after a reset all are the same.
        timeout: seconds of host time for all together.
        turn: cycles of the clock, 1 to 2**18. The shorter, the closer in time and the slower.
        until: numbers of the programs that end the run when they have reached their stops, wherever
            the others are; by default all.

    Returns:
        One `Stop` per program; cycles without those in which the core was halted at the end.

    Raises:
        DeviceFault: of the core that faulted, located; "endless sleep" where all wait in WFI and
            nothing is scheduled; "timeout".
        ValueError: too many programs, or ``turn`` is out of range.
    """
    if not 0 < len(programs) <= len(board.cores):
        raise ValueError(f"{len(programs)} programs on a board with {len(board.cores)} cores")
    if not 0 < turn <= _LONGEST_TURN:
        raise ValueError(f"a turn of {turn} cycles is not in 1..{_LONGEST_TURN}")
    needed = range(len(programs)) if until is None else until
    deadline = time.monotonic() + timeout
    board.activate(board.cores[: len(programs)])
    runs = [
        _start(core, entry & ~1, stop & ~1, deadline)
        for core, (entry, stop) in zip(board.active, programs, strict=True)
    ]
    try:
        while any(not runs[number].is_done for number in needed):
            waiting = [run for run in runs if not run.is_done]
            board.active = tuple(run.core for run in waiting)
            _take_turn(board, waiting, turn)
            if time.monotonic() > deadline:
                late = DeviceFault(
                    "timeout", pc=waiting[0].pc, detail=f"{timeout:g} seconds of host time"
                )
                raise board.explain(late, waiting[0].core)
    finally:
        board.active = board.cores[: len(programs)]
        for run in runs:
            run.core.execution.turn_end = None
    return tuple(_stop(run, board) for run in runs)


def _start(core: EmulatedCore, entry: int, stop: int, deadline: float) -> _Run:
    core.begin(deadline)
    core.sleep.wake()
    core.forget_code(stop, 4)
    before = core.totals
    core.counter.start()
    return _Run(core, entry, stop, before)


def _take_turn(board: Board, waiting: Sequence[_Run], turn: int) -> None:
    """Let the core that is furthest behind run for a turn, or sleep until others are there."""
    run = min(waiting, key=lambda run: (run.core.time, run.core.sleep.is_asleep))
    core, execution = run.core, run.core.execution
    board.current = core
    core.mmio.forget_polls()
    try:
        if not core.sleep.is_asleep or core.sleep.has_ended():
            execution.turn_end = core.time + turn
            run.pc = execution.run(run.pc, run.stop, None)
            if execution.at_breakpoint:
                raise DeviceFault("breakpoint", pc=run.pc, detail="set by a debugger")
        elif all(run.core.sleep.is_asleep for run in waiting):
            _sleep_all(board, waiting)
        else:
            # no further: what an awake core does next may wake this one
            until = min(run.core.time for run in waiting if not run.core.sleep.is_asleep)
            due = board.clock.next_event
            board.clock.wait_until(until if due is None else min(due, until))
    except DeviceFault as fault:
        raise board.explain(fault, core) from fault.__cause__


def _sleep_all(board: Board, waiting: Sequence[_Run]) -> None:
    """Skip to the next event, or wait for input from outside, as all cores wait in WFI."""
    core, clock = board.current, board.clock
    if any(run.core.sleep.has_ended() for run in waiting):
        return
    due = clock.next_event
    if due is not None:
        for run in waiting:
            board.current = run.core
            clock.wait_until(due)
    elif clock.is_open:
        clock.wait_outside(core.control.is_over, core.control.deadline)
    else:
        raise core.sleep.endless()


def _stop(run: _Run, board: Board) -> Stop:
    if run.is_done:
        run.core.counter.led_to(run.pc)
    now = run.core.totals
    return Stop(
        run.pc,
        now.instructions - run.before.instructions,
        now.cycles - run.before.cycles,
        sources=core_sources(run.core.core, board.platform),
    )
