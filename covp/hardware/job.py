"""A job as data: the operands in memory and the numbers that a unit is given in its registers.

From one `Job` come the register map, the driver, the checks of the hardware model and the limits
of what a compiler may send.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np

from covp.base.plugins import describe
from covp.hardware.job_timing import Traffic
from covp.hardware.registers import Field, Register, RegisterMap

Role = Literal["tensor", "table", "result"]
FIRST_OFFSET = 0x10
"""First offset of a unit's own registers; see `covp.hardware.job_unit` for those before it."""


def _protocol() -> tuple[Register, ...]:
    """Return the registers that every unit with jobs has; see `covp.hardware.job_unit`."""
    busy = Field("BUSY", 0, access="ro", doc="A job is running.")
    done = Field("DONE", 1, access="ro", doc="The last job is over; cleared by the next start.")
    error = Field("ERROR", 8, 8, access="ro", doc="Why the last start was rejected; 0: it was not.")
    return (
        Register(
            "CTRL",
            0x00,
            fields=[Field("START", 0, access="wo", on_write="start", doc="Start the job.")],
            doc="Control; a start latches the other registers.",
        ),
        Register(
            "STATUS",
            0x04,
            access="ro",
            on_read="poll",
            fields=[busy, done, error],
            doc="What the unit is doing.",
        ),
        Register(
            "INTERRUPT",
            0x08,
            on_read="look",
            on_write="acknowledge",
            fields=[
                Field("ENABLE", 0, doc="Raise the interrupt line when a job is over."),
                Field("PENDING", 1, access="w1c", doc="The line is up."),
            ],
            doc="The interrupt line.",
        ),
    )


PROTOCOL = _protocol()
"""The registers CTRL, STATUS and INTERRUPT at offsets 0, 4 and 8."""
_DESCRIPTOR = Register(
    "DESCRIPTOR",
    0x0C,
    doc="Address of the values of the registers from 0x10 on as far as they are constant; the next "
    "start fetches them and leaves 0 here. 0: none.",
)


class JobValues(SimpleNamespace):
    """A job's values by name: numbers, and operands as flat arrays once they are loaded."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the job has no {name}; it has {', '.join(vars(self))}")

    def but(self, **numbers: int | float) -> JobValues:
        """Return the same job with some other numbers."""
        return JobValues(**{**vars(self), **numbers})


Elements = Callable[[JobValues], int]


@dataclass(frozen=True)
class Operand:
    """Data in memory; the register of that name holds its address.

    Attributes:
        name: of the register.
        dtype: of an element; the address must be a multiple of its size.
        elements: their number, from the job's numbers.
        role: "tensor" (read, known at run time), "table" (read, a constant) or "result" (written).
        doc: one sentence.
        optional: address 0, or no element, stands for "absent".
    """

    name: str
    dtype: np.dtype[Any]
    elements: Elements
    role: Role
    doc: str = ""
    optional: bool = False

    def count(self, job: JobValues) -> int:
        """Return the number of its elements, from the job's numbers.

        Raises:
            ValueError: the declaration raises, or gives something else than an element count.
        """
        try:
            found = self.elements(job)
        except Exception as error:
            raise ValueError(f"the size of {self.name} raised {describe(error)}") from error
        if not isinstance(found, (int, np.integer)) or found < 0:
            raise ValueError(f"the size of {self.name} is {found!r}, not an element count")
        return int(found)

    def nbytes(self, job: JobValues) -> int:
        """Return the operand's bytes in memory, from the job's numbers. Raises ValueError."""
        return self.count(job) * self.dtype.itemsize


@dataclass(frozen=True)
class Number:
    """A number in a register.

    Attributes:
        name: of the register.
        minimum, maximum: allowed, both included; the unit rejects others with the error "range".
        real: it is a float32; else an integer, in two's complement.
        doc: one sentence.
        varies: the driver sets it anew for each job of a layer; it is not part of the image.
    """

    name: str
    minimum: float
    maximum: float
    real: bool = False
    doc: str = ""
    varies: bool = False

    def word(self, value: float) -> int:
        """Return the register's 32 bits."""
        if self.real:
            return int(struct.unpack("<I", struct.pack("<f", value))[0])
        return int(value) & 0xFFFFFFFF

    def value(self, word: int) -> int | float:
        """Return the value that the register's 32 bits stand for."""
        if self.real:
            return float(struct.unpack("<f", struct.pack("<I", word))[0])
        return word - (1 << 32) if self.minimum < 0 and word >> 31 else word


def tensor(
    name: str, dtype: str, elements: Elements, doc: str = "", *, optional: bool = False
) -> Operand:
    """Return an operand that comes at run time: an activation.

    Args:
        name: of the registers; also how `Accelerator.compute` reads it, ``job.NAME``.
        dtype: of an element, e.g. "int8".
        elements: how many elements there are, from the job's numbers.
        doc: one line for the register map.
        optional: the address 0, or a size of 0, means that there is none.
    """
    return Operand(name, np.dtype(dtype), elements, "tensor", doc, optional)


