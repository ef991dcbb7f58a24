"""A port of output and input pins, whose inputs request an interrupt when they change."""

from __future__ import annotations

from collections.abc import Callable

from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Register, RegisterMap


class Pins(Peripheral):
    """32 outputs, 32 inputs.

    Args:
        on_output: called with the pin's number and its level whenever an output changes.
    """

    registers = RegisterMap(
        Register("OUT", 0x00, on_write="output", doc="Levels of the outputs."),
        Register("IN", 0x04, access="ro", doc="Levels of the inputs."),
        Register(
            "EDGES",
            0x08,
            access="w1c",
            on_write="request",
            doc="Inputs that have changed; a one that is written clears one.",
        ),
        Register(
            "ENABLE",
            0x0C,
            on_write="request",
            doc="Inputs whose flag in EDGES requests an interrupt.",
        ),
    )

    def __init__(self, on_output: Callable[[int, bool], None] | None = None) -> None:
        self.on_output = on_output
        self._levels = 0
        super().__init__()

    def reset(self) -> None:
        """Outputs and inputs are low."""
        super().reset()
        self._levels = 0
        self.interrupt.set(False)

    def drive(self, pin: int, level: bool) -> None:
        """Something outside puts an input to a level."""
        bit = 1 << pin
        before = self.values["IN"]
        self.values["IN"] = before | bit if level else before & ~bit
        self.values["EDGES"] |= before ^ self.values["IN"]
        self.request()

    def output(self, value: int) -> None:
        """OUT was written."""
        changed, self._levels = self._levels ^ value, value
        for pin in range(changed.bit_length()):
            if changed >> pin & 1 and self.on_output is not None:
                self.on_output(pin, bool(value >> pin & 1))

    def request(self, value: int = 0) -> None:
        """Look at the flags."""
        self.interrupt.set(bool(self.values["EDGES"] & self.values["ENABLE"]))
