"""Search with Optuna: the same designs for the same rows, each once, and the front is found."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from covp.errors import UsageError
from covp.exploration.sweep.constraints import Constraint
from covp.exploration.sweep.points import Point, Row
from covp.exploration.sweep.reader import make_spec
from covp.exploration.sweep.search import Searcher, search
from covp.exploration.sweep.space import Space
from covp.exploration.sweep.spec import Search
from covp.exploration.sweep.store import Store
from covp.runtime.jobs import Processes
from tests.exploration.sweep import standins

MACS, WIDTHS, WAITS = (16, 1, 4, 64, 2, 8, 32), tuple(range(1, 9)), (3, 0, 1, 2)


class Units:
    """224 designs: more multipliers and wider ports cost area; wait states cost nothing."""

    dimensions: dict[str, tuple[Any, ...]] = dict(  # noqa: C408, RUF012
        model=("m",), macs=MACS, width=WIDTHS, waits=WAITS
    )

    def choose(self, choices: Mapping[str, Any]) -> Point:
        return Point("m", "p", vary=tuple(choices.items()), key=str(sorted(choices.items())))

    @property
    def all(self) -> list[Point]:
        names = list(self.dimensions)
        every = product(*self.dimensions.values())
        return [self.choose(dict(zip(names, each, strict=True))) for each in every]


def row(point: Point) -> Row:
    macs, width, waits = (int(point.values[name]) for name in ("macs", "width", "waits"))
    if macs == 2:
        return Row(key=point.key, model="m", platform="p", status="failed", reason="two")
    cycles = 1000 + max(100_000 // macs, 60_000 // width) + 5_000 * waits
    area = 100.0 * macs + 500.0 * width
    return Row(key=point.key, model="m", platform="p", cycles=cycles, area_um2=area)


def front(points: list[Point]) -> set[tuple[int | None, float | None]]:
    """What no other design beats, by definition."""
    rows = [found for found in map(row, points) if found.cycles and found.area_um2]
    costs = {(found.cycles or 0, found.area_um2 or 0.0) for found in rows}
    return {a for a in costs if not any(b != a and b[0] <= a[0] and b[1] <= a[1] for b in costs)}


def searched(how: Search, count: int, *limits: Constraint, batch: int = 10) -> list[Point]:
    searcher, found = Searcher(Units(), how, limits), list[Point]()
    while len(found) < count and (asked := searcher.ask(min(batch, count - len(found)))):
        searcher.tell([row(point) for point in asked])
        found += asked
    return found


BOTH: Any = ("cycles", "area_um2")


@pytest.mark.parametrize("sampler", ["nsga2", "tpe", "nsga3", "random"])
def test_designs_are_asked_for_once_and_again_the_same(sampler: Any) -> None:
    how = Search(kind="optuna", sampler=sampler, objectives=BOTH, seed=3)
    found = searched(how, 60)
    assert len({point.key for point in found}) == 60
    assert searched(how, 60) == found
    assert searched(Search(kind="optuna", sampler=sampler, objectives=BOTH, seed=4), 60) != found


@pytest.mark.parametrize("sampler", ["nsga2", "tpe"])
def test_the_front_is_found(sampler: Any) -> None:
    units = Units()
    wanted = front(units.all)
    for seed in range(2):
        found = searched(Search(sampler=sampler, objectives=BOTH, seed=seed), 100)
        assert len(front(found) & wanted) >= 0.7 * len(wanted)
        by_chance = front(random.Random(seed).sample(units.all, 100))
        assert len(by_chance & wanted) < len(front(found) & wanted)


@pytest.mark.costly
def test_all_designs_of_a_small_space() -> None:
    found = searched(Search(objectives=BOTH), 500)
    assert len(found) > 200 and len({point.key for point in found}) == len(found)


@pytest.mark.costly
def test_constraints_lead_the_search() -> None:
    limit = Constraint("area_um2", "<=", 1200.0)
    how = Search(objectives=("cycles",), sampler="tpe")
    fits: Callable[[list[Point]], int] = lambda points: sum(  # noqa: E731
        limit.holds(row(point)) is True for point in points
    )
    assert fits(searched(how, 80, limit)) > fits(searched(how, 80))


SPEC = {
    "models": ["kws"],
    "platforms": ["riscv32"],
    "accelerators": [["gemm"]],
    "vary": {
        "gemm.bytes_per_cycle": [1, 2, 4, 8],
        "platform.flash.wait_states": [0, 1, 2, 3, 4, 5],
    },
    "search": {"kind": "optuna", "objectives": ["cycles", "area_um2"], "points": 15, "seed": 1},
}


@pytest.mark.costly
def test_a_search_that_is_started_again_goes_on(tmp_path: Path) -> None:
    space = Space(make_spec(SPEC))
    with Processes(standins.designs, 1) as workers:
        with Store(tmp_path / "a.sqlite") as store:
            whole = search(space, store, workers)
            rows = store.rows([point.key for point in whole])
        with Store(tmp_path / "b.sqlite") as store:
            store.put(rows[:7], 8)
            assert search(space, store, workers) == whole
            assert store.rows([point.key for point in whole]) == rows
    assert len(rows) == 15
    energy = {**SPEC, "search": {"kind": "optuna", "objectives": ["energy_j"], "points": 15}}
    with (
        Store(tmp_path / "a.sqlite") as store,
        Processes(standins.designs, 1) as workers,
        pytest.raises(UsageError, match="energy_j is not known for any design"),
    ):
        search(Space(make_spec(energy)), store, workers)
