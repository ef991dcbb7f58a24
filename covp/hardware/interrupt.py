"""`InterruptLine`: a peripheral's interrupt request; `InterruptController`: a core's side of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class InterruptInputs(Protocol):
    """A core's interrupt request lines."""

    def set_line(self, number: int, level: bool) -> None:
        """Set the ``level`` of interrupt request line ``number``, counted from 0."""
        ...


class InterruptController(InterruptInputs, Protocol):
    """A unit that decides when the running program is interrupted, and by which exception.

    No call comes while an instruction is being executed, but for `set_line`.

    Attributes:
        on_entry: called before an interrupt is taken, with its line (of Arm's system exceptions
            their number less 16) and the address of the instruction that it comes before.
        on_return: called when a handler has returned.
    """

    on_entry: Callable[[int, int], None] | None
    on_return: Callable[[], None] | None

    def pulse(self, number: int) -> None:
        """Request line ``number`` until it is taken, as an edge-triggered line does."""
        ...

    def wakes(self) -> bool:
        """Return whether a core in WFI wakes up."""
        ...

    def preempts(self) -> bool:
        """Return whether a pending exception interrupts the running code."""
        ...

    def take(self, pc: int) -> int:
        """Enter the exception to be handled before the instruction at ``pc``; the pc to go on."""
        ...

    def reset(self) -> None:
        """Clear all pending and enabled interrupts."""
        ...

    def save_state(self) -> object:
        """Return everything but the core's registers; for `load_state` only."""
        ...

    def load_state(self, state: object) -> None:
        """Go back to a saved state."""
        ...


class InterruptLine:
    """A peripheral's interrupt request line; one without a controller only keeps its level.

    Args:
        controller: of the core that the line leads to, or None.
        number: of the line; None where it is not connected.
        changed: called after each change, so that a running core looks at it.

    Attributes:
        number: of the line.
        level: whether the peripheral requests an interrupt.
        on_change: called with the new level.
    """

    on_change: Callable[[bool], None] | None = None

    def __init__(
        self,
        controller: InterruptInputs | None = None,
        number: int | None = None,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.number = number
        self.level = False
        self._controller, self._changed = controller, changed

    def set(self, level: bool) -> None:
        """Raise (True) or clear (False) the request."""
        if self.on_change is not None and level != self.level:
            self.on_change(level)
        self.level = level
        if self._controller is not None and self.number is not None:
            self._controller.set_line(self.number, level)
        self._changed()
