"""`Quality`: how right the results are, as MLPerf Tiny counts it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from covp.mlperf.tasks import Metric, Task


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
        """Whether the closed division would accept it; None: there is no target."""
        return None if self.target is None else self.value >= self.target


def score(task: Task, answers: Sequence[float], labels: Sequence[int]) -> float:
    """The task's metric.

    Args:
        task: what the files are for.
        answers: of each file: its class, or its distance, see `Task.answer`.
        labels: of each file.
    """
    if task.metric == "AUC":
        return area_under_curve(answers, labels)
    return top_1(answers, labels)


def top_1(answers: Sequence[float], labels: Sequence[int]) -> float:
    """The share of answers that are the label."""
    return float(np.mean(np.asarray(answers) == np.asarray(labels)))


def area_under_curve(scores: Sequence[float], labels: Sequence[int]) -> float:
    """The area under the receiver operating characteristic, from ranks.

    It is the probability that a file of class 1 has a greater score than one of class 0, equal ones
    count half: the Mann-Whitney statistic (Hanley and McNeil, Radiology 143, 1982).

    Args:
        scores: finite.
        labels: 0 or 1, both of them at least once.
    """
    values, is_anomaly = np.asarray(scores, np.float64), np.asarray(labels) == 1
    _, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks = (ends - (counts - 1) / 2)[where]  # from 1; equal scores share their mean rank
    ones, zeros = int(is_anomaly.sum()), int((~is_anomaly).sum())
    statistic = ranks[is_anomaly].sum() - ones * (ones + 1) / 2
    return float(statistic / (ones * zeros))
