"""A timer: one-shot or periodic, with an interrupt."""

from __future__ import annotations

from covp.hardware.clock import Event
from covp.hardware.peripheral import LINES, Peripheral
from covp.hardware.registers import Field, Register, RegisterMap


class Timer(Peripheral):
    """Expires PERIOD ticks after CTRL.ENABLE was set, and with PERIODIC every PERIOD ticks.

    A tick is PRESCALE + 1 cycles of the core's clock. Expirations are that many cycles apart
    exactly, however late the program sees them. PERIOD and PRESCALE hold from the next start or
    expiration on.

    Args:
        request: number of the DMA request signal that each expiration pulses; None: none.
    """

    registers = RegisterMap(
        Register(
            "CTRL",
            0x00,
            on_write="control",
            fields=[
                Field("ENABLE", 0, doc="Count; cleared when a one-shot expires."),
                Field("PERIODIC", 1, doc="Go on after an expiration."),
                Field("INTERRUPT", 2, doc="Request an interrupt while STATUS.EXPIRED is up."),
            ],
            doc="What it does.",
        ),
        Register(
            "STATUS",
            0x04,
            on_write="acknowledge",
            fields=[
                Field("EXPIRED", 0, access="w1c", doc="It has expired."),
                Field("MISSED", 1, access="w1c", doc="It expired while EXPIRED was up."),
            ],
            doc="Flags; a one that is written clears one.",
        ),
        Register("PERIOD", 0x08, doc="Ticks from start to expiration, above 0."),
        Register("PRESCALE", 0x0C, fields=[Field("VALUE", 0, 16)], doc="Cycles of a tick, less 1."),
        Register("COUNT", 0x10, access="ro", on_read="count", doc="Ticks left; 0: it is off."),
        Register("EXPIRATIONS", 0x14, access="ro", doc="Expirations since reset, modulo 2**32."),
    )
    size = 0x18

    def __init__(self, request: int | None = None) -> None:
        if request is not None and not 0 <= request < LINES:
            raise ValueError(f"request {request} must be below {LINES}")
        self._dma_request = request
        self._next: Event | None = None
        super().__init__()

    def reset(self) -> None:
        """Stop; nothing is pending."""
        super().reset()
        self._stop()
        self.interrupt.set(False)

    def control(self, value: int) -> None:
        """CTRL was written."""
        if not self.get("CTRL", "ENABLE"):
            self._stop()
        elif self._next is None:
            self._start(self.clock.now)
        self._request()

    def acknowledge(self, value: int) -> None:
        """STATUS was written."""
        self._request()

    def count(self) -> None:
        """The core reads COUNT."""
        left = 0 if self._next is None else max(0, self._next.cycle - self.clock.now)
        self.values["COUNT"] = -(-left // self._tick)

    @property
    def _tick(self) -> int:
        return self.values["PRESCALE"] + 1

    def _start(self, begin: int) -> None:
        if not self.values["PERIOD"]:
            raise self.fault("ENABLE with PERIOD 0")
        due = begin + self.values["PERIOD"] * self._tick
        self._next = self.clock.at(due, lambda: self._expire(due))

    def _stop(self) -> None:
        if self._next is not None:
            self._next.cancel()
        self._next = None

    def _expire(self, cycle: int) -> None:
        self._next = None
        self.values["EXPIRATIONS"] = (self.values["EXPIRATIONS"] + 1) & 0xFFFFFFFF
        if self.get("STATUS", "EXPIRED"):
            self.set("STATUS", "MISSED", 1)
        self.set("STATUS", "EXPIRED", 1)
        if self.get("CTRL", "PERIODIC"):
            self._start(cycle)
        else:
            self.set("CTRL", "ENABLE", 0)
        self._request()
        if self._dma_request is not None:
            self.requests.pulse(self._dma_request)

    def _request(self) -> None:
        level = bool(self.get("STATUS", "EXPIRED") and self.get("CTRL", "INTERRUPT"))
        if level != self.interrupt.level:  # a line that stays up is no new request
            self.interrupt.set(level)
