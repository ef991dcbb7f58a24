"""32 pins: outputs that Python is told of, inputs that Python, files or sockets drive."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from covp.hardware.clock import Event
from covp.hardware.peripheral import Peripheral
from covp.hardware.recording import Recording, open_recording
from covp.hardware.registers import Field, Register, RegisterMap

PINS = 32


class Gpio(Peripheral):
    """General-purpose pins with edge interrupts.

    A pin has the level that OUTPUT says while DIRECTION makes it an output, else the one that
    `drive` gave it, low after a reset.

    Args:
        source: what drives the pins 0, 1, ...: a recording with a channel for each, whose values
            are levels (not 0: high); see `open_recording`. It starts at reset. None: `drive` does.
        rate: frames of the source in a second of virtual time.

    Attributes:
        on_change: called in the simulation's thread with the pin's number, its new level and the
            cycle whenever the program changes the level of an output.
    """

    registers = RegisterMap(
        Register("DIRECTION", 0x00, on_write="outputs", doc="Of each pin: 1 for output."),
        Register("OUTPUT", 0x04, on_write="outputs", doc="Levels of the outputs."),
        Register("SET", 0x08, access="wo", on_write="raise_pins", doc="Ones set bits of OUTPUT."),
        Register("CLEAR", 0x0C, access="wo", on_write="lower_pins", doc="Ones clear them."),
        Register("TOGGLE", 0x10, access="wo", on_write="toggle_pins", doc="Ones invert them."),
        Register("INPUT", 0x14, access="ro", doc="Levels of all pins."),
        Register("RISING", 0x18, doc="Pins whose rising edges set PENDING."),
        Register("FALLING", 0x1C, doc="Pins whose falling edges set PENDING."),
        Register(
            "PENDING",
            0x20,
            on_write="acknowledge",
            fields=[Field("EDGES", 0, 32, access="w1c", doc="Pins with an edge.")],
            doc="The interrupt is requested while it is not 0; a one that is written clears a bit.",
        ),
    )
    size = 0x24

    def __init__(
        self, source: str | Path | Iterable[Any] | None = None, rate: float | None = None
    ) -> None:
        self.on_change: Callable[[int, bool, int], None] | None = None
        self._recording: Recording | None = None if source is None else open_recording(source, rate)
        self._frame: Event | None = None
        super().__init__()

    def reset(self) -> None:
        """All pins are inputs and low; the source starts from its beginning."""
        super().reset()
        self._driven = 0
        self.interrupt.set(False)
        if self._frame is not None:
            self._frame.cancel()
            self._frame = None
        if self._recording is not None:
            self._begin = self.clock.now
            self._plan(0)

    # -- outside ------------------------------------------------------------------------------

    def level(self, pin: int) -> bool:
        """Whether a ``pin``, 0 to 31, is high."""
        return bool(self.values["INPUT"] >> pin & 1)

    def drive(self, pin: int, level: bool) -> None:
        """Put an input to a level; seen when the pin is no output.

        From the simulation's thread; another one posts it (`Clock.outside`).

        Args:
            pin: 0 to 31.
            level: True for high.
        """
        if not 0 <= pin < PINS:
            raise ValueError(f"pin {pin} is not in 0..{PINS - 1}")
        self._drive(self._driven & ~(1 << pin) | bool(level) << pin)

    def _drive(self, levels: int) -> None:
        self._driven = levels
        self._settle()

    def _plan(self, number: int) -> None:
        assert self._recording is not None
        due = self._recording.cycle(number, self._begin, self.clock.hertz)
        self._frame = self.clock.at(due, lambda: self._play(number))

    def _play(self, number: int) -> None:
        assert self._recording is not None
        self._frame = None
        frame = self._recording.frame(number)
        if frame is not None:
            mask = (1 << min(len(frame), PINS)) - 1
            levels = sum(bool(value) << pin for pin, value in enumerate(frame[:PINS]))
            self._plan(number + 1)
            self._drive(self._driven & ~mask | levels)

    # -- registers ----------------------------------------------------------------------------

    def outputs(self, value: int) -> None:
        """DIRECTION or OUTPUT was written."""
        self._settle()

    def raise_pins(self, value: int) -> None:
        """SET was written."""
        self.values["OUTPUT"] |= value
        self._settle()

    def lower_pins(self, value: int) -> None:
        """CLEAR was written."""
        self.values["OUTPUT"] &= ~value
        self._settle()

    def toggle_pins(self, value: int) -> None:
        """TOGGLE was written."""
        self.values["OUTPUT"] ^= value
        self._settle()

    def acknowledge(self, value: int) -> None:
        """PENDING was written."""
        self._request()

    def _request(self) -> None:
        level = self.values["PENDING"] != 0
        if level != self.interrupt.level:  # a line that stays up is no new request
            self.interrupt.set(level)

    def _settle(self) -> None:
        """Levels follow what drives them; edges become pending, Python is told of outputs."""
        before, direction = self.values["INPUT"], self.values["DIRECTION"]
        after = (self.values["OUTPUT"] & direction) | (self._driven & ~direction)
        changed = before ^ after
        if not changed:
            return
        self.values["INPUT"] = after
        edges = changed & after & self.values["RISING"] | changed & before & self.values["FALLING"]
        if edges:
            self.values["PENDING"] |= edges
            self._request()
        if self.on_change is not None:
            for pin in range(PINS):
                if changed & direction & 1 << pin:
                    self.on_change(pin, bool(after >> pin & 1), self.clock.now)
