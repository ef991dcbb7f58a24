"""`TimelineLog`: when what happened on a device, in cycles of its core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from covp.device.machine.mark_log import Marks
from covp.hardware.job_unit import JobRecord
from covp.hardware.registers import RegisterMap

MOST_EVENTS = 1 << 17
"""Events of each kind that are kept, the first ones."""


class Stall(NamedTuple):
    """The cycles in which the core waited: asleep after WFI, or for a peripheral's answer."""

    start: int
    end: int
    is_asleep: bool


class Access(NamedTuple):
    """A load or store of the core to a peripheral's register.

    Attributes:
        start: cycle of the instruction where the model needs to know it, else that of the block of
            code that has it.
        end: cycle at which the answer is there.
        peripheral: its name.
        address: on the bus.
        size: bytes.
        value: loaded, or stored.
        is_store: a store, else a load.
    """

    start: int
    end: int
    peripheral: str
    address: int
    size: int
    value: int
    is_store: bool


class LineChange(NamedTuple):
    """A peripheral's interrupt line went up or down."""

    cycle: int
    peripheral: str
    line: int
    level: bool


class Handling(NamedTuple):
    """An interrupt was taken, or its handler returned: then ``line`` is None."""

    cycle: int
    line: int | None


class Transfer(NamedTuple):
    """The bytes that a bus master moved."""

    cycle: int
    master: str
    memory: str
    is_write: bool
    size: int


class PeripheralPlace(NamedTuple):
    """A peripheral on the bus.

    Attributes:
        base: address of its first register.
        registers: by which accesses are named.
        line: number of its interrupt line; None: it has none.
    """

    base: int
    registers: RegisterMap
    line: int | None


class JobSpan(NamedTuple):
    """A job of a unit, from its start until its result was there."""

    start: int
    end: int
    unit: str
    record: JobRecord


@dataclass(frozen=True, eq=False)
class TimelineLog:
    """The course of what was executed while a `RecordsTimeline` recorded.

    Attributes:
        begin, end: the first cycle, and the one past the last, of the device's clock.
        instructions: retired up to ``begin``, and up to ``end``.
        phase: the current one at ``begin``.
        marks: when which function and phase was entered.
        functions: their names by number; "" of code outside of them.
        places: of all peripherals, by name.
        stalls, accesses, changes, handlings, transfers, jobs: in the order of time.
        lost: events that were not kept, by kind.
    """

    begin: int
    end: int
    instructions: tuple[int, int]
    phase: int
    marks: Marks
    functions: Sequence[str]
    places: Mapping[str, PeripheralPlace] = field(default_factory=dict)
    stalls: Sequence[Stall] = ()
    accesses: Sequence[Access] = ()
    changes: Sequence[LineChange] = ()
    handlings: Sequence[Handling] = ()
    transfers: Sequence[Transfer] = ()
    jobs: Sequence[JobSpan] = ()
    lost: Mapping[str, int] = field(default_factory=dict)
