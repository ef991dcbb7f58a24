"""`Dwt`: the data watchpoint and trace unit of a Cortex-M, as far as its cycle counter.

Registers as in Arm DDI0403E (ARMv7-M) chapter C1.8.
"""

from __future__ import annotations

from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Field, Register, RegisterMap

DWT_BASE = 0xE0001000


class Dwt(Peripheral):
    """CYCCNT counts the core's cycles; the other registers keep their value."""

    registers = RegisterMap(
        Register(
            "CTRL",
            0x000,
            fields=[
                Field("CYCCNTENA", 0),
                Field("CONFIG", 1, 27, doc="Kept, without effect."),
                Field("NUMCOMP", 28, 4, access="ro"),
            ],
            on_write="switch",
        ),
        Register("CYCCNT", 0x004, on_write="put", on_read="update"),
        *(
            Register(name, offset)
            for name, offset in (
                ("CPICNT", 0x8), ("EXCCNT", 0xC), ("SLEEPCNT", 0x10), ("LSUCNT", 0x14),
                ("FOLDCNT", 0x18), ("LAR", 0xFB0),
            )
        ),
    )  # fmt: skip

    def reset(self) -> None:
        """Switch the counter off, at 0."""
        super().reset()
        self._value = 0
        self._start: int | None = None

    def switch(self, value: int) -> None:
        """Handle a write to CTRL."""
        running, enable = self._start is not None, value & 1
        if enable and not running:
            self._start = self.clock.now
        elif not enable and running:
            self.update()
            self._value, self._start = self.values["CYCCNT"], None

    def put(self, value: int) -> None:
        """Handle a write to CYCCNT."""
        self._value = value
        if self._start is not None:
            self._start = self.clock.now

    def update(self) -> None:
        """Update CYCCNT when it is read."""
        elapsed = self.clock.now - self._start if self._start is not None else 0
        self.values["CYCCNT"] = (self._value + elapsed) & 0xFFFFFFFF
