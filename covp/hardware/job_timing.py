"""The time of a job: a synthetic model of a unit's parameters, not a measurement.

A job takes

    startup_cycles + max(compute, memory)

cycles: loads, computation and stores overlap, and each operand is moved once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Parameters may be arrays, an entry for each of many designs (`covp.exploration.retiming.retime`).


def larger(one: Any, other: Any) -> Any:
    """Return the larger number of ``one`` and ``other``; of arrays, for each entry."""
    return max(one, other) if isinstance(one + other, int | float) else np.maximum(one, other)


def rounded_up(value: Any) -> Any:
    """Return the least integer that is no smaller than ``value``; of arrays, for each entry."""
    return ceil(value) if isinstance(value, int | float) else np.ceil(value).astype(np.int64)


@dataclass(frozen=True)
class JobTiming:
    """The duration of a job, in cycles of the core's clock.

    Attributes:
        compute: if the memory were infinitely fast.
        memory: of the memory port, waiting for other masters included.
        startup: from the start bit to the first operation.
        gaps: in which computing and port wait for one another, so that neither hides them.
    """

    compute: int
    memory: int
    startup: int = 0
    gaps: int = 0

    @property
    def cycles(self) -> int:
        """Cycles from the write of the start bit until BUSY is cleared."""
        total: int = self.startup + larger(self.compute, self.memory) + self.gaps
        return total


@dataclass(frozen=True)
class JobSteps:
    """What the engines of a unit do in a job, one after the other, for timelines.

    Attributes:
        engines: their names.
        names: of kinds of steps.
        engine, name: of each step, a position in these.
        start, end: cycles from the start of the job.
    """

    engines: tuple[str, ...]
    names: tuple[str, ...]
    engine: NDArray[np.int64]
    name: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]


@dataclass(frozen=True)
class Traffic:
    """The bytes that a job moves through the memory port of its unit.

    Attributes:
        read, written: all of them.
        operands: those read, by the name of the operand; None: all bytes of each.
    """

    read: int = 0
    written: int = 0
    operands: Mapping[str, int] | None = field(default=None, compare=False)

    @property
    def nbytes(self) -> int:
        """Sum of the bytes in both directions."""
        return self.read + self.written

    def without(self, operand: str, nbytes: int) -> Traffic:
        """Return the traffic less that of an operand.

        Args:
            operand: its name.
            nbytes: of it, where it is not said how many of them are moved.
        """
        if self.operands is None:
            return Traffic(self.read - nbytes, self.written)
        moved = {**self.operands, operand: 0}
        return Traffic(self.read - self.operands.get(operand, 0), self.written, moved)


NO_TRAFFIC = Traffic()


@dataclass(frozen=True)
class MemoryPort:
    """The path of a unit to the memory that it shares with the core.

    Attributes:
        bytes_per_cycle: when it has the bus for itself.
        contention: cycles in which the port waits for other masters, for each cycle of its own;
            0 is a memory with a port for everybody, 1 a bus of which it gets every second cycle.
    """

    bytes_per_cycle: int = 4
    contention: float = 0.0

    def cycles(self, nbytes: int) -> int:
        """Return the cycles to move a number of bytes."""
        cycles: int = rounded_up(-(-nbytes // self.bytes_per_cycle) * (1 + self.contention))
        return cycles


@dataclass(frozen=True)
class UnitTiming:
    """The parameters of the default timing model, and their defaults.

    Attributes:
        macs_per_cycle: multiply-accumulates a cycle; all multipliers are always busy.
        bytes_per_cycle, contention: see `MemoryPort`; the port has the core's clock.
        startup_cycles: of the unit, from the start bit to the first operation.
        clock_ratio: cycles of the core for each one of the unit, whose clock is slower by that.
    """

    macs_per_cycle: int = 16
    bytes_per_cycle: int = MemoryPort.bytes_per_cycle
    startup_cycles: int = 32
    contention: float = MemoryPort.contention
    clock_ratio: float = 1.0

    @property
    def port(self) -> MemoryPort:
        """The unit's memory port."""
        return MemoryPort(self.bytes_per_cycle, self.contention)

    def job(self, macs: int, nbytes: int) -> JobTiming:
        """Return the time of a job of ``macs`` multiply-accumulates that moves ``nbytes``."""
        return self.of(-(-macs // self.macs_per_cycle), nbytes)

    def of(self, compute: int, nbytes: int) -> JobTiming:
        """Return the time of a job of ``compute`` cycles of the unit that moves ``nbytes``."""
        computing = rounded_up(compute * self.clock_ratio)
        startup = rounded_up(self.startup_cycles * self.clock_ratio)
        return JobTiming(computing, self.port.cycles(nbytes), startup)
