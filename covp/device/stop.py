"""`Stop`: why and where an execution ended, its figures and the `Sources` that they come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from covp.device.phase_count import PhaseCount


@dataclass(frozen=True)
class Source:
    """The origin of a figure.

    Attributes:
        kind: "exact" (counted by the emulator, the same on every run), "measured" (by a counter or
            clock of the machine that ran the program), "estimated" (by a timing model) or "rtl"
            (by the core's own RTL).
        model: name of the timing model, core or counter, e.g. "rv32", "DWT_CYCCNT"; "" for exact.
        assumes: what the figure leaves out, e.g. "zero wait states".
        error: largest known relative error, e.g. 0.003; None where it was never checked.
    """

    kind: Literal["exact", "measured", "estimated", "rtl"]
    model: str = ""
    assumes: str = ""
    error: float | None = None

    def __str__(self) -> str:
        by = f"{self.kind} by {self.model}" if self.model else self.kind
        return f"{by}, {self.assumes}" if self.assumes else by


EXACT = Source("exact")


@dataclass(frozen=True)
class Sources:
    """The sources of the figures of a `Stop`, and of everything that is made from it.

    Attributes:
        instructions, cycles, seconds: None where the device does not give the figure.
    """

    instructions: Source | None = None
    cycles: Source | None = None
    seconds: Source | None = None


NO_FIGURES = Sources()


@dataclass(frozen=True)
class Stop:
    """Why and where `LowLevelDevice.execute` came back.

    Attributes:
        pc: address of the next instruction, equal to the requested ``stop``.
        instructions: retired in this call; None where the device cannot count.
        cycles: core cycles of this call; None where unknown.
        seconds: run time of the program itself; None where the device cannot tell.
        sources: where these figures come from.
        phases: the counts of this call by phase, indexed by the phase's number; empty on devices
            that do not count by phase, or where no phases are set.
    """

    pc: int
    instructions: int | None = None
    cycles: int | None = None
    seconds: float | None = None
    sources: Sources = NO_FIGURES
    phases: tuple[PhaseCount, ...] = ()
