"""`RunControl` and `Sleep`: a halt request, a deadline, and a core's wait for an interrupt."""

from __future__ import annotations

import time
from collections.abc import Callable

from covp.errors import DeviceFault
from covp.hardware.clock import Clock
from covp.hardware.interrupt import InterruptController


class RunControl:
    """A halt request and deadline, shared by whatever keeps a core busy.

    Attributes:
        now: the clock of the deadline, in seconds.
        deadline: its time at which a run ends.
        halt_requested: set from any thread.
    """

    def __init__(self) -> None:
        self.now: Callable[[], float] = time.monotonic
        self.deadline = 0.0
        self.halt_requested = False

    def begin(self, deadline: float) -> None:
        """Start a run."""
        self.deadline, self.halt_requested = deadline, False

    def is_over(self) -> bool:
        """Return whether the run has to end now."""
        return self.halt_requested or self.is_late()

    def is_late(self) -> bool:
        """Return whether the deadline has passed."""
        return self.now() > self.deadline


class Sleep:
    """The state of a core that may wait in a WFI, and what ends that.

    Attributes:
        wfi: address of the instruction, which has retired; None: the core is awake.
    """

    def __init__(self, clock: Clock, interrupts: InterruptController, control: RunControl) -> None:
        self.wfi: int | None = None
        self._clock, self._interrupts, self._control = clock, interrupts, control

    @property
    def is_asleep(self) -> bool:
        """True if the core waits."""
        return self.wfi is not None

    def wake(self) -> None:
        """Let the core go on, whatever its interrupts are."""
        self.wfi = None

    def has_ended(self) -> bool:
        """Fire due events; return whether the core is awake after them."""
        self._clock.run_due()
        if self._interrupts.wakes():
            self.wfi = None
        return self.wfi is None

    def wait(self) -> None:
        """Skip time ahead to the event that wakes the core.

        With nothing scheduled it blocks until input comes from outside, where that may be. The
        core stays asleep when the run is over (halt request, deadline).

        Raises:
            DeviceFault: nothing can ever wake the core (kind "endless sleep").
        """
        if self._clock.witness is not None:
            self._clock.witness.on_sleep()
        while not self.has_ended():
            if self._control.is_over():
                return
            due = self._clock.next_event
            if due is not None:
                self._clock.wait_until(due)
            elif self._clock.is_open:
                self._clock.wait_outside(self._control.is_over, self._control.deadline)
            else:
                raise self.endless()

    def endless(self) -> DeviceFault:
        """Return the fault of a core that nothing will wake."""
        return DeviceFault(
            "endless sleep",
            pc=self.wfi,
            detail="WFI: no enabled interrupt is pending and no peripheral is at work",
        )
