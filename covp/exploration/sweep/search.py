"""`Searcher`: designs that one of Optuna's samplers suggests; `search`: have them evaluated.

The store is the memory of a search. Started again, it suggests the same designs, as nothing but
the seed and the rows decides, and those that have a row are not evaluated again.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Protocol

import optuna
from optuna.trial import TrialState

from covp.errors import UsageError
from covp.exploration.sweep.batches import binary
from covp.exploration.sweep.constraints import Constraint
from covp.exploration.sweep.execute import SweepExecution, Tell, Workers, silent
from covp.exploration.sweep.points import FIGURES, Point, Row
from covp.exploration.sweep.space import Space
from covp.exploration.sweep.spec import Search
from covp.exploration.sweep.store import Store

_BATCH = 10
"""Designs that are suggested at once; more would keep more processes busy and learn later."""
_REPEATED = 3
"""Known designs in a row after which a neighbour of the front is taken instead."""
_NEAR = 3
"""Designs of a batch that are neighbours of the front known so far."""
_POPULATION = 30
"""Population of the genetic samplers: some ten generations of three hundred designs."""
_TRIES = 200
"""Random designs of which one should be new."""
_POINTS = 300
"""Default number of points of a search."""


class Designs(Protocol):
    """A searchable set of designs, such as a `Space`."""

    @property
    def dimensions(self) -> dict[str, tuple[Any, ...]]:
        """The choices by name."""

    def choose(self, choices: Mapping[str, Any]) -> Point:
        """Return the design of a choice for each name."""


class Searcher:
    """A search; the same rows give the same designs.

    Args:
        designs: what is searched.
        how: sampler, seed and objectives.
        limits: that a design should keep.

    Raises:
        UsageError: a package that the sampler needs is not installed.
    """

    def __init__(self, designs: Designs, how: Search, limits: Sequence[Constraint] = ()) -> None:
        self._designs, self._limits = designs, limits
        self._objectives = how.objectives or ("cycles",)
        self._choices = {name: _in_order(choices) for name, choices in designs.dimensions.items()}
        self._free = [name for name, choices in self._choices.items() if len(choices) > 1]
        self._distributions: dict[str, optuna.distributions.BaseDistribution] = {
            name: optuna.distributions.IntDistribution(0, len(self._choices[name]) - 1)
            for name in self._free
        }
        self._random = random.Random(how.seed)
        self._asked: dict[str, Point] = {}
        self._waiting: dict[str, optuna.Trial] = {}
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._study = optuna.create_study(
            directions=[
                "maximize" if FIGURES[name].better == "more" else "minimize"
                for name in self._objectives
            ],
            sampler=_sampler(how),
        )
        self._by_chance = how.sampler == "random"
        for places in () if self._by_chance else self._first():
            self._study.enqueue_trial(places)

    def ask(self, count: int) -> list[Point]:
        """Return new designs, each once; fewer where there are no more."""
        found: list[Point] = []
        repeated = 0
        for places in self._near()[:_NEAR]:
            self._study.enqueue_trial(places)
        while len(found) < count:
            trial = self._study.ask(self._distributions)
            point = self._point(trial.params)
            if point.key not in self._asked:
                self._asked[point.key] = point
                self._waiting[point.key] = trial
                found.append(point)
                repeated = 0
                continue
            # what is known teaches nothing, and would count twice
            self._study.tell(trial, state=TrialState.FAIL)
            repeated += 1
            if repeated % _REPEATED == 0:
                other = self._unknown()
                if other is None:
                    break
                self._study.enqueue_trial(other)
        return found

    def tell(self, rows: Sequence[Row]) -> None:
        """Take the rows of the designs that were suggested, in their order."""
        for row in rows:
            trial = self._waiting.pop(row.key)
            values = [getattr(row, name) for name in self._objectives]
            if not row.is_ok or None in values:
                self._study.tell(trial, state=TrialState.FAIL)
                continue
            for limit in self._limits:
                trial.set_constraint(str(limit), limit.excess(row))
            self._study.tell(trial, values)

    def _point(self, places: Mapping[str, int]) -> Point:
        return self._designs.choose(
            {name: choices[places.get(name, 0)] for name, choices in self._choices.items()}
        )

    def _first(self) -> list[dict[str, int]]:
        """Return the start: the ends of each dimension from one corner, then space-filling designs.

        A Latin hypercube: each dimension's values come equally often.
        """
        last = {name: len(self._choices[name]) - 1 for name in self._free}
        corner = dict.fromkeys(self._free, 0)
        found = [corner, last, *({**corner, name: last[name]} for name in self._free)]
        columns = {
            name: [number * (last[name] + 1) // _BATCH for number in range(_BATCH)]
            for name in self._free
        }
        for column in columns.values():
            self._random.shuffle(column)
        return found + [
            {name: column[number] for name, column in columns.items()} for number in range(_BATCH)
        ]

    def _near(self) -> list[dict[str, int]]:
        """Return the neighbours of the front that were not suggested, in any order."""
        if self._by_chance:
            return []
        near = [
            {**trial.params, name: place}
            for trial in self._study.best_trials
            for name in self._free
            for place in (trial.params[name] - 1, trial.params[name] + 1)
            if 0 <= place < len(self._choices[name])
        ]
        self._random.shuffle(near)
        return [places for places in near if self._is_new(places)]

    def _unknown(self) -> dict[str, int] | None:
        """Return a design that was not suggested, near the front where there is one; None: there is
        hardly one."""
        anywhere = (
            {name: self._random.randrange(len(self._choices[name])) for name in self._free}
            for _ in range(_TRIES)
        )
        return next(filter(self._is_new, (*self._near(), *anywhere)), None)

    def _is_new(self, places: Mapping[str, int]) -> bool:
        return self._point(places).key not in self._asked


def search(
    space: Space,
    store: Store,
    workers: Workers,
    *,
    tell: Tell = silent,
    group: Callable[[Point], Hashable] = binary,
) -> list[Point]:
    """Have designs of a space evaluated as the sampler suggests them.

    Args:
        space: of a sweep; its `Search` says how.
        store, workers, tell, group: as of `covp.exploration.sweep.execute.execute`.

    Returns:
        The designs in the order in which they were suggested; all have a row in the store.

    Raises:
        UsageError: a package that the sampler needs is not installed, or no design has a figure
            that is an objective.
        CovpError: the store or the workers are gone.
    """
    how = space.spec.search
    most = min(how.points or _POINTS, len(space))
    searcher = Searcher(space, how, space.spec.limits)
    execution = SweepExecution(store, workers, tell, group)
    found: list[Point] = []
    while len(found) < most:
        batch = searcher.ask(min(_BATCH, most - len(found)))
        if not batch:
            break
        found += batch
        execution.run(batch, most - len(found))
        rows = store.rows([point.key for point in batch])
        if len(found) == len(batch):
            _check(rows, how)
        searcher.tell(rows)
    return found


def _check(rows: Sequence[Row], how: Search) -> None:
    """Raise UsageError if an objective is known of no design."""
    good = [row for row in rows if row.is_ok]
    for name in how.objectives:
        if good and all(getattr(row, name) is None for row in good):
            raise UsageError(
                f"search.objectives: {name} is not known for any design, such as {good[0].model} "
                f"on {good[0].platform}; omit it, or choose a platform that reports it"
            )


def _in_order(choices: Sequence[Any]) -> tuple[Any, ...]:
    """Return choices, numbers by size: what lies close together is alike."""
    if all(isinstance(choice, (int, float)) for choice in choices):
        return tuple(sorted(choices))
    return tuple(choices)


def _direction(name: str) -> str:
    return "maximize" if FIGURES[name].better == "more" else "minimize"


def _sampler(how: Search) -> Any:
    """Return Optuna's sampler of a name. Raises UsageError: a package is missing."""
    samplers: Any = optuna.samplers
    if how.sampler == "random":
        return samplers.RandomSampler(seed=how.seed)
    if how.sampler == "tpe":
        return samplers.TPESampler(seed=how.seed, n_startup_trials=2 * _BATCH)
    if how.sampler == "nsga2":
        return samplers.NSGAIISampler(seed=how.seed, population_size=_POPULATION)
    if how.sampler == "nsga3":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            return samplers.NSGAIIISampler(seed=how.seed, population_size=_POPULATION)
    try:
        return samplers.GPSampler(seed=how.seed)
    except ImportError as error:
        raise UsageError(
            f"search.sampler: {how.sampler} needs {error.name}: pip install scipy torch; or take "
            "nsga2 or tpe"
        ) from None
