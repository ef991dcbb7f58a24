"""Where flash wait states are not known every command says so, and none prints an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from covp.chip.platform_file import platforms_dir

from .conftest import Call

BOUND = "a lower bound: flash wait states not counted"


@pytest.mark.costly
def test_no_command_prints_a_percentage_of_a_bound(call: Call, tmp_path: Path) -> None:
    board = tmp_path / "bound.yaml"
    text = (platforms_dir() / "cortex-m7.yaml").read_text()
    board.write_text(f"{text}energy: {{pj_per_cycle: 100, source: an example}}\n")
    run = call("run", "toycar", "-p", str(board))
    line = next(line for line in run.out.splitlines() if line.startswith("estimated"))
    assert BOUND in line and "%" not in line
    energy = next(line for line in run.out.splitlines() if line.startswith("energy"))
    assert BOUND in energy and "%" not in energy
    record = call("run", "toycar", "-p", str(board), "--json").document
    assert record["cycles_source"]["error"] is None
    assert BOUND in record["cycles_source"]["assumes"]
    assert BOUND in record["energy_source"]["assumes"]
    compared = call("compare", "toycar", "-p", str(board), "-a", "gemm").out
    assert BOUND in compared and "error below" not in compared
    ranked = call("mlperf", "toycar", "-p", str(board))
    assert ranked.status == 0 and BOUND in ranked.out and "error below" not in ranked.out
