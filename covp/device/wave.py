"""`Wave`: which cycles of a core's signals go to which file; `Recorded`: which went there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from covp.base.arguments import demand_count
from covp.errors import UsageError

SUFFIXES = (".fst", ".vcd")
"""The formats: FST, which is compressed, and VCD, which is text."""
FIRST_CYCLES = 20_000
"""Cycles that are recorded where no window is given: a cycle takes 0.1 to 8 KB."""
LAYER_CYCLES = 200_000
"""The same where a layer is named."""


@dataclass(frozen=True)
class Wave:
    """A waveform file and its window, in cycles since the inference or layer began.

    Attributes:
        file: whose suffix says the format, .fst or .vcd.
        first: the window's first cycle.
        end: the cycle after its last; None: to the end.

    Raises:
        UsageError: another suffix, or an empty window.
    """

    file: Path
    first: int = 0
    end: int | None = FIRST_CYCLES

    def __post_init__(self) -> None:
        if self.file.suffix not in SUFFIXES:
            raise UsageError(f"{self.file}: a waveform is a .fst or a .vcd file")
        demand_count("the window's first cycle", self.first)
        if self.end is not None:
            demand_count("the window's end", self.end)
            if self.end <= self.first:
                raise UsageError(f"the window of cycles {self.first}:{self.end} is empty")


@dataclass(frozen=True)
class Recorded:
    """The content of a waveform file.

    Attributes:
        wave: as requested.
        cycles: that are in the file.
        of: cycles that the run, or the phase, has.
    """

    wave: Wave
    cycles: int
    of: int
