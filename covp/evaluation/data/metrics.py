"""Figures of merit: top-k accuracy and the area under the ROC curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def top_1(answers: Sequence[float], labels: Sequence[int]) -> float:
    """Return the share of answers that are the label."""
    return float(np.mean(np.asarray(answers) == np.asarray(labels)))


def label_ranks(values: NDArray[Any], labels: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Return how many classes rank above the label: 0 where it is the first greatest value.

    Args:
        values: (samples, classes).
        labels: (samples,), each a class.
    """
    own = np.take_along_axis(values, labels[:, None].astype(np.int64), axis=1)
    before = np.arange(values.shape[1]) < labels[:, None]
    return np.asarray(np.sum((values > own) | ((values == own) & before), axis=1), np.int64)


def area_under_curve(scores: Sequence[float], labels: Sequence[int]) -> float:
    """Return the area under the receiver operating characteristic, from ranks.

    It is the probability that a sample of class 1 has a greater score than one of class 0, equal
    ones count half: the Mann-Whitney statistic (Hanley and McNeil, Radiology 143, 1982).

    Args:
        scores: finite.
        labels: 0 or 1, both of them at least once.
    """
    values, is_one = np.asarray(scores, np.float64), np.asarray(labels) == 1
    _, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks = (ends - (counts - 1) / 2)[where]  # from 1; equal scores share their mean rank
    ones, zeros = int(is_one.sum()), int((~is_one).sum())
    statistic = ranks[is_one].sum() - ones * (ones + 1) / 2
    return float(statistic / (ones * zeros))
