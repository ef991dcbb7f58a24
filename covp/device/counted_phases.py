"""`CountedPhases`: the counts of a core's counter at one moment, by phase."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covp.device.machine.counter import Counter
from covp.device.machine.native_counter import ALL_CAUSES
from covp.device.phase_count import CORE, FunctionCount, MovedBytes, PhaseCount, Traffic
from covp.hardware.traffic import TrafficEntry, TrafficLedger


@dataclass(frozen=True, eq=False)
class CountedTraffic:
    """The bytes that were moved up to one moment.

    Attributes:
        core: see `Counter.moved_bytes`.
        memories: their names.
        others: by bus masters, and by the core for exceptions.
    """

    core: NDArray[np.int64]
    memories: Sequence[str]
    others: Counts[TrafficEntry]

    def since(self, earlier: CountedTraffic) -> CountedTraffic:
        """Return the part after an ``earlier`` moment."""
        others = Counts(self.others)
        others.subtract(earlier.others)
        return CountedTraffic(self.core - earlier.core, self.memories, others)

    def by_phase(self) -> list[Traffic]:
        """Return the same as objects."""
        found: list[dict[str, dict[str, MovedBytes]]] = [
            {CORE: {name: MovedBytes(*row) for name, row in zip(self.memories, rows, strict=True)}}
            for rows in self.core.tolist()
        ]
        for (phase, master, memory, is_write), size in self.others.items():
            if size:
                own = found[phase].setdefault(master, {})
                moved = MovedBytes(written=size) if is_write else MovedBytes(read=size)
                own[memory] = own.get(memory, MovedBytes()) + moved
        return list(found)


@dataclass(frozen=True, eq=False)
class CountedPhases:
    """All that a counter has counted so far.

    Attributes:
        totals: instructions and cycles of each phase.
        spending: see `Counter.read_costs`; None where totals alone are counted.
        functions: names of the functions by number; "" of code outside of them.
        traffic: None where it is not counted.
    """

    totals: Sequence[tuple[int, int]]
    spending: NDArray[np.int64] | None = None
    functions: Sequence[str] = ()
    traffic: CountedTraffic | None = None

    @classmethod
    def of(
        cls,
        counter: Counter,
        functions: Sequence[str],
        memories: Sequence[str],
        ledger: TrafficLedger | None,
    ) -> CountedPhases:
        """Read what the counters say now.

        Args:
            counter: of the core.
            functions: that it counts, see the class.
            memories: names of its regions.
            ledger: of bus masters; None: traffic is not counted.
        """
        totals = counter.buckets()
        traffic = None
        if ledger is not None:
            traffic = CountedTraffic(counter.moved_bytes(), memories, Counts(ledger.bytes_moved))
        return cls(totals, counter.read_costs(), functions, traffic)

    def since(self, earlier: CountedPhases) -> tuple[PhaseCount, ...]:
        """Return the counts since an ``earlier`` moment, by phase."""
        totals = [
            (now[0] - before[0], now[1] - before[1])
            for now, before in zip(self.totals, earlier.totals, strict=True)
        ]
        if self.spending is None or earlier.spending is None:
            return CountedPhases(totals).counts()
        spending = self.spending - earlier.spending
        traffic = None
        if self.traffic is not None and earlier.traffic is not None:
            traffic = self.traffic.since(earlier.traffic)
        return CountedPhases(totals, spending, self.functions, traffic).counts()

    def counts(self) -> tuple[PhaseCount, ...]:
        """Return the same as objects."""
        if self.spending is None:
            return tuple(PhaseCount(*total) for total in self.totals)
        spent = self.spending.sum(axis=1).tolist()
        traffic = self.traffic.by_phase() if self.traffic else [None] * len(spent)
        return tuple(
            PhaseCount(instructions, cycles, _causes(row), functions, moved)
            for (instructions, cycles), row, functions, moved in zip(
                self.totals, spent, self._functions(self.spending), traffic, strict=True
            )
        )

    def _functions(self, spending: NDArray[np.int64]) -> list[tuple[FunctionCount, ...]]:
        if len(self.functions) == 1:
            return [()] * len(spending)
        return [
            tuple(
                FunctionCount(name, row[0], _causes(row))
                for name, row in zip(self.functions, rows, strict=True)
                if any(row)
            )
            for rows in spending.tolist()
        ]


def _causes(row: list[int]) -> dict[str, int]:
    return dict(zip(ALL_CAUSES, row[1:], strict=True))
