"""The parts of a Cortex-M that firmware measures itself with: SysTick, DWT_CYCCNT, and the SCB.

Registers as in Arm DDI0403E (ARMv7-M) chapters B3.2, B3.3 and C1.8. There are no interrupts yet:
SysTick counts and sets COUNTFLAG, and TICKINT has no effect.
"""

from __future__ import annotations

from covp.machine.peripheral import Peripheral
from covp.machine.registers import Field, Register, RegisterMap

SCS_BASE = 0xE000E000
DWT_BASE = 0xE0001000

_PLAIN = {
    "ICTR": 0x004, "ACTLR": 0x008, "ICSR": 0xD04, "VTOR": 0xD08, "AIRCR": 0xD0C, "SCR": 0xD10,
    "CCR": 0xD14, "SHPR1": 0xD18, "SHPR2": 0xD1C, "SHPR3": 0xD20, "SHCSR": 0xD24, "CFSR": 0xD28,
    "HFSR": 0xD2C, "MMFAR": 0xD34, "BFAR": 0xD38, "CPACR": 0xD88, "FPCCR": 0xF34, "FPCAR": 0xF38,
    "FPDSCR": 0xF3C,
}  # fmt: skip


class SystemControl(Peripheral):
    """The system control space: SysTick works, DEMCR holds TRCENA, the rest only remembers."""

    registers = RegisterMap(
        Register(
            "SYST_CSR",
            0x010,
            fields=[
                Field("ENABLE", 0),
                Field("TICKINT", 1),
                Field("CLKSOURCE", 2, reset=1),
                Field("COUNTFLAG", 16, access="ro", doc="Reached 0 since the last read."),
            ],
            on_write="switch",
            on_read="update_flag",
        ),
        Register("SYST_RVR", 0x014, fields=[Field("RELOAD", 0, 24)]),
        Register("SYST_CVR", 0x018, on_write="clear", on_read="update_value"),
        Register("SYST_CALIB", 0x01C, access="ro"),
        Register("CPUID", 0xD00, access="ro"),
        Register("DEMCR", 0xDFC),
        *(Register(name, offset) for name, offset in _PLAIN.items()),
    )

    def reset(self) -> None:
        """SysTick off."""
        super().reset()
        self._start: int | None = None
        self._value = 0
        self._flag_seen = 0

    def switch(self, value: int) -> None:
        """SYST_CSR was written."""
        running, enable = self._start is not None, value & 1
        if enable and not running:
            self._resume(self._value)
        elif not enable and running:
            self._value = self._now()[0]
            self._start = None

    def clear(self, value: int) -> None:
        """SYST_CVR was written: it goes to 0 and is reloaded at the next clock."""
        self._value = 0
        self._flag_seen = 0
        if self._start is not None:
            self._resume(0)

    def update_value(self) -> None:
        """SYST_CVR is read."""
        self.values["SYST_CVR"] = self._now()[0]

    def update_flag(self) -> None:
        """SYST_CSR is read; that clears COUNTFLAG."""
        zeros = self._now()[1]
        self.set("SYST_CSR", "COUNTFLAG", int(zeros > self._flag_seen))
        self._flag_seen = zeros

    def _resume(self, value: int) -> None:
        self._start, self._value, self._flag_seen = self.clock.now, value, 0

    def _now(self) -> tuple[int, int]:
        """(value, how often 0 was reached) since it was started at ``_value``."""
        if self._start is None:
            return self._value, self._flag_seen
        period = self.values["SYST_RVR"] + 1
        elapsed = self.clock.now - self._start
        if elapsed < self._value:
            return self._value - elapsed, 0
        beyond = elapsed - self._value
        zeros = beyond // period + (1 if self._value else 0)
        return (-beyond) % period, zeros


class Dwt(Peripheral):
    """The data watchpoint and trace unit: its cycle counter."""

    registers = RegisterMap(
        Register(
            "CTRL",
            0x000,
            fields=[
                Field("CYCCNTENA", 0),
                Field("CONFIG", 1, 27, doc="Remembered, without effect."),
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
        """The counter stands at 0."""
        super().reset()
        self._value = 0
        self._start: int | None = None

    def switch(self, value: int) -> None:
        """CTRL was written."""
        running, enable = self._start is not None, value & 1
        if enable and not running:
            self._start = self.clock.now
        elif not enable and running:
            self.update()
            self._value, self._start = self.values["CYCCNT"], None

    def put(self, value: int) -> None:
        """CYCCNT was written."""
        self._value = value
        if self._start is not None:
            self._start = self.clock.now

    def update(self) -> None:
        """CYCCNT is read."""
        elapsed = self.clock.now - self._start if self._start is not None else 0
        self.values["CYCCNT"] = (self._value + elapsed) & 0xFFFFFFFF
