"""Searches: the order in which the schedules of a layer are tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from covp.codegen.schedule import Schedule

Strategy = Literal["model", "random", "exhaustive"]


class ScheduleSearch(Protocol):
    """Proposes schedules and learns from their scores."""

    def propose(self, count: int) -> list[Schedule]:
        """Return up to ``count`` schedules not proposed before; empty when none is left."""
        ...

    def learn(self, schedule: Schedule, score: float) -> None:
        """Take the score of a schedule; smaller is better."""
        ...


def make_search(strategy: Strategy, points: Sequence[Schedule], seed: int = 0) -> ScheduleSearch:
    """Return a search over the points; the first of them, the default, is always proposed first."""
    if strategy == "model":
        return ModelSearch(points, seed)
    return OrderedSearch(points, None if strategy == "exhaustive" else seed)


class OrderedSearch:
    """All points in their order, or shuffled with a seed, after the default."""

    def __init__(self, points: Sequence[Schedule], seed: int | None) -> None:
        rest = list(points[1:])
        if seed is not None:
            order = np.random.default_rng(seed).permutation(len(rest))
            rest = [rest[i] for i in order]
        self._left = [*points[:1], *rest]

    def propose(self, count: int) -> list[Schedule]:
        """Return the next points."""
        proposed, self._left = self._left[:count], self._left[count:]
        return proposed

    def learn(self, schedule: Schedule, score: float) -> None:
        """Ignore the score: the order is fixed."""


class ModelSearch:
    """Ridge regression of log(score) over knobs and their products, refitted as trials come in.

    Proposes what the model thinks best, and every fourth time a random point, so that a wrong
    model is found out. Starts with the default and a few random points.
    """

    _RANDOM_START = 8

    def __init__(self, points: Sequence[Schedule], seed: int) -> None:
        self._points = list(points)
        self._features = _features(points)
        self._rng = np.random.default_rng(seed)
        self._left = set(range(len(points)))
        self._scores: dict[int, float] = {}
        self._index = {point: i for i, point in enumerate(points)}
        self._proposed = 0

    def propose(self, count: int) -> list[Schedule]:
        """Return a mixture of the best by the model and random points."""
        chosen: list[int] = []
        ranked = self._rank()
        while len(chosen) < min(count, len(self._left) + len(chosen)) and self._left:
            explore = not self._scores or self._proposed < self._RANDOM_START
            explore = explore or self._proposed % 4 == 3
            if self._proposed == 0:
                pick = 0
            elif explore:
                pick = int(self._rng.choice(sorted(self._left)))
            else:
                pick = next(i for i in ranked if i in self._left)
            self._left.discard(pick)
            self._proposed += 1
            chosen.append(pick)
        return [self._points[i] for i in chosen]

    def learn(self, schedule: Schedule, score: float) -> None:
        """Add a score; points that did not run count as bad ones."""
        self._scores[self._index[schedule]] = score

    def _rank(self) -> list[int]:
        known = [i for i, score in self._scores.items() if np.isfinite(score)]
        if len(known) < 2:
            return sorted(self._left)
        x = self._features[known]
        y = np.log([self._scores[i] for i in known])
        weights = np.linalg.solve(x.T @ x + 1e-2 * np.eye(x.shape[1]), x.T @ (y - y.mean()))
        return [int(i) for i in np.argsort(self._features @ weights, kind="stable")]


def _features(points: Sequence[Schedule]) -> NDArray[np.float64]:
    """Return tile as one-hot, each knob's logarithm, its square, and products, per tile."""
    tiles = sorted({point.tile for point in points})
    rows = []
    for point in points:
        logs = np.log2([max(value, 0.5) for value in point.knobs.values()])
        products = np.outer(logs, logs)[np.triu_indices(len(logs))]
        rows.append((tiles.index(point.tile), np.concatenate([[1.0], logs, products])))
    width = max(len(row) for _, row in rows)
    features = np.zeros((len(points), len(tiles) * width))
    for i, (tile, row) in enumerate(rows):
        features[i, tile * width : tile * width + len(row)] = row
    return features
