"""`ScheduleTrial`: one schedule of a layer, measured, and which of several is the best."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from covp.base.pareto import front
from covp.base.request import DEFAULT_BUILD, BuildOptions, Objective

Cost = Literal["instructions", "cycles", "time"]
VERSION = 3
"""Version of the kernels: a change of what a schedule means makes old trials invalid."""
UNKNOWN_MEMORY = "?"
"""`ScheduleTrial.memory` of trials that do not say which memory their cycles are of."""

_SIZE_WEIGHT: dict[Objective, float] = {"size": 4.0}
_SHARE, _MORE = 1.25, 2048
"""Flash that "balanced" takes at most: a quarter, or 2 KiB, more than a layer's smallest schedule.

So weights stay as wide as in the model file, and small layers may have fast code.
"""


@dataclass(frozen=True)
class ScheduleTrial:
    """One schedule, measured.

    Attributes:
        layer: `layer_key` of the operator.
        core: name of the core.
        compiler: name and version.
        version: `VERSION` when it was measured.
        schedule: as text.
        instructions: retired, exact, including the few that call the layer; None on devices that do
            not count.
        cycles: estimated, or measured on hardware; None where neither is possible.
        flash_bytes: code and constants of the layer.
        scratch_bytes: working memory in the arena.
        exact: whether the output matches the reference; a trial where it does not never wins.
        device: the kind of device it ran on: "virtual", "host", "gdb", "openocd".
        nanoseconds: run time, measured; None where the device cannot tell.
        structure: `structure_key` of the operator; "" in trials of older files.
        memory: which one the cycles are of, `Platform.memory_timing`; `UNKNOWN_MEMORY` in trials of
            older files.
    """

    layer: str
    core: str
    compiler: str
    version: int
    schedule: str
    instructions: int | None
    cycles: int | None
    flash_bytes: int
    scratch_bytes: int
    exact: bool
    device: str = "virtual"
    nanoseconds: int | None = None
    structure: str = ""
    memory: str = UNKNOWN_MEMORY

    def spent(self, cost: Cost = "cycles") -> float:
        """Return that cost; where it is unknown another one, infinity where none is known."""
        costs = {
            "cycles": self.cycles, "instructions": self.instructions, "time": self.nanoseconds
        }  # fmt: skip
        known = [value for value in (costs[cost], *costs.values()) if value is not None]
        return float(known[0]) if known else float("inf")

    def score(
        self,
        options: BuildOptions = DEFAULT_BUILD,
        cost: Cost = "cycles",
    ) -> float:
        """Return what a search minimizes: cost times flash to the power of a weight.

        Where flash has no weight it counts as far as ``flash_trade`` says; not beside a cost in
        time.

        Args:
            options: ``optimize`` gives the weight; ``flash_trade`` are bytes that a thousand
                instructions or cycles are worth, None: speed at any price.
            cost: as for `spent`; all trials of a device know the same.
        """
        weight = _SIZE_WEIGHT.get(options.optimize, 0.0)
        score: float = self.spent(cost) * self.flash_bytes**weight
        timed = cost == "time" or self.instructions is self.cycles is None
        if not weight and options.flash_trade is not None and not timed:
            score += 1000 * self.flash_bytes / options.flash_trade
        return score


def cost_of(objective: Objective) -> Cost:
    """Return the cost that decides for an objective.

    A core takes energy by the cycle, so that of the least energy has the fewest cycles.
    """
    return "instructions" if objective == "instructions" else "cycles"


def best_of(
    trials: Iterable[ScheduleTrial],
    options: BuildOptions = DEFAULT_BUILD,
    cost: Cost | None = None,
) -> ScheduleTrial | None:
    """Return the best exact trial within ``max_scratch``; None where there is none.

    Args:
        trials: of one layer, with costs that can be compared.
        options: ``optimize`` says what is best: the least `ScheduleTrial.score`, then flash; with
            "balanced" of those with little flash.
        cost: what is compared; None: that of ``optimize``.
    """
    most = options.max_scratch
    cost = cost_of(options.optimize) if cost is None else cost
    fitting = [
        trial for trial in trials if trial.exact and (most is None or trial.scratch_bytes <= most)
    ]
    if options.optimize == "balanced" and fitting:
        least = min(trial.flash_bytes for trial in fitting)
        limit = max(_SHARE * least, least + _MORE)
        fitting = [trial for trial in fitting if trial.flash_bytes <= limit]
    return min(fitting, key=lambda t: (t.score(options, cost), t.flash_bytes), default=None)


def pareto_front(trials: Iterable[ScheduleTrial]) -> list[ScheduleTrial]:
    """Return the exact trials that no other beats in speed and flash, fastest first."""
    exact = [trial for trial in trials if trial.exact]
    costs = np.array([(each.spent(), each.flash_bytes) for each in exact]).reshape(-1, 2)
    best = [trial for trial, is_best in zip(exact, front(costs), strict=True) if is_best]
    return sorted(best, key=ScheduleTrial.spent)
