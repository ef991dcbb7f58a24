"""The pins of SiFive's FE310 (HiFive1).

Registers: SiFive FE310-G002 Manual v19p05, chapter 17.
"""

from __future__ import annotations

from collections.abc import Callable

from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Register, RegisterMap

_KEPT = {
    "PUE": 0x10, "DS": 0x14, "RISE_IE": 0x18, "FALL_IE": 0x20, "HIGH_IE": 0x28, "LOW_IE": 0x30,
    "IOF_EN": 0x38, "IOF_SEL": 0x3C,
}  # fmt: skip


class SifiveGpio(Peripheral):
    """32 pins. Levels in and out work; interrupts do not, and what other units do to pins.

    Args:
        on_output: called with the pin and its level whenever an output changes.
    """

    ignores_reserved = True
    registers = RegisterMap(
        Register("INPUT_VAL", 0x00, access="ro", on_read="read_pins"),
        Register("INPUT_EN", 0x04),
        Register("OUTPUT_EN", 0x08, on_write="drive_pins"),
        Register("OUTPUT_VAL", 0x0C, on_write="drive_pins"),
        Register("OUT_XOR", 0x40, on_write="drive_pins"),
        *(Register(name, offset) for name, offset in _KEPT.items()),
        *(
            Register(name, offset, access="w1c")
            for name, offset in (("RISE_IP", 0x1C), ("FALL_IP", 0x24), ("HIGH_IP", 0x2C),
                                 ("LOW_IP", 0x34))
        ),
    )  # fmt: skip

    def __init__(self, on_output: Callable[[int, bool], None] | None = None) -> None:
        self.on_output = on_output
        super().__init__()

    def reset(self) -> None:
        """All pins are off."""
        super().reset()
        self._inputs = self._outputs = 0

    def drive(self, pin: int, level: bool) -> None:
        """Something outside puts a pin to a level."""
        self._inputs = self._inputs & ~(1 << pin) | level << pin

    @property
    def outputs(self) -> int:
        """The levels of the pins that are outputs, one bit each."""
        levels = self.values["OUTPUT_VAL"] ^ self.values["OUT_XOR"]
        return levels & self.values["OUTPUT_EN"] & ~self.values["IOF_EN"]

    def read_pins(self) -> None:
        """INPUT_VAL is read."""
        levels = self.outputs | self._inputs & ~self.values["OUTPUT_EN"]
        self.values["INPUT_VAL"] = levels & self.values["INPUT_EN"]

    def drive_pins(self, value: int) -> None:
        """A register of outputs was written."""
        changed, self._outputs = self._outputs ^ self.outputs, self.outputs
        for pin in range(32):
            if changed >> pin & 1 and self.on_output is not None:
                self.on_output(pin, bool(self._outputs >> pin & 1))
