"""`ExactRtlUnit`: a unit in Verilog that runs beside the core, access by access."""

from __future__ import annotations

from functools import cached_property

from covp.accelerator.rtl.library import UnitClock
from covp.accelerator.rtl.unit import RtlUnit, rejection_of
from covp.errors import AcceleratorError
from covp.hardware.bus import Bus
from covp.hardware.clock import Clock
from covp.hardware.job_unit import ERRORS, JobRecord


class ExactRtlUnit(RtlUnit):
    """A unit whose registers are those of its RTL in every cycle.

    Each access of the core goes through the RTL's port and takes its cycles; STATUS and the
    interrupt are the RTL's while it works, and what it stores is in memory when it is stored.

    The RTL lags behind: it is simulated up to the core's cycle when the core accesses a register,
    and at the end of a job, which a copy of it tells in advance. Its memory port is its own.

    Args: as of `RtlUnit`.
    """

    not_saved = RtlUnit.not_saved | {"_unit_clock"}

    @cached_property
    def _unit_clock(self) -> UnitClock:
        return UnitClock(self._model, self._clock_ratio)

    def attach(self, name: str, bus: Bus, clock: Clock) -> None:
        """Connect the model to the device, and the unit's clock to the core's."""
        super().attach(name, bus, clock)
        self._unit_clock.align(clock.now)

    def reset(self) -> None:
        """Reset the registers and the RTL."""
        super().reset()
        self._model.begin((), 0)
        if hasattr(self, "clock"):
            self._unit_clock.align(self.clock.now)

    def save_state(self) -> object:
        """Return the state of the model and the RTL.

        Raises:
            AcceleratorError: a job runs: what its port has under way is not part of the state.
        """
        if self._end is not None:
            raise AcceleratorError(
                f"the RTL of {self.name}: its state can be saved between two jobs, not in one"
            )
        return super().save_state()

    def load_state(self, state: object) -> None:
        """Go back to what `save_state` returned."""
        super().load_state(state)
        self._unit_clock.align(self.clock.now)

    def read_register(self, offset: int, size: int) -> int:
        """Return what the RTL answers; see `Peripheral`."""
        register = self._find(offset, size, "read")
        if register.access == "wo":
            raise self.fault(f"read of {register.name}, which is write-only", offset, size)
        self._catch_up()
        value = self._read(register)
        self._stall()
        return value

    def write_register(self, offset: int, size: int, value: int) -> None:
        """Hand a store to the RTL; see `Peripheral`."""
        register = self._find(offset, size, "write")
        self._catch_up()
        if register.name == "CTRL" and value & 1 and self._end is None:
            self._expect_end()
        self._write(register, value)
        super().write_register(offset, size, value)
        self._stall()
        self.interrupt.set(self._model.interrupts())

    def start(self, _: int) -> None:
        """Keep what the record of the job needs; the RTL has started it."""
        if self._end is not None:
            return
        self.refusal = ""
        self.set("STATUS", "ERROR", 0)
        self.set("STATUS", "DONE", 0)
        self.set("STATUS", "BUSY", 1)
        self.begun += 1
        phase, spent = self.clock.phase()
        began, skipped = self.clock.now, self.clock.skipped
        end = self._model.taken + self._cycles
        self.done_at = self._unit_clock.core_cycle(end)

        def finish() -> None:
            self._catch_up()
            self._end = None
            self._finish(phase, spent, began, self.clock.skipped - skipped)

        self._end = self.clock.at(self.done_at, finish)

    def poll(self) -> None:
        """Do nothing: STATUS is the RTL's."""

    def look(self) -> None:
        """Do nothing: INTERRUPT is the RTL's."""

    def acknowledge(self, _: int) -> None:
        """Do nothing: the line is the RTL's."""

    # -- the RTL beside the core --------------------------------------------------------------

    def _catch_up(self) -> None:
        """Simulate up to the core's present cycle, and let memory have what was stored."""
        if not self._unit_clock.advance(self.clock.now):
            return
        self._demand_rules()
        stores = self._model.stores()
        if stores and self._end is None:
            raise self._wrong("it stores after its irq is up: DONE comes too early")
        with self.bus.uncounted():
            for address, data in stores:
                self.bus.write(address, data)
                self._stored += data.size

    def _stall(self) -> None:
        """Let the core wait for the access, of whose cycles one is its own."""
        self.clock.wait_until(self._unit_clock.core_cycle(self._model.now) - 1)

    def _expect_end(self) -> None:
        """Begin a job: learn from a copy of the RTL how long it takes."""
        registers = self.registers
        self._model.begin(self.bus.memories)
        self._stored = 0
        limit = self._longest()
        self._cycles = self._model.predict(
            registers["INTERRUPT"].offset, registers["CTRL"].offset, limit
        )
        if self._cycles >= limit:
            raise self._wrong(f"a job is not over after {limit:,} cycles: no irq")

    def _finish(self, phase: int, spent: int, began: int, waited: int) -> None:
        """Record a job that is over."""
        model = self._model
        self.set("STATUS", "BUSY", 0)
        self.set("STATUS", "DONE", 1)
        self.interrupt.set(model.interrupts())
        status = self._peek(self.registers["STATUS"].offset)
        for register in self._own():
            self.values[register.name] = self._peek(register.offset)
        rejection = rejection_of(status)
        if rejection is not None:
            self.refusal = str(rejection)
            self.set("STATUS", "ERROR", ERRORS[rejection.code])
            return
        self._demand_memory()
        job = self._job(self._cycles, [])
        present, spent_now = self.clock.phase()
        end = spent_now if present == phase else spent
        record = JobRecord(
            phase, spent, end, job.timing, waited, job.numbers, job.traffic, job.macs, self._stored
        )
        self.latest = job
        self.jobs.append(record)
        self.bus.count(self.values[self.result_register], job.traffic.written, is_write=True)
        if self.on_end is not None:
            self.on_end(began, self.clock.now, record)

    def _peek(self, offset: int) -> int:
        """Return a register's value without an access of the core."""
        value = self._model.peek(offset)
        if value is None:
            raise AcceleratorError(f"the RTL of {self.name}: a read at 0x{offset:x} has no answer")
        return value
