"""The virtual clock of a board, events in it, and the views that cores and models have of it."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Protocol

from covp.errors import AcceleratorError
from covp.hardware.observer import Observer
from covp.hardware.outside import OutsideQueue, OutsideSource


class Witness(Protocol):
    """Everything that a core does depends on time at these places alone, as long as nothing but
    jobs takes time: between them it takes the same path whatever units take."""

    def on_start(self, unit: object, cycles: int) -> int:
        """Note that a unit accepted a job of ``cycles``; return how many it is to take."""
        ...

    def on_poll(self, unit: object) -> None:
        """Note that the core reads a unit's STATUS: it goes on when the unit is done."""
        ...

    def on_pending_read(self, unit: object, is_over: bool) -> None:
        """Note that the core reads whether a unit's interrupt is pending: ``is_over``."""
        ...

    def on_sleep(self) -> None:
        """Note that the core waits for an interrupt."""
        ...


@dataclass(order=True)
class Event:
    """A callback scheduled at a cycle; `Clock.at` makes them.

    Attributes:
        cycle: when.
        fire: the callback.
        cancelled: it will not fire.
    """

    cycle: int
    _order: int
    fire: Callable[[], None] = field(compare=False)
    cancelled: bool = field(default=False, compare=False)

    def cancel(self) -> None:
        """Keep the event from firing; no effect once it has fired."""
        self.cancelled = True

    def __deepcopy__(self, memo: object) -> Event:
        """Return the event itself: copies of a model's state refer to the clock's own events."""
        return self


class Participant(Protocol):
    """A clocked model, such as RTL, which has to be advanced along with time."""

    def advance(self, until: int) -> int | None:
        """Simulate up to a cycle.

        Args:
            until: never decreases; the same cycle may come again.

        Returns:
            The next cycle, after ``until``, at which it wants to be advanced; None: only when
            something else fires.
        """
        ...


@dataclass(eq=False)
class _Member:
    """A participant, its next wish and the cycle that it was last advanced to."""

    participant: Participant
    wish: int | None = None
    reached: int = 0

    def advance(self, until: int) -> None:
        self.reached = max(until, self.reached)
        self.wish = self.participant.advance(self.reached)
        if self.wish is not None and self.wish <= self.reached:
            raise AcceleratorError(
                f"{type(self.participant).__name__}.advance({self.reached}) wants cycle "
                f"{self.wish} next; return a later one, or None"
            )


@dataclass(frozen=True)
class ClockState:
    """The content of a `Clock.save_state`; events by identity."""

    skipped: int
    events: tuple[tuple[Event, bool], ...]
    members: tuple[tuple[_Member, int | None, int], ...]


