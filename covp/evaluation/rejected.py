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
        potential_saving: cycles by which the layer would be shorter than where it runs now, the
            driver left out: an estimate. None where the accelerator does not estimate the layer.
    """

    refusal: Refusal
    potential_saving: int | None


def rejected_layers(result: Evaluation) -> list[RejectedLayer]:
    """Every rejection of an evaluation, in the order of the layers."""
    cycles = {entry.layer.name: entry.cycles for entry in result.profile.layers}
    found = []
    for refusal in result.program.refusals:
        spent, saving = cycles.get(refusal.layer), None
        if spent is not None and refusal.estimate is not None:
            saving = max(0, spent - refusal.estimate)
        found.append(RejectedLayer(refusal, saving))
    return found
