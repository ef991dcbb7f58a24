"""`Space`: all designs of a sweep by number; `expand`: those that it evaluates."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, product
from typing import Any

from covp.accelerator.parameters import Value
from covp.base.request import EVERY_MATCH, BuildOptions, change_options
from covp.evaluation.data import Data
from covp.evaluation.data.accuracy import demand_labels
from covp.exploration.sweep.content import design_content, point_key
from covp.exploration.sweep.owners import Owners, Setup, locate_errors
from covp.exploration.sweep.points import Point
from covp.exploration.sweep.spec import Spec
from covp.graph.models import find_model

Values = tuple[tuple[str, Value], ...]
_OPTIONS = ("toolchain", "optimize")
"""Build options that a sweep varies."""
FIRST_DIMENSIONS = ("model", "platform", *_OPTIONS, "accelerators")


@dataclass(frozen=True)
class Combination:
    """The designs that differ in their parameters alone.

    Attributes:
        model, platform, accelerators, options, seed, data: as of `Point`.
        axes: the parameters that it has, by name, with their values.
        listed: its designs where they are listed; None: the product of the axes.
        content: of all but the parameters, see `covp.exploration.sweep.content`.
    """

    model: str
    platform: str
    accelerators: tuple[str, ...]
    options: BuildOptions
    seed: int
    data: Data | None
    axes: tuple[tuple[str, tuple[Value, ...]], ...]
    listed: tuple[Values, ...] | None
    content: str

    @property
    def choice(self) -> tuple[Any, ...]:
        """Choice in each of `FIRST_DIMENSIONS`."""
        options = (getattr(self.options, name) for name in _OPTIONS)
        return self.model, self.platform, *options, self.accelerators

    @cached_property
    def size(self) -> int:
        """Number of designs."""
        if self.listed is not None:
            return len(self.listed)
        return math.prod(len(values) for _, values in self.axes)

    def point(self, number: int) -> Point:
        """Return a design by its number, 0 to `size` - 1; the last axis changes first."""
        if self.listed is not None:
            return self.at(self.listed[number])
        values: list[tuple[str, Value]] = []
        for name, choices in reversed(self.axes):
            number, place = divmod(number, len(choices))
            values.append((name, choices[place]))
        return self.at(tuple(reversed(values)))

    def at(self, values: Values) -> Point:
        """Return the design with these parameters, by name."""
        return Point(
            self.model,
            self.platform,
            self.accelerators,
            self.options,
            values,
            self.seed,
            self.data,
            self.content,
            point_key(self.content, dict(values)),
        )


class Space:
    """The designs of a sweep, checked.

    Args:
        spec: of the sweep.
        where: begins every error.

    Raises:
        UsageError: a name or a value is wrong; with its key.
    """

    def __init__(self, spec: Spec, where: str = "") -> None:
        self.spec = spec
        self.combinations = _combinations(spec, where)
        self._ends = list(accumulate(each.size for each in self.combinations))
        self._by_choice = {each.choice: each for each in self.combinations}

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def point(self, number: int) -> Point:
        """Return a design by its number, 0 to ``len(space) - 1``."""
        place = bisect_right(self._ends, number)
        return self.combinations[place].point(number - (self._ends[place - 1] if place else 0))

    def __iter__(self) -> Iterator[Point]:
        return chain.from_iterable(map(each.point, range(each.size)) for each in self.combinations)

    @property
    def dimensions(self) -> dict[str, tuple[Any, ...]]:
        """Choices by dimension of a search: `FIRST_DIMENSIONS` and the parameters."""
        spec = self.spec
        first = (
            spec.models, spec.platforms, spec.toolchains, spec.optimize, spec.accelerators
        )  # fmt: skip
        return {**dict(zip(FIRST_DIMENSIONS, first, strict=True)), **spec.axes()}

    def choose(self, choices: Mapping[str, Any]) -> Point:
        """Return the design of a choice in each of the `dimensions`.

        Parameters that the set-up or the platform does not have are left out, so that several
        choices may be one design.
        """
        each = self._by_choice[tuple(choices[name] for name in FIRST_DIMENSIONS)]
        return each.at(tuple((name, choices[name]) for name, _ in each.axes))


def expand(spec: Spec, where: str = "") -> list[Point]:
    """Return the designs that a sweep evaluates, each once; none for Optuna, which asks one by one.

    Args:
        spec: of the sweep.
        where: begins every error, such as "sweep.yaml: ".

    Raises:
        UsageError: a name or a value is wrong; with its key.
    """
    return designs(Space(spec, where))


def designs(space: Space) -> list[Point]:
    """Return the designs of a space that are evaluated, as `expand` does for a sweep."""
    search = space.spec.search
    if search.kind == "optuna":
        return []
    if search.kind == "random" and search.points is not None and search.points < len(space):
        chosen = random.Random(search.seed).sample(range(len(space)), search.points)
        found: Iterator[Point] = map(space.point, sorted(chosen))
    else:
        found = iter(space)
    return list({point.key: point for point in found}.values())


def _combinations(spec: Spec, where: str) -> list[Combination]:
    for position, model in enumerate(spec.models):
        with locate_errors(f"{where}models[{position}]: "):
            graph = find_model(model).load()
        data = spec.data.of(model) if spec.data else None
        if data is not None:
            with locate_errors(f"{where}data: {model}: "):
                demand_labels(data, graph)
    owners = Owners.of(spec, where)
    chosen = product(dict.fromkeys(spec.toolchains), dict.fromkeys(spec.optimize))
    options = [
        change_options(EVERY_MATCH, dict(zip(_OPTIONS, each, strict=True))) for each in chosen
    ]
    settings = product(dict.fromkeys(spec.models), owners.boards, owners.setups, options)
    return [_combination(spec, owners, where, *each) for each in settings]


def _combination(
    spec: Spec,
    owners: Owners,
    where: str,
    model: str,
    platform: str,
    setup: Setup,
    options: BuildOptions,
) -> Combination:
    mine = owners.names[platform, setup]
    data = spec.data.of(model) if spec.data else None
    with locate_errors(where):
        content = design_content(
            model,
            owners.boards[platform],
            owners.setups[setup],
            options,
            data,
            seed=spec.seed,
        )
    axes = tuple((name, values) for name, values in spec.axes().items() if name in mine)
    listed = [tuple(sorted(each.items())) for each in spec.points if each.keys() <= mine]
    return Combination(
        model=model,
        platform=platform,
        accelerators=setup,
        options=options,
        seed=spec.seed,
        data=data,
        axes=axes,
        listed=tuple(listed) if spec.search.kind == "list" else None,
        content=content,
    )
