"""Each unit's cycles with what they were compared with, or that they were compared with nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from covp.accelerator.registry import find_backend
from covp.evaluation import evaluate
from covp.exploration.sweep.estimates import cycles_source
from covp.exploration.sweep.points import Point
from covp.report.run_tables import certainty_table

ROOT = Path(__file__).parents[2]
CONV8 = ROOT / "examples" / "rtl_unit" / "conv8.py"


@pytest.mark.parametrize(
    ("spec", "beside"),
    [
        ("gemm", None),
        ("ne16", "its RTL, 327 layers"),
        ("ne16:wait=sleep,clock_ratio=2", "its RTL, 327 layers"),
        ("ne16:bytes_per_cycle=4", None),
        ("ne16:contention=0.5", None),
        ("systolic", None),
        ("systolic:preload=false,rows=8", "SCALE-Sim 3.0.0 where memory does not wait, 123 layers"),
        (f"{CONV8}", "its RTL, 363 jobs"),
        (f"{CONV8}:rtl=yes", "its own RTL"),
    ],
)
def test_it_holds_for_the_parameters_that_were_compared(spec: str, beside: str | None) -> None:
    check = find_backend(spec).known_timing
    assert (check.beside if check else None) == beside


def test_stated_errors_are_what_the_benchmarks_found() -> None:
    ne16 = find_backend("ne16").known_timing
    rows = (ROOT / "benchmarks" / "ne16_rtl.csv").read_text("utf-8").splitlines()[1:]
    assert ne16 is not None and f"{len(rows)} layers" in ne16.beside
    systolic = find_backend("systolic:preload=false").known_timing
    table = (ROOT / "benchmarks" / "results" / "printed" / "tiled.txt").read_text("utf-8")
    cells = [line.split("|") for line in table.partition("\n\n")[0].splitlines()[2:]]
    layers, worst = sum(int(c[3]) for c in cells), max(float(c[7].strip(" %")) for c in cells)
    assert systolic is not None and f"{layers} layers" in systolic.beside
    assert systolic.error - 0.001 < worst / 100 <= systolic.error


def test_a_run_states_it() -> None:
    run = evaluate("kws", "riscv32", ("ne16", "vector")).record()
    assert [(unit.name, unit.cycles_error, unit.cycles_checked) for unit in run.units] == [
        ("ne16", 0.0, "its RTL, 327 layers"),
        ("vector", None, None),
    ]
    busy = {
        name: sum(
            layer.offload.busy for layer in run.layers if layer.offload and layer.target == name
        )
        for name in ("ne16", "vector")
    }
    found = {row[0]: row[1:] for row in certainty_table(run).rows}
    assert found["cycles of ne16"] == [
        f"{busy['ne16']:,}",
        "estimated",
        "0.0% at most",
        "its RTL, 327 layers",
    ]
    assert found["cycles of vector"][:3] == [f"{busy['vector']:,}", "estimated", "unchecked"]


def test_a_sweep_states_it_for_each_design() -> None:
    """For a set-up the largest error of its units, and none where one was not compared."""
    designs: list[tuple[tuple[str, ...], dict[str, int], float | None]] = [
        ((), {}, None),
        (("ne16",), {"ne16.bytes_per_cycle": 36}, 0.0),
        (("ne16",), {"ne16.bytes_per_cycle": 18}, None),
        (("ne16", "vector"), {}, None),
        (("systolic:preload=false", "ne16"), {}, 0.068),
    ]
    points = [
        Point("kws", "riscv32", units, vary=tuple(vary.items())) for units, vary, _ in designs
    ]
    found = [cycles_source(point)["units_error"] for point in points]
    assert found == [error for _, _, error in designs]