class Clock:
    """Time in estimated core cycles since the board was made.

    With several cores time is common: each core has a cycle of its own, at most a turn apart, and
    an event fires when every running core has reached its cycle.

    Args:
        now: returns the cycle of the core that runs, waiting included.
        skip: adds cycles that pass on that core without an instruction.
        hertz: of the core.
        planned: called with the cycle at which the running core has to stop for the next event;
            also from other threads.
        phase: see `phase`; by default everything is phase 0.
        reached: returns the cycle that every running core has reached; by default ``now``.

    Attributes:
        hertz: of the core.
    """

    def __init__(
        self,
        now: Callable[[], int],
        skip: Callable[[int], None],
        hertz: int,
        planned: Callable[[int], None] = lambda cycle: None,
        phase: Callable[[], tuple[int, int]] | None = None,
        reached: Callable[[], int] | None = None,
    ) -> None:
        self._now = now
        self._skip = skip
        self._planned = planned
        self._phase = phase
        self._reached = now if reached is None else reached
        self.hertz = hertz
        self._skipped = 0
        self._witness: Witness | None = None
        self._events: list[Event] = []
        self._order = itertools.count()
        self._members: list[_Member] = []
        self._observers: list[Observer] = []
        self._outside = OutsideQueue(lambda: planned(0))

    @property
    def now(self) -> int:
        """Core cycles; in a register access, those before the accessing instruction."""
        return self._now()

    @property
    def seconds(self) -> float:
        """`now` in seconds, at the core's clock frequency."""
        return self.now / self.hertz

    @property
    def skipped(self) -> int:
        """Cycles that passed without an instruction so far."""
        return self._skipped

    @property
    def witness(self) -> Witness | None:
        """Called where control flow depends on the timing of units; None: there is none."""
        return self._witness

    def call_witness(self, witness: Witness) -> None:
        """Let ``witness`` know from now on where control flow depends on the timing of units."""
        self._witness = witness

    def observe(self, observer: Observer) -> ExitStack:
        """Report cycles without an instruction to ``observer`` until the result is closed."""
        self._observers.append(observer)
        registered = ExitStack()
        registered.callback(self._observers.remove, observer)
        return registered

    def phase(self) -> tuple[int, int]:
        """Return the running program's phase and its cycles since phases were set."""
        return (0, self.now) if self._phase is None else self._phase()

    # -- events -------------------------------------------------------------------------------

    def at(self, cycle: int, fire: Callable[[], None]) -> Event:
        """Schedule a call of ``fire`` at a cycle; one in the past comes at the next opportunity.

        Cores notice between two blocks of code, so that an interrupt raised by the event may come
        some instructions later.
        """
        event = Event(cycle, next(self._order), fire)
        heapq.heappush(self._events, event)
        self._plan()
        return event

    @property
    def next_event(self) -> int | None:
        """The cycle at which something fires next; None where nothing is scheduled."""
        while self._events and self._events[0].cancelled:
            heapq.heappop(self._events)
        first = self._events[0].cycle if self._events else None
        if self._members:
            wishes = [member.wish for member in self._members if member.wish is not None]
            return min(wishes if first is None else [first, *wishes], default=None)
        return first

    def run_due(self) -> bool:
        """Run everything that is due, in order of time; return whether anything was."""
        fired = self._outside.has_posted
        if fired:
            self._outside.run_posted()
        while (cycle := self.next_event) is not None and cycle <= self._reached():
            # participants first: the callback finds them as they are at its cycle
            for member in list(self._members):
                member.advance(cycle)
            if self._events and self._events[0].cycle <= cycle:
                event = heapq.heappop(self._events)
                if not event.cancelled:
                    event.fire()
            fired = True
        return fired

    def wait_until(self, cycle: int) -> int:
        """Stall the core until ``cycle``; return the cycles that passed.

        The time is skipped ahead, not simulated: it counts as cycles and as no instruction. Events
        in between fire, unless another core has not reached them: then they fire when it has.
        Returns at once for a cycle in the past.
        """
        start = self.now
        while (due := self.next_event) is not None and due < cycle:
            self._stall(due - self.now)
            if not self.run_due():
                break
        self._stall(cycle - self.now)
        return self.now - start

    def _stall(self, cycles: int) -> None:
        if cycles > 0:
            for observer in self._observers:
                observer.stalled(self.now, cycles)
            self._skip(cycles)
            self._skipped += cycles

    def _plan(self) -> None:
        """Let the running core stop for the next event."""
        cycle = self.next_event
        if cycle is not None:
            self._planned(cycle)
        # after the above, which may have undone the notice of a post from another thread
        if self._outside.has_posted:
            self._planned(0)

    # -- clocked models -----------------------------------------------------------------------

    def join(self, participant: Participant) -> None:
        """Advance a clocked model along with time, from now on: it is advanced to now at once.

        Before an event fires, every participant is advanced to its cycle.

        Raises:
            AcceleratorError: its next wish does not lie in the future.
        """
        self._members.append(_Member(participant))
        self.advance(participant)

    def leave(self, participant: Participant) -> None:
        """Stop advancing a participant; no effect on one that did not join."""
        self._members = [m for m in self._members if m.participant is not participant]

    def advance(self, participant: Participant) -> None:
        """Advance a participant to now, out of turn, and take its new wish.

        For a model whose registers are accessed: it has to catch up before it answers, and may
        want to be advanced earlier after it. Raises AcceleratorError as `join` does.
        """
        for member in self._members:
            if member.participant is participant:
                member.advance(self.now)
        self._plan()

    # -- input from outside -------------------------------------------------------------------

    def outside(self) -> OutsideSource:
        """Register a source of input from other threads; a context manager."""
        return self._outside.add()

    @property
    def is_open(self) -> bool:
        """True if input from outside may come."""
        return self._outside.is_open

    @property
    def has_posted(self) -> bool:
        """True if input from outside waits for `run_due`."""
        return self._outside.has_posted

    def wait_outside(self, is_over: Callable[[], bool], deadline: float) -> None:
        """Block the host until input comes, ``is_over`` or `time.monotonic` is at ``deadline``."""
        self._outside.wait(is_over, deadline)

    def wake(self) -> None:
        """Let `wait_outside` look at its condition again. Thread-safe."""
        self._outside.wake()

    def close(self) -> None:
        """Ignore input from outside from now on."""
        self._outside.close()

    # -- state --------------------------------------------------------------------------------

    def save_state(self) -> ClockState:
        """Return the events, the participants' wishes and the skipped time, but not `now`."""
        return ClockState(
            self._skipped,
            tuple((event, event.cancelled) for event in self._events),
            tuple((member, member.wish, member.reached) for member in self._members),
        )

    def load_state(self, state: ClockState) -> None:
        """Go back to a saved state; posts from outside stay."""
        self._skipped = state.skipped
        self._events = [event for event, _ in state.events]
        for event, cancelled in state.events:
            event.cancelled = cancelled
        self._members = [member for member, _, _ in state.members]
        for member, wish, reached in state.members:
            member.wish, member.reached = wish, reached


