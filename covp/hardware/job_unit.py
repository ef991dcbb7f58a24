"""`JobUnit`: a peripheral that is given a job, is busy for a while, and is done.

Every unit answers in the same way. Writing CTRL.START checks the job; a rejected job has
STATUS.DONE and a code in STATUS.ERROR at once, and no byte of memory was written. Else
STATUS.BUSY is up for as long as the job takes (`covp.hardware.job_timing`); then the results are in
memory, STATUS.DONE is up, and with INTERRUPT.ENABLE so is the interrupt line, until a one is
written to INTERRUPT.PENDING.

A core that reads STATUS while BUSY is up waits for the end anyway: the simulation skips ahead in
time instead of executing the loop. A core that waits with WFI is woken by the line.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

from numpy.typing import NDArray

from covp.errors import AcceleratorError
from covp.hardware.clock import Event
from covp.hardware.job_timing import NO_TRAFFIC, JobSteps, JobTiming, Traffic
from covp.hardware.peripheral import Peripheral

ERRORS = {
    "none": 0,
    "size": 1,  # a dimension or the amount of work is zero or too large
    "address": 2,  # an operand is not in memory, or the result not in writable memory
    "alignment": 3,  # an operand is not on a boundary of its element's size
    "overlap": 4,  # the result overlaps an operand
    "range": 5,  # another value is outside its range
    "busy": 6,  # started while a job was running; that job goes on
}
"""The codes of STATUS.ERROR."""

_LONGEST = 1 << 48  # 8 days at 400 MHz; the clock counts in 64 bits


class JobError(Exception):
    """A job that a unit rejects; ``code`` is a key of `ERRORS`, ``detail`` is for people.

    It does not leave the unit: programs see ``code`` in STATUS.ERROR.
    """

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(f"{code} ({detail})" if detail else code)
        self.code = code


@dataclass(frozen=True, eq=False)
class AcceptedJob:
    """A job that a unit executes.

    Attributes:
        timing: how long it takes.
        address: where its result goes.
        result: the bytes, as an array of any type.
        numbers: the job's numbers by register name; all that `JobUnit.retime` needs.
        traffic: the bytes that it moves.
        macs: its multiply-accumulates; None where the model does not say.
        further: what it stores elsewhere, (address, bytes).
        steps: of its engines; None: they are not told apart.
    """

    timing: JobTiming
    address: int
    result: NDArray[Any]
    numbers: Mapping[str, int | float] = field(default_factory=dict)
    traffic: Traffic = NO_TRAFFIC
    macs: int | None = None
    further: tuple[tuple[int, NDArray[Any]], ...] = ()
    steps: JobSteps | None = None

    @property
    def span(self) -> tuple[int, int]:
        """First address of the result and the address past its end."""
        return self.address, self.address + self.result.nbytes


@dataclass(frozen=True)
class JobRecord:
    """A job that was executed.

    Attributes:
        phase: the bucket of the device's counter that it was started in.
        start, end: cycles that the core had spent in that phase when it started and ended; both
            the same where it ended while the core was in another phase.
        timing: how long it took.
        waited: cycles of it in which the core was stalled.
        numbers, traffic, macs, steps: see `AcceptedJob`.
        stored: bytes of its result.
    """

    phase: int
    start: int
    end: int
    timing: JobTiming
    waited: int
    numbers: Mapping[str, int | float] = field(default_factory=dict)
    traffic: Traffic = NO_TRAFFIC
    macs: int | None = None
    stored: int = 0
    steps: JobSteps | None = field(default=None, compare=False)


def rejected_jobs(peripherals: Mapping[str, tuple[int, Peripheral]]) -> str:
    """Return the units that rejected a job, with the reason, for a fault: drivers trap then.

    ``peripherals``: name to (base address, model).
    """
    units = ((name, model) for name, (_, model) in peripherals.items())
    return "".join(
        f"; {name} rejected its job: {model.refusal}"
        for name, model in units
        if isinstance(model, JobUnit) and model.refusal
    )


class JobUnit(Peripheral):
    """The base of units that execute jobs; a model defines its jobs in `accept`.

    Its register map must have the registers of `covp.hardware.job.PROTOCOL`.

    Attributes:
        result_register: name of the register with the address of a job's result.
        jobs: executed since the unit was made or `forget_jobs` was called.
        begun: how many were accepted since then; one that still runs is not among ``jobs``.
        latest: the latest job that was not rejected.
        refusal: why the latest start was rejected, for messages; empty where it was not.
        on_end: called with the clock's cycles at which a job started and ended, and its record.
    """

    result_register: str = "OUTPUT"
    not_saved = Peripheral.not_saved | {"on_end"}
    on_end: Callable[[int, int, JobRecord], None] | None = None

    def __init__(self) -> None:
        self.jobs: list[JobRecord] = []
        self.begun = 0
        self.refusal = ""
        self.latest: AcceptedJob | None = None
        self.done_at = 0
        self._end: Event | None = None
        self._began = 0
        self._timing: JobTiming | None = None
        super().__init__()

    @abstractmethod
    def accept(self) -> AcceptedJob:
        """Check the job in the registers and compute it; the result is stored when it is over.

        Raises:
            JobError: the job is rejected; nothing was written.
        """

    def retime(self, job: JobRecord) -> JobTiming | None:
        """Return the time that a recorded job takes with the parameters of this unit.

        None: the model does not say, so the job has to be executed again.
        """
        return None

    def reset(self) -> None:
        """Set registers to their reset values and forget a running job."""
        super().reset()
        if self._end is not None:
            self._end.cancel()
            self._end = None
            if self.port is not None:
                self.port.leave(self, self.clock.now)
        self.interrupt.set(False)
        self.refusal = ""

    def forget_jobs(self) -> None:
        """Start a new list of jobs."""
        self.jobs = []
        self.begun = 0

    def start(self, _: int) -> None:
        """Start a job (CTRL.START); raise AcceleratorError unless it takes 0 to 2**48 cycles."""
        self.clock.run_due()
        if self.get("STATUS", "BUSY"):
            self._reject("busy", "busy")
            return
        self.refusal = ""
        self.set("STATUS", "ERROR", 0)
        self.set("STATUS", "DONE", 0)
        try:
            job = self.accept()
        except JobError as error:
            self._reject(error.code, str(error))
            self._over()
        else:
            self._begin(job)

    def _reject(self, code: str, reason: str) -> None:
        self.refusal = reason
        self.set("STATUS", "ERROR", ERRORS[code])

    def _begin(self, job: AcceptedJob) -> None:
        """Begin a job: the unit is busy until its end, when the result is stored."""
        if not 0 <= job.timing.cycles <= _LONGEST:
            raise AcceleratorError(f"{self.name}: a job of {job.timing.cycles} cycles; 0 to 2**48")
        self.latest = job
        self.begun += 1
        self.set("STATUS", "BUSY", 1)
        self._began, self._timing, skipped = self.clock.now, job.timing, self.clock.skipped
        phase, spent = self.clock.phase()

        def finish() -> None:
            self._end = None
            if self.port is not None:
                self.port.leave(self, self.clock.now)
            stored = job.result.nbytes + sum(data.nbytes for _, data in job.further)
            with self.bus.uncounted():
                for address, data in ((job.address, job.result), *job.further):
                    self.bus.write(address, data)
            self.bus.count(job.address, job.traffic.written or stored, is_write=True)
            self.set("STATUS", "BUSY", 0)
            waited = self.clock.skipped - skipped
            present, spent_now = self.clock.phase()
            end = spent_now if present == phase else spent
            self.jobs.append(
                JobRecord(
                    phase,
                    spent,
                    end,
                    self._timing or job.timing,
                    waited,
                    job.numbers,
                    job.traffic,
                    job.macs,
                    stored,
                    job.steps,
                )
            )
            if self.on_end is not None:
                self.on_end(self._began, self.clock.now, self.jobs[-1])
            self._over()

        cycles, witness = job.timing.cycles, self.clock.witness
        if witness is not None:
            cycles = witness.on_start(self, cycles)
        self._end_at(self._began + cycles, finish)
        # a witness retimes jobs of which each has the port to itself
        if witness is None and self.port is not None and job.timing.memory:
            self.port.begin(self, self._began, job.timing.memory)
            for unit, cycle in self.port.ends().items():
                assert isinstance(unit, JobUnit)
                unit._moved_at(ceil(cycle))

    def _end_at(self, cycle: int, finish: Callable[[], None]) -> None:
        self.done_at = cycle
        self._end = self.clock.at(cycle, finish)

    def _moved_at(self, cycle: int) -> None:
        """Let the job that runs take as long as its port needs, which others use as well."""
        assert self._timing is not None
        memory = max(self._timing.memory, cycle - self._began)
        self._timing = replace(self._timing, memory=memory)
        end = self._began + self._timing.cycles
        if self._end is not None and end != self.done_at:
            self._end.cancel()
            self._end_at(end, self._end.fire)

    def poll(self) -> None:
        """Update STATUS when it is read."""
        if self.clock.witness is not None:
            self.clock.witness.on_poll(self)
        if self.get("STATUS", "BUSY"):
            self.clock.wait_until(self.done_at)
            self.clock.run_due()

    def look(self) -> None:
        """Update INTERRUPT when it is read: it shows a job that is over by now."""
        self.clock.run_due()
        if self.clock.witness is not None:
            self.clock.witness.on_pending_read(self, bool(self.get("INTERRUPT", "PENDING")))

    def acknowledge(self, _: int) -> None:
        """Let the interrupt line follow PENDING when INTERRUPT is written."""
        self.interrupt.set(bool(self.get("INTERRUPT", "PENDING")))

    def _over(self) -> None:
        self.set("STATUS", "DONE", 1)
        if self.get("INTERRUPT", "ENABLE"):
            self.set("INTERRUPT", "PENDING", 1)
            self.interrupt.set(True)
