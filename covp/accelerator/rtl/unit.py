"""`RtlUnit`: a declared unit whose registers, results and cycles are those of its Verilog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.rtl.library import UnitModel
from covp.errors import AcceleratorError
from covp.hardware.bus import Bus
from covp.hardware.declared_unit import Behaviour, DeclaredUnit
from covp.hardware.job_timing import JobTiming, Traffic
from covp.hardware.job_unit import ERRORS, AcceptedJob, JobError, JobRecord
from covp.hardware.registers import Register

_CODES = {code: name for name, code in ERRORS.items()}
_LIKE = {name: name for name in ERRORS} | {"size": "range", "alignment": "overlap"}
"""Codes that a job may have at once, or that units may tell apart as they like, by one of them."""
_START, _ENABLE_AND_CLEAR, _CLEAR = 1, 0b11, 0b10
_ERROR_SHIFT, _BYTE = 8, 0xFF
_SHORTEST, _TIMES = 100_000, 100
"""A job has no end when it takes so many cycles, and so many times more than its model says."""


def rejection_of(status: int) -> JobError | None:
    """Return why the RTL has rejected a job, by STATUS; None: it has not."""
    code = status >> _ERROR_SHIFT & _BYTE
    return JobError(_CODES.get(code, "range"), f"by the RTL, code {code}") if code else None


class ComparedJob(NamedTuple):
    """A job on the RTL that is as its model in Python says.

    Attributes:
        numbers: of its registers.
        model, rtl: its cycles by the model's formula and by the RTL.
    """

    numbers: Mapping[str, int | float]
    model: int
    rtl: int


class RtlUnit(DeclaredUnit):
    """A unit in Verilog, job by job.

    At the start of a job the RTL gets the registers that the driver has written, runs by itself to
    its interrupt and tells what it has stored, in how many cycles. The driver sees that after
    these cycles. So the core does not run beside the RTL, and a job has the memory to itself.

    Args:
        behaviour: the accelerator, whose declared job the RTL's registers are.
        model: the RTL.
        clock_ratio: cycles of the core for each of the unit.
        compares: each job is computed by ``behaviour``, too, and a difference is an error.

    Attributes:
        compares: as given.
        stalls: 0: the memory is never busy; else it keeps the RTL waiting by chance, from this
            seed on.
        times: of the jobs that were compared, while the memory was not busy.
    """

    not_saved = DeclaredUnit.not_saved | {"_model", "compares", "stalls", "times"}

    def __init__(
        self,
        behaviour: Behaviour,
        model: UnitModel,
        clock_ratio: float = 1.0,
        compares: bool = False,
    ) -> None:
        self._model, self._clock_ratio = model, clock_ratio
        self._written: dict[str, int] = {}
        self._image = 0, 0
        self.compares, self.stalls = compares, 0
        self.times: list[ComparedJob] = []
        super().__init__(behaviour)

    @property
    def rtl(self) -> UnitModel:
        """The RTL in simulation."""
        return self._model

    @property
    def behaviour(self) -> Behaviour:
        """The accelerator, with the declared job."""
        return self._behaviour

    def reset(self) -> None:
        """Reset the registers and the RTL."""
        super().reset()
        self._model.reset()
        self._written = {}

    def save_state(self) -> object:
        """Return the model's state and the RTL's."""
        return super().save_state(), self._model.save()

    def load_state(self, state: object) -> None:
        """Go back to what `save_state` returned."""
        assert isinstance(state, tuple)
        super().load_state(state[0])
        self._model.load(state[1])

    def retime(self, job: JobRecord) -> None:  # type: ignore[override]
        """Return nothing: what a job takes with other parameters, a run of the RTL says."""

    def accept(self) -> AcceptedJob:
        """Run the job on the RTL."""
        expected = self._expect() if self.compares else None
        try:
            job = self._run()
        except JobError as error:
            if expected is not None and not isinstance(expected, JobError):
                raise self._wrong(f"it rejects a job: {error.code}; the model takes it") from None
            if isinstance(expected, JobError) and _LIKE[error.code] != _LIKE[expected.code]:
                raise self._wrong(
                    f"it rejects a job by the code of {error.code}; the model by that of {expected}"
                ) from None
            raise
        if isinstance(expected, JobError):
            raise self._wrong(f"it takes a job that the model rejects: {expected}")
        if expected is not None:
            self._compare(job, *expected)
        return job

    # -- the RTL ------------------------------------------------------------------------------

    def _run(self) -> AcceptedJob:
        """Hand the registers over, and run the job from its start to its end."""
        model = self._model
        model.begin(self.bus.memories, self.stalls)
        self._image = self.values["DESCRIPTOR"], 4 * len(self._behaviour.job.image)
        for register in self._own():
            value = self.values[register.name]
            if self._written.get(register.name) != value or register.name == "DESCRIPTOR":
                self._write(register, value)
        self._write(self.registers["INTERRUPT"], _ENABLE_AND_CLEAR)
        self._write(self.registers["CTRL"], _START)
        limit = self._longest()
        cycles = model.run(limit)
        self._demand_rules()
        if cycles >= limit:
            raise self._wrong(
                f"a job is not over after {limit:,} cycles: no irq, STATUS is "
                f"0x{self._read(self.registers['STATUS']):x}"
            )
        late = not model.drain()
        self._demand_rules()
        if late:
            raise self._wrong("it stores after its irq is up: DONE comes too early")
        status = self._read(self.registers["STATUS"])
        self._write(self.registers["INTERRUPT"], _CLEAR)
        if model.interrupts():
            raise self._wrong("irq stays up when INTERRUPT.PENDING is cleared")
        for register in self._own():
            self.values[register.name] = self._written[register.name] = self._read(register)
        stores = model.stores()
        rejection = rejection_of(status)
        if rejection is not None:
            for address, data in stores:  # against the rules, and to be seen
                self.bus.write(address, data)
            raise rejection
        self._demand_memory()
        if status & 1 or not status & 2:
            raise self._wrong(f"irq is up and STATUS is 0x{status:x}: BUSY 0 and DONE 1 are due")
        return self._job(cycles, stores)

    def _job(self, cycles: int, stores: list[tuple[int, NDArray[np.uint8]]]) -> AcceptedJob:
        """Return a job that ran, with all that the RTL says of it."""
        moved = self._model.traffic()
        self._observe(moved)
        values = self._behaviour.job.values(self.values)
        read, written = (sum(column) for column in list(zip(*moved, strict=True))[1:])
        first = stores[0] if stores else (self.values[self.result_register], np.zeros(0, np.uint8))
        return AcceptedJob(
            JobTiming(ceil(cycles * self._clock_ratio), 0),
            *first,
            dict(vars(values)),
            Traffic(read, written),
            self._behaviour.macs(values) or None,
            tuple(stores[1:]),
        )

    def _own(self) -> list[Register]:
        """Return the registers that say what the job is."""
        return [r for r in self.registers if r.name not in ("CTRL", "STATUS", "INTERRUPT")]

    def _write(self, register: Register, value: int) -> None:
        if not self._model.write(register.offset, value):
            self._demand_rules()
            raise self._wrong(f"a write of {register.name} has no answer, or an error")

    def _read(self, register: Register) -> int:
        value = self._model.read(register.offset)
        if value is None:
            self._demand_rules()
            raise self._wrong(f"a read of {register.name} has no answer, or an error")
        return value

    def _longest(self) -> int:
        """Return the cycles after which the job that is about to begin has no end."""
        job, words = self._behaviour.job, dict(self.values)
        place, size = words["DESCRIPTOR"], 4 * len(job.image)
        try:
            if place:
                image = np.frombuffer(self._quiet_bus().read(place, size), "<u4").tolist()
                words |= dict(zip((part.name for part in job.image), image, strict=True))
            values = job.values(words)
            stated = self._behaviour.timing(values, job.traffic(values).nbytes).cycles
        except Exception:  # registers that are wrong: the RTL has to see that by itself
            stated = 0
        return _SHORTEST + _TIMES * max(stated, 0)

    def _quiet_bus(self) -> Bus:
        """Return the unit's bus without its observers."""
        bus = self.bus.for_master(self.name, sees_memory=True)
        bus.observers = []
        return bus

    def _demand_rules(self) -> None:
        if self._model.error:
            raise self._wrong(self._model.error)

    def _demand_memory(self) -> None:
        """Raise the fault of an access where no memory is."""
        found = self._model.outside()
        if found is None:
            return
        is_store, address, size = found
        if is_store:
            self.bus.write(address, bytes(size))
        else:
            self.bus.read(address, size)

    def _observe(self, moved: Sequence[tuple[Any, int, int]]) -> None:
        """Tell observers of the loads; what is stored, they see at the end of the job."""
        if not self.bus.observers:
            return
        with self.bus.uncounted():
            for address, size in self._model.loads():
                for start, end in self._clip(address, address + size):
                    self.bus.read(start, end - start)
        for memory, read, _ in moved:
            self.bus.count(memory.region.start, read)

    def _clip(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return the parts of a span that the job needs, as a port loads whole words; else all."""
        job = self._behaviour.job
        values = job.values(self.values)
        spans = [(self._image[0], sum(self._image))] if self._image[0] else []
        for operand in (*job.tables, *job.tensors):
            first = self.values[operand.name]
            try:
                last = first + operand.nbytes(values)
            except ValueError:  # registers that no job has
                continue
            spans.append((first, last))
        found = [(max(a, start), min(b, end)) for a, b in spans if a < end and start < b]
        return found or [(start, end)]

    def _wrong(self, what: str) -> AcceleratorError:
        return AcceleratorError(f"the RTL of {self.name}: {what}")

    # -- beside the model ---------------------------------------------------------------------

    def _expect(self) -> tuple[AcceptedJob, dict[str, int]] | JobError:
        """Return the job and its registers by the model in Python, or why that rejects it."""
        bus, values = self.bus, dict(self.values)
        self.bus = self._quiet_bus()
        try:
            job = super().accept()
            return job, self.values
        except JobError as error:
            return error
        finally:
            self.bus, self.values = bus, values

    def _compare(self, job: AcceptedJob, model: AcceptedJob, values: dict[str, int]) -> None:
        """Raise the first difference between a job on the RTL and by the model."""
        for register in self._own():
            seen, stated = self.values[register.name], values[register.name]
            if seen != stated:
                raise self._wrong(
                    f"after the job {register.name} reads 0x{seen:08x}, by the model 0x{stated:08x}"
                )
        due, result = model.result.reshape(-1), self._behaviour.job.result
        start, end = model.span
        data, is_stored = np.zeros(end - start, np.uint8), np.zeros(end - start, bool)
        for address, stored in ((job.address, job.result), *job.further):
            if stored.size and not (start <= address and address + stored.size <= end):
                raise self._wrong(
                    f"it stores {stored.size} bytes at 0x{address:08x}; {result.name} is "
                    f"0x{start:08x} to 0x{end - 1:08x}"
                )
            part = slice(address - start, address - start + stored.size)
            data[part], is_stored[part] = stored, True
        if not is_stored.all():
            at = int(np.argmin(is_stored)) // due.itemsize
            raise self._wrong(f"it does not store {result.name}[{at}]; the model has {due[at]}")
        found = np.frombuffer(data.tobytes(), due.dtype)
        differs = np.flatnonzero(found != due)
        if differs.size:
            at = int(differs[0])
            raise self._wrong(
                f"{result.name}[{at}] is {found[at]}, by the model {due[at]}"
                + (f"; {differs.size} of {due.size} differ" if differs.size > 1 else "")
            )
        if not self.stalls:
            self.times.append(ComparedJob(job.numbers, model.timing.cycles, job.timing.cycles))
