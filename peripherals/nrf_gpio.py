"""The pins of a port of the nRF52840: directions, levels and configurations are kept.

Registers: nRF52840 Product Specification v1.7, "GPIO - General purpose input/output".
"""

from __future__ import annotations

from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Register, RegisterMap

_PINS = 32


class NrfGpio(Peripheral):
    """One port. Levels in are those of the outputs."""

    size = 0x300
    ignores_reserved = True
    registers = RegisterMap(
        Register("OUT", 0x004),
        Register("OUTSET", 0x008, on_write="set_outputs"),
        Register("OUTCLR", 0x00C, on_write="clear_outputs"),
        Register("IN", 0x010, access="ro", on_read="sense"),
        Register("DIR", 0x014),
        Register("DIRSET", 0x018, on_write="set_directions"),
        Register("DIRCLR", 0x01C, on_write="clear_directions"),
        *(Register(f"PIN_CNF{pin}", 0x200 + 4 * pin, reset=2) for pin in range(_PINS)),
    )

    def set_outputs(self, value: int) -> None:
        """OUTSET: ones are high."""
        self._change("OUT", self.values["OUT"] | value)

    def clear_outputs(self, value: int) -> None:
        """OUTCLR: ones are low."""
        self._change("OUT", self.values["OUT"] & ~value)

    def set_directions(self, value: int) -> None:
        """DIRSET: ones are outputs."""
        self._change("DIR", self.values["DIR"] | value)

    def clear_directions(self, value: int) -> None:
        """DIRCLR: ones are inputs."""
        self._change("DIR", self.values["DIR"] & ~value)

    def sense(self) -> None:
        """IN is read."""
        self.values["IN"] = self.values["OUT"] & self.values["DIR"]

    def _change(self, name: str, value: int) -> None:
        for register in (name, f"{name}SET", f"{name}CLR"):
            self.values[register] = value
