"""`Quality`: the accuracy metric of a model, as MLPerf Tiny defines it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from covp.evaluation.data.metrics import area_under_curve, top_1
from covp.evaluation.data.tasks import Metric, Task


@dataclass(frozen=True)
class Quality:
    """The quality of the results over a dataset.

    Attributes:
        metric: what ``value`` is.
        value: 0 to 1.
        target: the closed division's least value; None: there is none.
        samples: files of the dataset.
        inferences: that were run for them.
        computed_by: "device", the emulated core, or "reference", which computes the same bits.
        seconds: host time, of all processes together.
    """

    metric: Metric
    value: float
    target: float | None
    samples: int
    inferences: int
    computed_by: Literal["device", "reference"]
    seconds: float

    @property
    def meets_target(self) -> bool | None:
        """True if the closed division would accept it; None: there is no target."""
        return None if self.target is None else self.value >= self.target


def score(task: Task, answers: Sequence[float], labels: Sequence[int]) -> float:
    """Return the task's metric.

    Args:
        task: what the files are for.
        answers: of each file: its class, or its distance, see `Task.answer`.
        labels: of each file.
    """
    if task.metric == "AUC":
        return area_under_curve(answers, labels)
    return top_1(answers, labels)
