"""Rows of a sweep against single runs of the same designs."""

from __future__ import annotations

from covp.evaluation import evaluate
from covp.sweep.evaluate import evaluate_points
from covp.sweep.points import Point


def test_a_row_has_the_figures_of_a_run_and_a_failure_is_a_row():
    points = [Point("toycar", "riscv32"), Point("toycar", "riscv32", ("gemm:size=999",))]
    good, bad = evaluate_points(points)
    run = evaluate("toycar", "riscv32")
    assert good.is_ok and good.matches_reference
    assert good.cycles == run.profile.cycles and good.flash_bytes == run.memory.flash_bytes
    assert bad.status == "failed" and bad.reason is not None and "size=999" in bad.reason
    assert bad.cycles is None
