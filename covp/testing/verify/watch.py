"""`UnitWatch` and `CoreWatch`: what a unit does while it works, and how calls leave the core."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from covp.chip.isa import ARCHITECTURES
from covp.device.abilities import Emulator
from covp.device.machine.engine import register_id
from covp.hardware.clock import Clock, ClockView, Event
from covp.hardware.job import FIRST_OFFSET
from covp.hardware.job_unit import JobUnit
from covp.hardware.observer import Observer
from covp.hardware.peripheral import Peripheral
from covp.laboratory.calling_convention import kept_registers


@dataclass(eq=False)
class _Job:
    """Work that a unit has scheduled.

    Attributes:
        reads: (address, bytes) of what it has loaded for it.
        before: the watched memory when it was scheduled.
        event: its end.
    """

    reads: list[tuple[int, int]]
    before: NDArray[np.uint8]
    event: Event | None = field(default=None)

    def clip(self, start: int, size: int) -> tuple[int, int]:
        """Return the part of a span that is watched, as offsets."""
        low = min(max(start, 0), self.before.size)
        return low, max(low, min(start + size, self.before.size))


class UnitWatch(Observer):
    """A watcher between a unit and its bus and clock.

    A unit's model loads its operands when it is started and stores when it is done; a unit in
    silicon does both all the time. So operands and the result's place must not change in between.

    Args:
        unit: attached to a device; gets a bus and a clock that tell about accesses.
        base, memory: the memory that is watched, as the core sees it.
        own_memory: gives (address, bytes) of the driver's variables and stack.

    Attributes:
        used: bytes of it from ``base`` on that count.
        pace: factor on the time that the unit takes; 1 is as its model says.
        cycles: of each job in place of the model's, or None.
        skips: a read of STATUS waits for the end, as in simulations; else it shows what is.
        writable: (address, bytes) of all that the unit may write now; None: anything.
        wrong: the first thing that was wrong since `forget`, or empty.
    """

    writable: list[tuple[int, int]] | None = None

    def __init__(
        self,
        unit: Peripheral,
        base: int,
        memory: NDArray[np.uint8],
        own_memory: Callable[[], list[tuple[int, int]]] = list,
    ) -> None:
        self.own_memory = own_memory
        self.unit = unit
        self.base, self.used = base, memory.size
        self.pace = 1.0
        self.cycles: int | None = None
        self.skips = True
        self.wrong = ""
        self.memory = memory
        self._reads: list[tuple[int, int]] = []
        self._jobs: list[_Job] = []
        self._now_ending: _Job | None = None
        self._stored_at_start = self._stored_now = False
        self._late = ""
        unit.bus.observe(self)
        unit.clock = _WatchedClock(self, unit.clock)
        if isinstance(unit, JobUnit):
            self._watch_start(unit)

    def forget(self) -> None:
        """Forget the previous run."""
        self.wrong = ""
        self._reads, self._jobs, self._now_ending = [], [], None
        self._late = ""

    @property
    def is_busy(self) -> bool:
        """True if the unit has work that is not done yet."""
        return any(job.event is not None and not job.event.cancelled for job in self._jobs)

    def says(self, wrong: str) -> None:
        """Keep the first thing that is wrong."""
        self.wrong = self.wrong or wrong

    # -- the bus ------------------------------------------------------------------------------

    def load(self, master: str, address: int, size: int) -> None:
        """See `Observer`."""
        if master == self.unit.name:
            self._reads.append((address, size))

    def time_of(self, cycles: int) -> int:
        """Return the time that the unit takes if its model says ``cycles``."""
        return round(cycles * self.pace) if self.cycles is None else self.cycles

    def store(self, master: str, address: int, data: NDArray[np.uint8]) -> None:
        """See `Observer`."""
        if master == self.unit.name:
            self._note_store(address, data.size, data)

    def _note_store(self, address: int, size: int, data: NDArray[np.uint8]) -> None:
        self._demand_own(address, size)
        job = self._now_ending
        if job is None:
            self._stored_at_start = True
        else:
            self._stored_now = True
            self._compare(job, address, size, "the result's place was written")
            if isinstance(self.unit, JobUnit) and not self.unit.get("STATUS", "BUSY"):
                self.says("the unit stored its result after it had cleared STATUS.BUSY")
        for other in self._jobs if job is None else [job, *self._jobs]:
            low, high = other.clip(address - self.base, size)
            start = self.base + low - address
            other.before[low:high] = data[start : start + high - low]

    def _demand_own(self, address: int, size: int) -> None:
        """Demand that a store lies in the layer's buffers, whatever bytes it leaves."""

        def inside(spans: list[tuple[int, int]]) -> bool:
            return any(low <= address and address + size <= low + n for low, n in spans)

        if self.writable is None or inside(self.writable) or inside(self.own_memory()):
            return
        self.says(f"the unit stored {size} bytes at 0x{address:08x}, outside the layer's buffers")

    def demand_complete(self, function: str) -> None:
        """Demand that none of the job's registers was written after its start."""
        if self._late:
            self.says(f"{function} wrote {self._late} after it had started the job")

    def _compare(self, job: _Job, address: int, size: int, what: str) -> None:
        low, high = job.clip(address - self.base, size)
        changed = np.flatnonzero(job.before[low:high] != self.memory[low:high])
        if changed.size:
            at = self.base + low + int(changed[0])
            self.says(f"{what} while the unit was busy, first at 0x{at:08x}")

    # -- the clock ----------------------------------------------------------------------------

    def wrap_callback(self, fire: Callable[[], None]) -> tuple[_Job, Callable[[], None]]:
        """Return a callback to be fired in place of the one that the unit schedules."""
        inherited = [] if self._now_ending is None else self._now_ending.reads
        job = _Job([*inherited, *self._reads], self.memory[: self.used].copy())
        self._reads = []
        self._jobs.append(job)

        def end() -> None:
            if job in self._jobs:
                self._jobs.remove(job)
            for address, size in job.reads:
                self._compare(job, address, size, "an operand was written")
            self._now_ending, self._stored_now = job, False
            try:
                fire()
            finally:
                self._now_ending = None
            if (
                self._stored_now
                and isinstance(self.unit, JobUnit)
                and self.unit.get("STATUS", "BUSY")
            ):
                self.says("the unit stored its result while STATUS.BUSY was still set")

        return job, end

    def _watch_start(self, unit: JobUnit) -> None:
        start = unit.start

        def start_and_watch(_: int) -> None:
            self._stored_at_start = False
            self._reads, self._late = [], ""
            busy = unit.get("STATUS", "BUSY")
            start(1)
            if self._stored_at_start and not busy and unit.get("STATUS", "BUSY"):
                self.says("the unit stored its result when it was started, not when it was done")

        store, names = unit.write_register, {r.offset: r.name for r in unit.registers}

        def store_and_note(offset: int, size: int, value: int) -> None:
            store(offset, size, value)
            if offset >= FIRST_OFFSET and unit.get("STATUS", "BUSY"):
                self._late = names.get(offset, f"register 0x{offset:x}")

        unit.write_register = store_and_note  # type: ignore[method-assign]
        unit.start = start_and_watch  # type: ignore[method-assign]


