"""Sensitivity against functions whose variance splits as is known."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from covp.report.effects import BETWEEN, GRID, RANK, Effect, effects, is_grid
from covp.report.memory_bound import memory_bound
from covp.report.objectives import OBJECTIVES

CYCLES = [OBJECTIVES["cycles"]]


def rows_of(points: list[dict[str, Any]], cycles: Sequence[float]) -> list[dict[str, Any]]:
    own = {"model": "m", "platform": "p", "accelerators": [], "toolchain": "zig", "status": "ok"}
    return [own | {"vary": p, "cycles": c} for p, c in zip(points, cycles, strict=True)]


def found(rows: list[dict[str, Any]]) -> dict[str, Effect]:
    return {one.parameter: one for one in effects(rows, CYCLES) if one.group == "m"}


GRID_POINTS: list[dict[str, Any]] = [
    {"a": a, "b": b, "c": c} for a, b, c in itertools.product([1, 2, 3], [0, 1], ["x", "y"])
]


def test_additive() -> None:
    """y = 3a + 5b: Var(3a) = 9 * 2/3 = 6, Var(5b) = 25/4; no interactions, c does nothing."""
    shares = found(rows_of(GRID_POINTS, [10 + 3 * p["a"] + 5 * p["b"] for p in GRID_POINTS]))
    whole = 6 + 25 / 4
    assert shares["a"].share == pytest.approx(6 / whole)
    assert shares["b"].share == pytest.approx(25 / 4 / whole)
    assert shares["c"].share == pytest.approx(0)
    assert [shares[n].total for n in "abc"] == pytest.approx([shares[n].share for n in "abc"])
    assert {one.method for one in shares.values()} == {GRID}
    assert shares["a"].ratio == pytest.approx((10 + 9 + 2.5) / (10 + 3 + 2.5))
    assert list(shares) == ["b", "a", "c"], "the greatest first"


def test_interaction() -> None:
    """y = (a - 2) s(b) with s = -1, 1: no parameter alone does anything, both together all."""
    y = [10 + (p["a"] - 2) * (2 * p["b"] - 1) for p in GRID_POINTS]
    shares = found(rows_of(GRID_POINTS, y))
    assert [shares[n].share for n in "abc"] == pytest.approx([0, 0, 0])
    assert [shares[n].total for n in "abc"] == pytest.approx([1, 1, 0])


def test_all_shares_by_definition() -> None:
    """Sobol's closed sums of any function on the grid, from plain loops."""
    y = np.random.default_rng(3).random(len(GRID_POINTS))
    shares = found(rows_of(GRID_POINTS, list(y)))
    for name in "abc":
        levels = sorted({p[name] for p in GRID_POINTS})
        means = [
            np.mean([v for p, v in zip(GRID_POINTS, y, strict=True) if p[name] == level])
            for level in levels
        ]
        assert shares[name].share == pytest.approx(np.var(means) / np.var(y))


def test_no_full_grid() -> None:
    """A hole: numbers are ranked, names are grouped, and both say so."""
    points = GRID_POINTS[:-1]
    shares = found(rows_of(points, [math.exp(3 * p["a"]) for p in points]))
    assert shares["a"].method == RANK and shares["c"].method == BETWEEN
    assert shares["a"].share == pytest.approx(1), "any monotonous function"
    assert shares["a"].total is None


def test_ranks_of_equal_values() -> None:
    """Spearman's coefficient of x = 1, 1, 2, 3 and y = 1, 2, 3, 4: ranks 1.5, 1.5, 3, 4."""
    points = [{"x": x} for x in (1, 1, 2, 3)]
    expected = np.corrcoef([1.5, 1.5, 3, 4], [1, 2, 3, 4])[0, 1] ** 2
    assert found(rows_of(points, [1.0, 2.0, 3.0, 9.0]))["x"].share == pytest.approx(expected)


def test_grid() -> None:
    assert is_grid([[1, 1, 2, 2], ["a", "b", "a", "b"]])
    assert is_grid([[1, 1, 2, 2], [0, 0, 0, 0]]), "each combination twice"
    assert not is_grid([[1, 1, 2], ["a", "b", "a"]])
    assert not is_grid([[1, 1, 2, 2, 2], ["a", "b", "a", "b", "b"]])


def test_what_some_points_do_not_have_is_looked_at_among_the_others() -> None:
    rows = rows_of(GRID_POINTS, [10 + 3 * p["a"] + 5 * p["b"] for p in GRID_POINTS])
    alone = rows_of([{}], [100])
    with_unit = [row | {"accelerators": ["unit"]} for row in rows]
    shares = found([*alone, *with_unit])
    for name, effect in found(rows).items():
        assert shares[name].share == pytest.approx(effect.share)
        assert shares[name].points == len(GRID_POINTS)
    assert shares["setup"].points == len(GRID_POINTS) + 1


def test_designs_that_the_memory_port_decides() -> None:
    points = [
        {"gemm.size": size, "gemm.bytes_per_cycle": width}
        for size, width in itertools.product([4, 8, 16], [1, 4, 16])
    ]

    def cycles(point: dict[str, int]) -> int:
        memory, compute = 4096 // point["gemm.bytes_per_cycle"], 32768 // point["gemm.size"] ** 2
        return max(memory, compute)

    rows = rows_of(points, [cycles(point) for point in points])
    (line,) = memory_bound([*rows_of([{}], [9999]), *rows])
    assert line.startswith("memory-bound: 3 designs with gemm.bytes_per_cycle of 1; gemm.size")
    assert not memory_bound(rows_of(points, [7] * len(points)))
    assert not memory_bound(rows_of(points, [16384 // p["gemm.size"] for p in points]))
