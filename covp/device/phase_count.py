"""`PhaseCount`: the cost of one phase of a program, by cause and by function too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Causes = Mapping[str, int]
"""Cycles by cause; the keys are those of `covp.device.timing.trace.Trace.causes`."""


@dataclass(frozen=True)
class MovedBytes:
    """The bytes that a bus master moved from and to one memory: exact.

    Attributes:
        read, written: loaded and stored.
        fetched: of the instructions that ran; 0 of masters that are no cores.
    """

    read: int = 0
    written: int = 0
    fetched: int = 0

    def __add__(self, other: MovedBytes) -> MovedBytes:
        return MovedBytes(
            self.read + other.read, self.written + other.written, self.fetched + other.fetched
        )


CORE = "core"
"""The name of the core as a bus master."""
Traffic = Mapping[str, Mapping[str, MovedBytes]]
"""Bytes moved by name of the bus master, `CORE` first, and of the memory."""


@dataclass(frozen=True)
class FunctionCount:
    """The cost of one function of a program, without those that it calls.

    Attributes:
        name: as the linker knows it; "" for code outside of functions.
        instructions: retired.
        causes: its cycles.
    """

    name: str
    instructions: int
    causes: Causes

    @property
    def cycles(self) -> int:
        """The cycles of all causes."""
        return sum(self.causes.values())


@dataclass(frozen=True)
class PhaseCount:
    """The cost of one phase of a program; see `covp.device.abilities.CountsByPhase`.

    Attributes:
        instructions, cycles: of the phase.
        causes: all of ``cycles`` by cause; None where the device cannot tell.
        functions: those that spent something, which add up to the phase; empty where they are
            not counted, see `covp.device.abilities.ExplainsCycles`.
        traffic: bytes moved; None where they are not counted, see
            `covp.device.abilities.CountsTraffic`.
    """

    instructions: int
    cycles: int
    causes: Causes | None = None
    functions: tuple[FunctionCount, ...] = ()
    traffic: Traffic | None = None


def add_counts(counts: Sequence[PhaseCount]) -> PhaseCount:
    """Return the same phase of several executions together."""
    return PhaseCount(
        sum(count.instructions for count in counts),
        sum(count.cycles for count in counts),
        add_causes(count.causes for count in counts),
        _add_functions([function for count in counts for function in count.functions]),
        add_traffic(count.traffic for count in counts),
    )


def add_causes(parts: Iterable[Causes | None]) -> Causes | None:
    """Return the cycles of all ``parts`` together, by cause; None where one is not known."""
    total: Counter[str] = Counter()
    for part in parts:
        if part is None:
            return None
        total.update(part)
    return dict(total)


def add_traffic(parts: Iterable[Traffic | None]) -> Traffic | None:
    """Return the bytes of all ``parts`` together; None where one of them is not known."""
    total: dict[str, dict[str, MovedBytes]] = {}
    for part in parts:
        if part is None:
            return None
        for master, memories in part.items():
            own = total.setdefault(master, {})
            for memory, moved in memories.items():
                own[memory] = own.get(memory, MovedBytes()) + moved
    return total


def _add_functions(counts: Sequence[FunctionCount]) -> tuple[FunctionCount, ...]:
    named: dict[str, list[FunctionCount]] = {}
    for count in counts:
        named.setdefault(count.name, []).append(count)
    return tuple(
        FunctionCount(
            name,
            sum(one.instructions for one in same),
            add_causes(one.causes for one in same) or {},
        )
        for name, same in named.items()
    )
