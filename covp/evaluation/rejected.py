"""`rejected_layers`: what accelerators left to others, and what accepting it would save."""

from __future__ import annotations

from dataclasses import dataclass

from covp.accelerator.partition import Refusal
from covp.evaluation.result import Evaluation


@dataclass(frozen=True)
class RejectedLayer:
    """A layer that an accelerator rejected.

    Attributes:
        refusal: the layer, the accelerator and the reason.
        potential_saving: cycles that all operators of the rejected match need where they run now,
            less the accelerator's estimate, the driver left out. None where the accelerator does
            not estimate them, or a layer has other operators besides.
    """

    refusal: Refusal
    potential_saving: int | None


def rejected_layers(result: Evaluation) -> list[RejectedLayer]:
    """Return every rejection of an evaluation, in the order of the layers."""
    return [
        RejectedLayer(refusal, _estimate_gain(result, refusal))
        for refusal in result.program.refusals
    ]


def _estimate_gain(result: Evaluation, refusal: Refusal) -> int | None:
    """Return the cycles of the layers that the rejected match would replace, less its estimate."""
    replaced = [
        entry
        for entry in result.profile.layers
        if not set(entry.layer.operators).isdisjoint(refusal.operators)
    ]
    spent = [entry.cycles for entry in replaced if entry.cycles is not None]
    whole = all(set(entry.layer.operators) <= set(refusal.operators) for entry in replaced)
    if refusal.estimate is None or not replaced or len(spent) < len(replaced) or not whole:
        return None
    return max(0, sum(spent) - refusal.estimate)