class _WatchedClock(ClockView):
    """A clock that reports to a `UnitWatch` and makes the unit faster or slower."""

    def __init__(self, watch: UnitWatch, clock: Clock) -> None:
        super().__init__(clock)
        self._watch = watch
        self._moved: dict[int, int] = {}

    def at(self, cycle: int, fire: Callable[[], None]) -> Event:
        """See `Clock`."""
        now = self.now
        real = now + self._watch.time_of(cycle - now)
        self._moved = {cycle: real}
        job, end = self._watch.wrap_callback(fire)
        job.event = super().at(real, end)
        return job.event

    def wait_until(self, cycle: int) -> int:
        """See `Clock`; the cycle of an event stands for the one that it was moved to."""
        return super().wait_until(self._moved.get(cycle, cycle)) if self._watch.skips else 0


_MSTATUS_MIE, _MSTATUS_FS = 1 << 3, 3 << 13
_MIE_OTHERS = 1 << 3 | 1 << 7
"""mie.MSIE and mie.MTIE: interrupts of the firmware, not of the unit; here none is pending."""
_FPCCR, _FPCCR_MODES = 0xE000EF34, 3 << 30
_CPACR, _CPACR_FPU = 0xE000ED88, 0xF << 20
"""ASPEN and LSPEN, which are set after a reset; full access, as start-up code gives it."""
_POINTERS = ("sp", "gp", "tp")
_PUT_BACK = "put back what it was before the function returns"
_MASKS = f"interrupts are masked, or let in, for good: {_PUT_BACK}"
_REMEDIES = {
    "sp": "pop as much as is pushed",
    **dict.fromkeys(("PRIMASK", "BASEPRI", "FAULTMASK", "mstatus.MIE", "mie"), _MASKS),
    **dict.fromkeys(("fpscr", "frm"), f"code after it rounds in another way: {_PUT_BACK}"),
    **dict.fromkeys(("CPACR", "FPCCR", "mstatus.FS"), f"a mode of the floats: {_PUT_BACK}"),
}
_SAVE = "save it, or name it among the clobbers of inline assembly"