class ClockView(Clock):
    """A view of the board's clock; subclasses override what is different for their models.

    Events, waiting, clocked models and input from outside are the board's.

    Args:
        clock: of the board.
        divider: its cycles per cycle of this one, rounded down in `now`.
    """

    def __init__(self, clock: Clock, divider: int = 1) -> None:
        super().__init__(
            lambda: clock.now // divider,
            lambda cycles: None,
            clock.hertz // divider,
            phase=clock.phase,
        )
        self._clock = clock

    @property
    def witness(self) -> Witness | None:
        """The board's witness."""
        return self._clock.witness

    @property
    def skipped(self) -> int:
        """Cycles of the board that passed without an instruction so far."""
        return self._clock.skipped

    def observe(self, observer: Observer) -> ExitStack:
        """Report cycles without an instruction to ``observer``; see `Clock.observe`."""
        return self._clock.observe(observer)

    def at(self, cycle: int, fire: Callable[[], None]) -> Event:
        """Schedule a call of ``fire`` at ``cycle``; see `Clock.at`."""
        return self._clock.at(cycle, fire)

    def run_due(self) -> bool:
        """Run everything that is due; see `Clock.run_due`."""
        return self._clock.run_due()

    def wait_until(self, cycle: int) -> int:
        """Stall the core until ``cycle``; see `Clock.wait_until`."""
        return self._clock.wait_until(cycle)

    def join(self, participant: Participant) -> None:
        """Advance a ``participant`` along with time; see `Clock.join`."""
        self._clock.join(participant)

    def leave(self, participant: Participant) -> None:
        """Stop advancing a ``participant``; see `Clock.leave`."""
        self._clock.leave(participant)

    def advance(self, participant: Participant) -> None:
        """Advance a ``participant`` to now; see `Clock.advance`."""
        self._clock.advance(participant)

    def outside(self) -> OutsideSource:
        """Register a source of input from other threads; see `Clock.outside`."""
        return self._clock.outside()


class DividedClock(ClockView):
    """A clock for the private timers of a slower core; events are the board's.

    Args:
        clock: of the board.
        divider: its cycles per cycle of this one, rounded down in `now` and exact in `at`.
    """

    def __init__(self, clock: Clock, divider: int) -> None:
        super().__init__(clock, divider)
        self._divider = divider

    def at(self, cycle: int, fire: Callable[[], None]) -> Event:
        """Call ``fire`` when ``cycle`` of this clock has come; see `Clock.at`."""
        return super().at(cycle * self._divider, fire)
