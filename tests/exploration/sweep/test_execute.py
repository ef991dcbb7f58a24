"""Worker processes: each point has its row, and only those fail that end their process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from covp.exploration.sweep.execute import Workers, execute
from covp.exploration.sweep.status import SweepProgress
from covp.exploration.sweep.store import Store
from covp.runtime.jobs import Processes
from tests.exploration.sweep import standins
from tests.processes import descendants


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    with Processes(standins.evaluated, 2) as started:
        yield started


@pytest.mark.costly
def test_each_point_has_its_row(url: str, workers: Workers) -> None:
    points = standins.points(300)
    seen: list[SweepProgress] = []
    with Store(url) as store:
        store.put(standins.arithmetic(points[:50]), 250)
        execute(points + points[:70], store, workers, tell=seen.append)
        assert store.rows([point.key for point in points]) == standins.arithmetic(points)
    assert (seen[0].done, seen[0].left, seen[-1].done, seen[-1].left) == (50, 250, 300, 0)
    assert seen[-1].rate


@pytest.mark.costly
def test_only_points_that_end_their_process_fail(tmp_path: Path, workers: Workers) -> None:
    points = [standins.point(n, name) for name in ("crash", "bug", "model") for n in range(16)]
    with Store(tmp_path / "s.sqlite") as store:
        execute(points, store, workers)
        rows = store.rows([point.key for point in points])
    assert {(row.model, row.vary["unit.value"]): row.reason for row in rows if not row.is_ok} == {
        ("crash", 10): "ended its process by SIGSEGV 3 times",
        ("bug", 10): "internal error: ValueError: ten is no value",
    }
    wanted = standins.arithmetic(points)
    assert [a for a in rows if a.is_ok] == [b for a, b in zip(rows, wanted, strict=True) if a.is_ok]


def test_nothing_starts_where_nothing_is_left(tmp_path: Path) -> None:
    points, before = standins.points(30), descendants(os.getpid())
    with Store(tmp_path / "s.sqlite") as store, Processes(standins.evaluated, 2) as unused:
        store.put(standins.arithmetic(points), 0)
        execute(points, store, unused)
        assert descendants(os.getpid()) == before