class CoreWatch:
    """A check that compares the state of a core before and after a driver's function.

    The registers that a function keeps hold random values, so that a zero in their place shows.
    Interrupts are enabled as in firmware, or masked; none but the unit's can be pending.

    Args:
        device: of the driver.

    Attributes:
        masked: interrupts are masked when functions are called.
        wrong: the first difference that was found; empty: none. To be emptied before another run.
    """

    def __init__(self, device: Emulator) -> None:
        self.masked = False
        self.wrong = ""
        self._device, self._engine = device, device.core.engine
        self._random = random.Random(0)
        core = device.core.core
        self._is_arm, self._has_floats = core.architecture == "arm", core.has("fpu")
        masks = ("primask",) if core.isa.is_armv6m else ("primask", "basepri", "faultmask")
        names = masks if self._is_arm else ("mstatus", "mie")
        self._control = {name: register_id(core.architecture, name) for name in names}
        isa = ARCHITECTURES[core.architecture]
        kept = (*isa.kept, *(isa.kept_floats if self._has_floats else ()))
        self._kept = {name: register_id(isa.name, name) for name in kept}

    def over(self, function: str, call: Callable[[], object]) -> None:
        """Compare over a function.

        Args:
            function: its name.
            call: executes it, from its first instruction to its return.
        """
        own = {id: self._engine.reg_read(id) for id in self._kept.values()}
        for name, id in self._kept.items():
            if name not in _POINTERS:
                self._engine.reg_write(id, self._random.getrandbits(30))  # as a float, no NaN
        self._set_modes()
        before = self._state()
        call()
        self._compare(function, before, self._state())
        for id, value in own.items():  # the caller's
            self._engine.reg_write(id, value)

    def _set_modes(self) -> None:
        """Let interrupts in, or mask them; floats are on, as in firmware."""
        if self._is_arm:
            self._engine.reg_write(self._control["primask"], int(self.masked))
            if self._has_floats:
                for address, value in ((_FPCCR, _FPCCR_MODES), (_CPACR, _CPACR_FPU)):
                    self._device.board.write_bus(address, value.to_bytes(4, "little"))
            return
        status = self._engine.reg_read(self._control["mstatus"]) & ~_MSTATUS_MIE
        self._engine.reg_write(
            self._control["mstatus"], status | (0 if self.masked else _MSTATUS_MIE)
        )
        self._engine.reg_write(self._control["mie"], _MIE_OTHERS)

    def _state(self) -> dict[str, int]:
        """Return all that a function has to keep, by name."""
        found = {name: int(self._engine.reg_read(id)) for name, id in self._control.items()}
        if self._is_arm:
            found = {name.upper(): value for name, value in found.items()}
            if self._has_floats:
                found |= {"FPCCR": self._word(_FPCCR) & _FPCCR_MODES, "CPACR": self._word(_CPACR)}
        else:
            status = found.pop("mstatus")
            found["mstatus.MIE"] = status & _MSTATUS_MIE
            if self._has_floats:  # Initial, Clean and Dirty are all on
                found["mstatus.FS"] = int(bool(status & _MSTATUS_FS))
        return found | kept_registers(self._device)

    def _word(self, address: int) -> int:
        return int.from_bytes(self._device.board.read_bus(address, 4), "little")

    def _compare(self, function: str, before: dict[str, int], after: dict[str, int]) -> None:
        for name, value in after.items():
            if value != before[name] and not self.wrong:
                self.wrong = (
                    f"{function} returned with 0x{value:x} in {name}, which was "
                    f"0x{before[name]:x} when it was called; {_REMEDIES.get(name, _SAVE)}"
                )
