"""`InterruptLine`: a peripheral's request for attention, and what a core does with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class InterruptController(Protocol):
    """Decides when the running program is interrupted, and by what.

    All calls happen while no instruction is carried out.
    """

    def set_line(self, number: int, level: bool) -> None:
        """A peripheral's interrupt request line goes up or down."""
        ...

    def wakes(self) -> bool:
        """Whether a sleeping core goes on."""
        ...

    def preempts(self) -> bool:
        """Whether something pending interrupts what is running."""
        ...

    def take(self, pc: int) -> int:
        """Enter what has to be handled in front of the instruction at ``pc``; the pc to go on."""
        ...

    def reset(self) -> None:
        """Nothing is pending or enabled."""
        ...


class InterruptLine:
    """A peripheral's request line; without a controller behind it nothing happens.

    Attributes:
        number: of the line; None where it leads nowhere.
        level: whether the peripheral asks for attention.

    ``changed`` is called after each change, to let a running core have a look.
    """

    def __init__(
        self,
        controller: InterruptController | None = None,
        number: int | None = None,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.number = number
        self.level = False
        self._controller, self._changed = controller, changed

    def set(self, level: bool) -> None:
        """Ask for attention, or stop asking."""
        self.level = level
        if self._controller is not None and self.number is not None:
            self._controller.set_line(self.number, level)
        self._changed()
