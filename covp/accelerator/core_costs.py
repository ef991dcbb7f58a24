"""`CoreCosts`: the cycles of the core that accelerators compete with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from covp.accelerator.call import Requantize
from covp.graph.graph import Graph, Op


class CoreCosts(Protocol):
    """An estimator of the cycles that the core needs; None where they are unknown."""

    def operators(self, graph: Graph) -> Mapping[Op, int | None]:
        """Return the cycles of each operator of a graph after all passes."""
        ...

    def requantizations(self, steps: Sequence[Requantize]) -> Sequence[int | None]:
        """Return the cycles of each step that an accelerator leaves to the core."""
        ...


class _Unknown:
    """An estimator for a core of which nothing is known."""

    def operators(self, graph: Graph) -> Mapping[Op, int | None]:
        """Return None for each operator."""
        return dict.fromkeys(graph.ops)

    def requantizations(self, steps: Sequence[Requantize]) -> Sequence[int | None]:
        """Return None for each step."""
        return [None] * len(steps)


NO_COSTS: CoreCosts = _Unknown()
"""Without costs of the core accelerators get whatever they accept."""
