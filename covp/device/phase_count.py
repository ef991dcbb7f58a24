"""`PhaseCount`: the cost of one phase of a program, by cause and by function too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Causes = Mapping[str, int]
"""Cycles by what they passed with; the keys are those of `covp.timing.trace.Trace.causes`."""


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
        """Whatever they passed with."""
        return sum(self.causes.values())


@dataclass(frozen=True)
class PhaseCount:
    """The cost of one phase of a program; see `covp.device.base.CountsByPhase`.

    Attributes:
        instructions, cycles: of the phase.
        causes: all of ``cycles`` by cause; None where the device cannot tell.
        functions: those that spent something, which add up to the phase; empty where they are
            not counted, see `covp.device.base.ExplainsCycles`.
    """

    instructions: int
    cycles: int
    causes: Causes | None = None
    functions: tuple[FunctionCount, ...] = ()


def add_counts(counts: Sequence[PhaseCount]) -> PhaseCount:
    """The same phase of several executions together."""
    return PhaseCount(
        sum(count.instructions for count in counts),
        sum(count.cycles for count in counts),
        add_causes(count.causes for count in counts),
        _add_functions([function for count in counts for function in count.functions]),
    )


def add_causes(parts: Iterable[Causes | None]) -> Causes | None:
    """Cycles by cause, of all ``parts`` together; None where one of them is not known."""
    total: Counter[str] = Counter()
    for part in parts:
        if part is None:
            return None
        total.update(part)
    return dict(total)


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
