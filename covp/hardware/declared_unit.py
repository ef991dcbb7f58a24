"""`DeclaredUnit`: the hardware model of a unit whose job is declared as data."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from covp.errors import AcceleratorError, DeviceFault
from covp.hardware.job import Job, JobValues, Operand
from covp.hardware.job_timing import JobSteps, JobTiming, Traffic
from covp.hardware.job_unit import ERRORS, AcceptedJob, JobError, JobRecord, JobUnit
from covp.hardware.kept_tables import KeptTables


class Behaviour(Protocol):
    """The part of a declared unit that differs from unit to unit."""

    @property
    def job(self) -> Job:
        """The operands and numbers of one start."""
        ...

    @property
    def keeps(self) -> str:
        """Name of the table that may stay in a memory of the unit's own; empty: none."""
        ...

    @property
    def kept_bytes(self) -> int:
        """Size of that memory."""
        ...

    def check(self, job: JobValues) -> str | None:
        """Return a key of `covp.hardware.job_unit.ERRORS` for inconsistent numbers, or None."""
        ...

    def compute(self, job: JobValues) -> NDArray[Any]:
        """Return the result from numbers and operands."""
        ...

    def macs(self, job: JobValues) -> int:
        """Return the multiply-accumulates of a job; 0 if it does not state them."""
        ...

    def traffic(self, job: JobValues, declared: Traffic) -> Traffic:
        """Return the bytes that a job moves, of the ``declared`` ones of its operands."""
        ...

    def timing(self, job: JobValues, nbytes: int) -> JobTiming:
        """Return the time of a job with these numbers that moves ``nbytes``."""
        ...

    def steps(self, job: JobValues) -> JobSteps | None:
        """Return what the engines do in a job; None: they are not told apart."""
        ...


