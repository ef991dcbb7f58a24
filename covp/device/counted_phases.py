"""`CountedPhases`: the counts of a core's counter at one moment, by phase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covp.device.phase_count import FunctionCount, PhaseCount
from covp.machine.counter import Counter
from covp.machine.native_counter import ALL_CAUSES


@dataclass(frozen=True, eq=False)
class CountedPhases:
    """All that a counter has counted so far.

    Attributes:
        totals: instructions and cycles, shape (phases, 2).
        spending: see `Counter.spending`.
        functions: names of the functions by number; "" of code outside of them.
    """

    totals: NDArray[np.int64]
    spending: NDArray[np.int64]
    functions: Sequence[str]

    @classmethod
    def of(cls, counter: Counter, functions: Sequence[str]) -> CountedPhases:
        """What a ``counter`` says now; it counts these ``functions``."""
        totals = np.array(counter.buckets(), np.int64).reshape(-1, 2)
        return cls(totals, counter.spending(), functions)

    def since(self, earlier: CountedPhases) -> tuple[PhaseCount, ...]:
        """The counts since an ``earlier`` moment, by phase."""
        totals, spending = self.totals - earlier.totals, self.spending - earlier.spending
        return CountedPhases(totals, spending, self.functions).counts()

    def counts(self) -> tuple[PhaseCount, ...]:
        """The same as objects."""
        return tuple(
            PhaseCount(instructions, cycles, _causes(rows.sum(axis=0)), self._functions(rows))
            for (instructions, cycles), rows in zip(
                self.totals.tolist(), self.spending, strict=True
            )
        )

    def _functions(self, rows: NDArray[np.int64]) -> tuple[FunctionCount, ...]:
        if len(self.functions) == 1:
            return ()
        used = np.flatnonzero(rows.any(axis=1))
        return tuple(
            FunctionCount(self.functions[number], int(rows[number, 0]), _causes(rows[number]))
            for number in used.tolist()
        )


def _causes(row: NDArray[np.int64]) -> dict[str, int]:
    return dict(zip(ALL_CAUSES, row[1:].tolist(), strict=True))
