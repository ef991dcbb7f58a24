"""`ScriptedPeripheral`: a few registers that answer a request with given values."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Register, RegisterMap

Answer = Mapping[str, int] | Callable[[Mapping[str, int]], Mapping[str, int]]


class ScriptedPeripheral(Peripheral):
    """Registers of which one starts an operation and another reports its end.

    ::

        adc = ScriptedPeripheral(
            {"CTRL": 0, "STATUS": 4, "DATA": 8}, start="CTRL", ready=("STATUS", 1),
            answer={"DATA": 42}, after=100,
        )
        session.device.attach(adc, 0x50000000, "adc")

    A write of any other value than 0 to ``start`` clears the ready bits and inverts the answer's
    registers, so that who reads too early is wrong. ``after`` cycles later the answer is in them,
    the ready bits are set and the interrupt line is up until ``start`` is written again. All
    registers can be read and written, bytes and halfwords too.

    Args:
        registers: name to offset in bytes.
        start: name of the register whose write is a request.
        ready: name of a register, and the bits that are set with the answer.
        answer: register name to value; or a function from the values at the request to that.
        after: cycles from the request to the answer; `covp.testing.answering` changes them.
        idle: the values after reset of registers that are not 0.

    Attributes:
        requests_seen: how many requests there were.
    """

    widths = frozenset({1, 2, 4})

    def __init__(
        self,
        registers: Mapping[str, int],
        *,
        start: str,
        ready: tuple[str, int],
        answer: Answer,
        after: int = 1,
        idle: Mapping[str, int] | None = None,
    ) -> None:
        values = dict(idle or {})
        self._map = RegisterMap(
            *(
                Register(
                    name,
                    offset,
                    reset=values.get(name, 0),
                    on_write="on_request_written" if name == start else None,
                )
                for name, offset in registers.items()
            )
        )
        self._ready, self._answer, self._after = ready, answer, after
        self.requests_seen = 0
        super().__init__()

    @property
    def registers(self) -> RegisterMap:  # type: ignore[override]
        """The register map, of this instance."""
        return self._map

    def on_request_written(self, value: int) -> None:
        """Answer the write of the register ``start``."""
        name, bits = self._ready
        self.interrupt.set(False)
        if not value:
            return
        self.requests_seen += 1
        self.values[name] &= ~bits
        answer = self._answer(dict(self.values)) if callable(self._answer) else self._answer
        self.values.update({name: ~word & 0xFFFFFFFF for name, word in answer.items()})

        def finish() -> None:
            self.values.update({name: word & 0xFFFFFFFF for name, word in answer.items()})
            self.values[name] |= bits
            self.interrupt.set(True)

        self.clock.at(self.clock.now + self._after, finish)
