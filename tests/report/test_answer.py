"""What a sweep's page says first: the best point in a sentence, and its parameters as figures."""

from __future__ import annotations

from typing import Any

from covp.report.answer import answer
from covp.report.objectives import OBJECTIVES, Row
from covp.report.page import Figure, Note, PagePart
from covp.report.point_columns import Grid
from tests.report import sweep_rows

CYCLES = [OBJECTIVES["cycles"]]


def point(accelerators: tuple[str, ...], cycles: int, **vary: int) -> dict[str, Any]:
    """A row with these cycles; names of parameters with ``__`` for a dot."""
    named = {name.replace("__", "."): value for name, value in vary.items()}
    return sweep_rows.row("kws", "stm32l4r5", accelerators, named) | {"cycles": cycles}


def sizes(*cycles: int, **others: int) -> list[dict[str, Any]]:
    found = enumerate(cycles)
    return [point(("gemm",), c, gemm__macs_per_cycle=4**i, **others) for i, c in found]


def texts(parts: list[PagePart]) -> list[str]:
    return [part.text for part in parts if isinstance(part, Note)]


def figures(parts: list[PagePart]) -> list[Figure]:
    grids = [part.figures for part in parts if isinstance(part, Grid)]
    return [p for p in parts if isinstance(p, Figure)] + [f for grid in grids for f in grid]


def values(figure: Figure, layer: int = 0) -> list[dict[str, Any]]:
    spec = figure.spec
    one = spec["layer"][layer] if "layer" in spec else spec
    return list((one["data"] if "data" in one else spec["data"])["values"])


def test_one_parameter() -> None:
    """The sentence has the best point, the core alone, and where it ends; the figure all points."""
    rows: list[Row] = [point((), 8000), *sizes(2000, 400, 200, 200)]
    parts = answer(rows, CYCLES)
    assert texts(parts) == [
        "kws: gemm on stm32l4r5 with 16 MACs a cycle: 200 cycles (estimated, unchecked), 40 times "
        "less than the best core alone; more than 16 MACs a cycle saves nothing."
    ]
    (figure,) = figures(parts)
    assert [(p["x"], p["y"]) for p in values(figure)] == [(1, 2000), (4, 400), (16, 200), (64, 200)]
    assert values(figure, 1) == [{"line": "core alone", "y": 8000}]


def test_little_gain_and_none() -> None:
    """Under 2 % is said; where the last value still gains nothing is; nor of a sweep's one end."""
    (said,) = texts(answer([*sizes(2000, 203, 201, 200)], CYCLES, "ram_bytes <= 1K"))
    assert said.startswith("kws within ram_bytes <= 1K: gemm") and "64 MACs a cycle: 200" in said
    assert said.endswith("10 times less than the worst of the points; more than 4 MACs a cycle "
                         "saves less than 2 %.")  # fmt: skip
    assert "saves" not in texts(answer([*sizes(2000, 400, 200, 100)], CYCLES))[0]
    assert "saves" not in texts(answer([*sizes(200, 200, 200)], CYCLES))[0]


def test_a_core_that_no_accelerator_beats() -> None:
    (said,) = texts(answer([point((), 100), *sizes(100, 100)], CYCLES))
    assert said.startswith("kws: core alone on stm32l4r5: 100 cycles (estimated, unchecked)")
    assert said.endswith("; no accelerator is better.")


def test_two_parameters_are_a_map() -> None:
    rows = [*sizes(8000, 4000, gemm__bytes_per_cycle=1), *sizes(800, 400, gemm__bytes_per_cycle=2)]
    (figure,) = figures(answer([point((), 9000), *rows], CYCLES))
    fields = {(p["x"], p["y"]): p["value"] for p in values(figure)}
    assert fields == {(1, 1): 8000, (4, 1): 4000, (1, 2): 800, (4, 2): 400}
    assert "core alone 9,000 cycles" in figure.caption


def test_three_parameters_at_the_best_point() -> None:
    """Of each a curve through the best point; lines that cover each other are one."""
    rows = [
        point(unit, (3 - size) * 100 + (3 - width) * 10 + wait, gemm__size=size, gemm__w=width,
              platform__wait=wait)
        for unit in (("gemm",), ("twin",))
        for size in (1, 2) for width in (1, 2) for wait in (0, 1)
    ]  # fmt: skip
    found = figures(answer([*rows], CYCLES))
    curves = [[(p["x"], p["y"]) for p in values(figure)] for figure in found]
    assert curves == [[(1, 210), (2, 110)], [(1, 120), (2, 110)], [(0, 110), (1, 111)]]
    assert {p["line"] for f in found for p in values(f)} == {"gemm = twin"}


def test_more_is_better() -> None:
    rows = [one | {"accuracy": a} for one, a in zip(sizes(1, 1, 1), (0.5, 0.9, 0.9), strict=True)]
    (said,) = texts(answer([*rows], [OBJECTIVES["accuracy"]]))
    assert said == ("kws: gemm on stm32l4r5 with 4 MACs a cycle: accuracy 0.9000, the worst of the "
                    "points has 0.5000; more than 4 MACs a cycle brings nothing.")  # fmt: skip
