"""The tables of a sweep's report, against plain loops."""

from __future__ import annotations

import random
from typing import Any

from covp.report.objectives import OBJECTIVES, Row, shown
from covp.report.sweep_tables import best, best_designs, failures, front_designs
from tests.report import sweep_rows

NAMES = ("cycles", "area_um2", "ram_bytes")
WEIGHED = [OBJECTIVES[name] for name in NAMES]


def worked() -> list[Row]:
    rows = [row for row in sweep_rows.grid() if row["status"] == "ok"]
    random.Random(2).shuffle(rows)
    return [*rows]


def test_best_in_order() -> None:
    """Of equal ones the next objective decides; accuracy counts upwards; None is the last."""
    rows = worked()
    for order in ([0, 1, 2], [1, 2, 0], [2, 0, 1]):
        found = best(rows, [WEIGHED[i] for i in order])
        assert found is min(rows, key=lambda row: [row[NAMES[i]] for i in order])
    own: dict[str, Any] = {"status": "ok", "cycles": 5}
    some: list[Row] = [own | {"accuracy": a} for a in (0.5, None, 0.9)]
    assert best(some, [OBJECTIVES["accuracy"], WEIGHED[0]]) is some[2]
    assert best(some[1:2], [WEIGHED[0], OBJECTIVES["accuracy"]]) is some[1]
    assert best(some, [OBJECTIVES["energy_j"]]) is None


def test_designs_that_are_best() -> None:
    rows = worked()
    table = best_designs(rows, WEIGHED, "limits")
    for model in ("kws", "vww"):
        lines = [line for line in table.rows if line[0] == model]
        titles = [title for line in lines for title in str(line[1]).split(", ")]
        assert sorted(titles) == sorted(one.title for one in WEIGHED), "each once"
        for column, name in enumerate(NAMES, 3):
            (line,) = (line for line in lines if OBJECTIVES[name].title in str(line[1]))
            assert line[column] == min(row[name] for row in rows if row["model"] == model)
    assert table.caption == "limits"


def test_the_front_of_all_objectives() -> None:
    rows = [row for row in worked() if row["model"] == "kws"]
    points = {tuple(row[name] for name in NAMES) for row in rows}
    front = {
        one
        for one in points
        if not any(o != one and all(a <= b for a, b in zip(o, one, strict=True)) for o in points)
    }
    table = front_designs([*rows, {**rows[0], "ram_bytes": None}], WEIGHED)
    listed = [tuple(line[2:5]) for line in table.rows]
    assert set(listed) == front and len(listed) == len(front) > 5
    assert listed == sorted(listed)
    assert "not known" not in table.caption
    fastest = {**rows[0], "cycles": 1, "ram_bytes": None}
    table = front_designs([*rows, fastest], WEIGHED)
    assert table.rows[0][2] == 1 and len(table.rows) == len(front) + 1
    assert "Of 1 of them a figure is not known, which counts as the worst." in table.caption


def test_failures_are_counted() -> None:
    rows = sweep_rows.grid()
    lines = failures(rows).rows
    assert sum(int(str(line[4])) for line in lines) == sum(r["status"] == "failed" for r in rows)
    assert {line[2] for line in lines} == {"stm32l4r5"}


def test_prefixes() -> None:
    values = [0, 1, 999.96, 1234, 2.175e-05, 0.0003582, 1e-15, 5e12]
    texts = ["0 J", "1 J", "1000 J", "1.234 kJ", "21.75 µJ", "358.2 µJ", "0.001 pJ", "5 TJ"]
    assert [shown(value, "J") for value in values] == texts