def table(
    name: str, dtype: str, elements: Elements, doc: str = "", *, optional: bool = False
) -> Operand:
    """Return a constant operand: weights, biases, multipliers.

    Args:
        name: of the registers; also how `Accelerator.compute` reads it, ``job.NAME``.
        dtype: of an element, e.g. "int8".
        elements: how many elements there are, from the job's numbers.
        doc: one line for the register map.
        optional: the address 0, or a size of 0, means that there is none.
    """
    return Operand(name, np.dtype(dtype), elements, "table", doc, optional)


def result(name: str, dtype: str, elements: Elements, doc: str = "") -> Operand:
    """Return the operand that the job writes.

    Args:
        name: of the registers; also how `Accelerator.compute` reads it, ``job.NAME``.
        dtype: of an element, e.g. "int8".
        elements: how many elements there are, from the job's numbers.
        doc: one line for the register map.
    """
    return Operand(name, np.dtype(dtype), elements, "result", doc)


def number(
    name: str, minimum: int = 0, maximum: int = 0xFFFFFFFF, doc: str = "", *, varies: bool = False
) -> Number:
    """Return an integer register; one whose minimum is negative holds two's complement.

    Args:
        name: of the register; also how `Accelerator.compute` reads it, ``job.NAME``.
        minimum, maximum: the range that the unit and the compiler accept, both included.
        doc: one line for the register map.
        varies: the driver writes it for each job; else it is part of the descriptor.

    Raises:
        ValueError: the range is empty, or has numbers that 32 bits cannot tell apart.
    """
    low, high = (-(1 << 31), (1 << 31) - 1) if minimum < 0 else (0, 0xFFFFFFFF)
    if not low <= minimum <= maximum <= high:
        raise ValueError(
            f"number {name}: {minimum:,} to {maximum:,} is not a range of 32-bit numbers"
        )
    return Number(name, minimum, maximum, doc=doc, varies=varies)


def real(name: str, doc: str = "") -> Number:
    """Return a float32 register; NaN is out of range.

    Args:
        name: of the register; also how `Accelerator.compute` reads it, ``job.NAME``.
        doc: one line for the register map.
    """
    return Number(name, -np.inf, np.inf, real=True, doc=doc)


class Job:
    """The operands and numbers of one start of a unit.

    Args:
        parts: operands and numbers, in any order.
        in_place: the result may overlap the operands; else that is the error "overlap".

    Raises:
        ValueError: a name is used twice, is that of a register that every unit has or clashes with
            another in the C header, or there is not exactly one result.
    """

    def __init__(self, *parts: Operand | Number, in_place: bool = False) -> None:
        self.in_place = in_place
        self.numbers = tuple(part for part in parts if isinstance(part, Number))
        self.operands = tuple(part for part in parts if isinstance(part, Operand))
        self.tensors = tuple(o for o in self.operands if o.role == "tensor")
        self.tables = tuple(o for o in self.operands if o.role == "table")
        results = [o for o in self.operands if o.role == "result"]
        if len(results) != 1:
            raise ValueError(f"a job has one result, not {len(results)}")
        self.result = results[0]
        constant = (number for number in self.numbers if not number.varies)
        self.image: tuple[Operand | Number, ...] = (*self.tables, *constant)
        """The registers whose values are known at compile time: what DESCRIPTOR points to."""
        self.varying = tuple(number for number in self.numbers if number.varies)
        self.registers = self._register_map()

    def _register_map(self) -> RegisterMap:
        registers = [*PROTOCOL, _DESCRIPTOR]
        parts = (*self.image, *self.tensors, self.result, *self.varying)
        for position, part in enumerate(parts):
            if isinstance(part, Operand):
                what = f"Address of {part.dtype.name} data. {part.doc}".strip()
            else:
                kind = "float32" if part.real else f"{part.minimum:,} to {part.maximum:,}"
                what = f"{part.doc} ({kind})".strip()
            registers.append(Register(part.name, FIRST_OFFSET + 4 * position, doc=what))
        return RegisterMap(*registers)

    def with_number(self, further: Number) -> Job:
        """Return the same job with a ``further`` number."""
        return Job(*self.operands, *self.numbers, further, in_place=self.in_place)

    def count(self, operand: str, job: JobValues) -> int:
        """Return the number of an operand's elements.

        Args:
            operand: its name.
            job: the numbers of the job.

        Raises:
            ValueError: there is no such operand, or its declaration gives no count.
        """
        for one in self.operands:
            if one.name == operand:
                return one.count(job)
        raise ValueError(f"the job has no operand {operand}")

    def traffic(self, job: JobValues, absent: Collection[str] = ()) -> Traffic:
        """Return the bytes of a job's registers in memory, its operands and its result.

        Args:
            job: its numbers.
            absent: names of optional operands that it does not have.
        """
        read = sum(o.nbytes(job) for o in (*self.tables, *self.tensors) if o.name not in absent)
        return Traffic(4 * len(self.image) + read, self.result.nbytes(job))

    def values(self, words: Mapping[str, int]) -> JobValues:
        """Return the numbers out of the registers."""
        return JobValues(**{n.name: n.value(words[n.name]) for n in self.numbers})