class DeclaredUnit(JobUnit):
    """A unit that decodes registers, loads operands and stores what a `Behaviour` computes.

    Args:
        behaviour: the part that the accelerator's class declares.
    """

    not_saved = JobUnit.not_saved | {"registers", "_author"}

    def __init__(self, behaviour: Behaviour) -> None:
        # a class attribute elsewhere; here every instance has its declaration's map
        self.registers = behaviour.job.registers  # type: ignore[misc]
        self.result_register = behaviour.job.result.name
        self._behaviour = behaviour
        room = behaviour.kept_bytes
        self._tables = KeptTables(room) if room else None
        super().__init__()

    def reset(self) -> None:
        """Reset the registers and forget the tables that are kept."""
        super().reset()
        if self._tables is not None:
            self._tables.clear()

    @property
    def description(self) -> str:
        """The first line of the accelerator's documentation."""
        return (inspect.getdoc(type(self._behaviour)) or "").partition("\n")[0]

    def accept(self) -> AcceptedJob:
        """Check and compute a job; return its result and timing."""
        job = self._behaviour.job
        fetched = self._fetch(job)
        values = job.values(self.values)
        for declared in job.numbers:
            value = getattr(values, declared.name)
            if not declared.minimum <= value <= declared.maximum:
                code = "size" if value == 0 and declared.minimum > 0 else "range"
                raise JobError(code, f"{declared.name} is {value}")
        error = self._behaviour.check(values)
        if error is not None:
            if error not in ERRORS:
                raise AcceleratorError(
                    f"{self.name}: check() gave {error!r}; only None and {', '.join(ERRORS)}"
                )
            raise JobError(error, "by check()")
        numbers = dict(vars(values))
        places = self._places(job, values)
        kept = self._fetch_operands(places[:-1], values)
        if kept:
            numbers["KEPT"] = values.KEPT = 1
        computed = self._compute(job.result, values)
        read = fetched + sum(size for _, _, size in places[:-1])
        declared_traffic = Traffic(read, places[-1][2])
        traffic = self._behaviour.traffic(values, declared_traffic)
        if kept:
            traffic = traffic.without(self._behaviour.keeps, kept)
            declared_traffic = declared_traffic.without(self._behaviour.keeps, kept)
        moved = [p for p in places[:-1] if not (kept and p[0].name == self._behaviour.keeps)]
        self._count(moved, traffic, declared_traffic)
        timing = self._behaviour.timing(values, traffic.nbytes)
        macs = self._behaviour.macs(values) or None
        steps = None if self.on_end is None else self._behaviour.steps(values)  # it is not free
        return AcceptedJob(timing, places[-1][1], computed, numbers, traffic, macs, steps=steps)

    def retime(self, job: JobRecord) -> JobTiming:
        """Recompute a job's cycles."""
        return self._behaviour.timing(JobValues(**job.numbers), job.traffic.nbytes)

    def _fetch(self, job: Job) -> int:
        """Load the image that DESCRIPTOR points to, once; return its bytes."""
        address, self.values["DESCRIPTOR"] = self.values["DESCRIPTOR"], 0
        if not address:
            return 0
        if address % 4:
            raise JobError("alignment", f"DESCRIPTOR is 0x{address:08x}")
        try:
            words = np.frombuffer(self.bus.read(address, 4 * len(job.image)), "<u4").tolist()
        except DeviceFault:
            raise JobError("address", f"DESCRIPTOR is 0x{address:08x}") from None
        self.values.update(zip((part.name for part in job.image), words, strict=True))
        return 4 * len(words)

    def _fetch_operands(self, places: Sequence[tuple[Operand, int, int]], values: JobValues) -> int:
        """Set the operands; return the bytes of the table that was in the unit's memory already."""
        found = 0
        for operand, address, size in places:
            load = functools.partial(self._load, operand, address, size)
            keep = int(values.KEEP) if size and operand.name == self._behaviour.keeps else 0
            if not keep:
                setattr(values, operand.name, load() if size else None)
                continue
            if self._tables is None or not self._tables.has_room(keep, size):
                raise JobError("size", f"{operand.name} beyond the memory, KEEP is {keep}")
            data, was_there = self._tables.fetch(keep, address, size, load)
            setattr(values, operand.name, data)
            found = size if was_there else 0
        return found

    def _places(self, job: Job, values: JobValues) -> list[tuple[Operand, int, int]]:
        """Check the operands; return (operand, address, bytes) of each, the result last."""
        places = []
        for operand in (*job.tables, *job.tensors, job.result):
            address, size = self.values[operand.name], operand.nbytes(values)
            if operand.optional and (address == 0 or size == 0):
                places.append((operand, 0, 0))
                continue
            wrong = None
            if size <= 0:
                wrong = "size"
            elif address % operand.dtype.itemsize:
                wrong = "alignment"
            elif not self.bus.is_memory(address, size, writable=operand is job.result):
                wrong = "address"
            if wrong is not None:
                raise JobError(wrong, f"{operand.name}: {size} bytes at 0x{address:08x}")
            places.append((operand, address, size))
        _, target, length = places[-1]
        if not job.in_place:
            for operand, address, size in places[:-1]:
                if size and address < target + length and target < address + size:
                    raise JobError("overlap", f"{job.result.name} with {operand.name}")
        return places

    def _count(
        self, places: Sequence[tuple[Operand, int, int]], traffic: Traffic, declared: Traffic
    ) -> None:
        """Report the operands' bytes that the unit moves to observers; the result comes later."""
        moved = traffic.operands
        if moved is None and traffic.read != declared.read:
            self.bus.count(None, traffic.read)
            return
        for operand, address, size in places:
            if size:
                self.bus.count(address, size if moved is None else moved.get(operand.name, 0))

    def _load(self, operand: Operand, address: int, size: int) -> NDArray[Any]:
        try:
            with self.bus.uncounted():
                return np.frombuffer(self.bus.read(address, size), operand.dtype)
        except DeviceFault:
            raise JobError("address", f"{operand.name} at 0x{address:08x}") from None

    def _compute(self, declared: Operand, values: JobValues) -> NDArray[Any]:
        """Return the computed result, which must be of the declared type and size."""
        found = np.ascontiguousarray(self._behaviour.compute(values)).reshape(-1)
        wanted = declared.count(values)
        if found.dtype != declared.dtype or found.size != wanted:
            raise AcceleratorError(
                f"{self.name}: compute() gave {found.size} elements of {found.dtype.name}; "
                f"{declared.name} is declared as {wanted} of {declared.dtype.name}"
            )
        return found
