"""Results of the partitioner: placements, reasons for refusals, the alternatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.limits import Limit
from covp.graph.graph import Op
from covp.graph.pattern import Match


@dataclass(frozen=True)
class Refusal:
    """The reason why an accelerator did not get a layer.

    Attributes:
        layer: name of the operator.
        reason: one line with the constraint and the value seen.
        matched: a pattern matched, and the backend itself rejected the layer.
        limits: the conditions that did not hold, where the backend states them as data.
        estimate: cycles that the accelerator itself would need; None: unknown.
        accepted: the backend accepts it, and the core or another match was chosen.
        operators: names of all operators of the match that was rejected.
    """

    layer: str
    accelerator: str
    reason: str
    matched: bool = False
    limits: tuple[Limit, ...] = ()
    estimate: int | None = None
    accepted: bool = False
    operators: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Placement:
    """A layer: operators that are computed as one, on an accelerator or on the core.

    Attributes:
        ops: in the graph's order; the last one's outputs are the layer's.
        backend: the accelerator, or None for the core.
        match: what the backend matched, or None for the core.
        cycles: simulated on the core; the accelerator's estimate and its driver's; None: unknown.
    """

    ops: tuple[Op, ...]
    backend: AcceleratorBackend | None = None
    match: Match | None = None
    cycles: int | None = None

    @property
    def target(self) -> str:
        """The accelerator's name, or "cpu"."""
        return "cpu" if self.backend is None else self.backend.name

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the operators."""
        return tuple(op.name for op in self.ops)


@dataclass(frozen=True)
class Alternative:
    """A way to compute some operators that the partitioner had the choice of.

    Attributes:
        operators: their names, in the graph's order.
        target: an accelerator's name, or "cpu".
        pattern: that matched; "" for the core.
        cycles: simulated on the core; the accelerator's estimate and its driver's; None: unknown.
        chosen: the program has it.
    """

    operators: tuple[str, ...]
    target: str
    pattern: str
    cycles: int | None
    chosen: bool


@dataclass(frozen=True)
class Partition:
    """Every operator in exactly one placement, in an order that can run.

    Attributes:
        placements: the layers.
        refusals: why accelerators did not get layers.
        alternatives: of all operators that an accelerator accepts.
        warnings: layers that are slower than on the core, one line per accelerator.
    """

    placements: tuple[Placement, ...]
    refusals: tuple[Refusal, ...]
    alternatives: tuple[Alternative, ...] = ()
    warnings: tuple[str, ...] = ()

    def reasons(self, accelerator: str) -> list[Refusal]:
        """Return the layers one accelerator did not get: what it accepts, then what matched."""
        own = [refusal for refusal in self.refusals if refusal.accelerator == accelerator]
        return sorted(own, key=lambda refusal: (not refusal.accepted, not refusal.matched))


def join_names(names: Sequence[str]) -> str:
    """Return the names as a phrase for a sentence."""
    return " + ".join(names)
