"""How much of a known Pareto front a search finds in 300 of 10,000 designs.

    python benchmarks/search.py [--seeds 5]

kws on riscv32 with gemm: its size and scratchpad are 20 programs, each of which runs once; port,
start-up, contention and wait states are retimed. So all designs are known, and with them the front
of cycles and area. Each sampler gets 300 designs, random search among them. Its share of the
hypervolume of the front is printed; cycles and area are scaled to the front's range, the reference
point lies a tenth beyond its worst values. As that is an easy measure, the share of the front's
designs that were found themselves is printed, too. Exits with 1 where a sampler of Optuna has less
than 95 % of the hypervolume.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.exploration.sweep.evaluate import evaluate_points
from covp.exploration.sweep.points import Row
from covp.exploration.sweep.reader import make_spec
from covp.exploration.sweep.result import costs, pareto_front
from covp.exploration.sweep.search import Searcher
from covp.exploration.sweep.space import Space
from covp.exploration.sweep.spec import Search

SWEEP = {
    "models": ["kws"],
    "platforms": ["riscv32"],
    "accelerators": [["gemm:technology=gemmini-22nm"]],
    "vary": {
        "gemm.size": [2, 4, 8, 16, 32],
        "gemm.scratchpad": [4096, 8192, 16384, 32768],
        "gemm.bytes_per_cycle": [1, 2, 4, 8, 16],
        "gemm.startup_cycles": [0, 8, 16, 32, 64],
        "gemm.contention": [0.0, 0.1, 0.2, 0.3, 0.5],
        "platform.flash.wait_states": [0, 1, 2, 4],
    },
}
OBJECTIVES: Any = ("cycles", "area_um2")
POINTS, BATCH, WANTED = 300, 10, 0.95
_Array = NDArray[np.float64]


class Front:
    """The front of some rows, and the share of its hypervolume that others have."""

    def __init__(self, rows: Sequence[Row]) -> None:
        front = costs([rows[number] for number in pareto_front(rows, OBJECTIVES)], OBJECTIVES)
        self._low, self._high = front.min(axis=0), front.max(axis=0)
        self._whole = self._volume(front)
        self._points = {tuple(point) for point in front}
        self.size = len(self._points)

    def shares(self, rows: Sequence[Row]) -> tuple[float, float]:
        """Of the front's hypervolume, and of its designs, 0 to 1."""
        given = costs(rows, OBJECTIVES)
        found = self._points & {tuple(point) for point in given}
        return self._volume(given) / self._whole, len(found) / self.size

    def _volume(self, given: _Array) -> float:
        """What is dominated within the unit square and a tenth beyond; two objectives."""
        scaled = (given - self._low) / (self._high - self._low)
        volume, lowest = 0.0, 1.1
        for first, second in sorted(map(tuple, scaled[(scaled < 1.1).all(axis=1)])):
            if second < lowest:
                volume += (1.1 - first) * (lowest - second)
                lowest = second
        return volume


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    seeds = parser.parse_args().seeds
    space = Space(make_spec(SWEEP))
    started = time.monotonic()
    rows = {row.key: row for row in evaluate_points(list(space))}
    front = Front(list(rows.values()))
    failed = sum(not row.is_ok for row in rows.values())
    print(f"{len(space)} designs in {time.monotonic() - started:.0f} s, {failed} failed; "
          f"{front.size} different ones on the front")  # fmt: skip
    print(f"shares of the front in {POINTS} designs, {seeds} seeds")
    good = True
    for sampler in ("random", "nsga2", "tpe"):
        started = time.monotonic()
        found = [searched(space, rows, front, sampler, seed) for seed in range(seeds)]
        seconds = (time.monotonic() - started) / seeds
        (least, fewest), (mean, many) = np.min(found, axis=0), np.mean(found, axis=0)
        print(f"{sampler:7} hypervolume least {least:7.2%}, mean {mean:7.2%}; designs least "
              f"{fewest:4.0%}, mean {many:4.0%}; {seconds:.1f} s")  # fmt: skip
        good = good and (sampler == "random" or least >= WANTED)
    sys.exit(0 if good else 1)


def searched(
    space: Space, rows: dict[str, Row], front: Front, sampler: Any, seed: int
) -> tuple[float, float]:
    """What one search finds."""
    how = Search(kind="optuna", objectives=OBJECTIVES, sampler=sampler, seed=seed)
    searcher, found = Searcher(space, how), list[Row]()
    while len(found) < POINTS:
        asked = [rows[point.key] for point in searcher.ask(BATCH)]
        searcher.tell(asked)
        found += asked
    return front.shares(found)


if __name__ == "__main__":
    main()
