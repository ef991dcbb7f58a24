"""Energy in the report and the document of a run: labelled, with its sources, or absent."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Call
from .documents import run_of

COMMAND = ("run", "toycar", "-p", "stm32l4r5", "--check", "none", "-a")
UNIT = "gemm:technology=horowitz-45nm"


@pytest.mark.costly
def test_without_the_units_share_there_is_no_sum(call: Call) -> None:
    document: Any = call(*COMMAND, "gemm", "--json").document
    assert document["energy_j"] is document["energy_source"] is None
    assert "energy: not estimated: gemm states no energy" in call(*COMMAND, "gemm").out


@pytest.mark.costly
def test_the_report_says_estimated_and_every_source(call: Call) -> None:
    text = call(*COMMAND, UNIT, "--verbose").out
    (line,) = (line for line in text.splitlines() if line.startswith("energy:"))
    assert ", estimated: STM32L4R5" in line and "flash 5/5" in line
    assert all(word in text for word in ("MLPerf Tiny v1.0", "Horowitz", "45 nm", "0.9 V", "1.8 V"))


@pytest.mark.costly
def test_the_document_adds_up(call: Call) -> None:
    document: Any = call(*COMMAND, UNIT, "--json").document
    source = run_of(document).energy_source
    assert source is not None and source.low_j is not None and source.high_j is not None
    assert document["energy_j"] == pytest.approx(sum(part.joules for part in source.parts))
    assert source.low_j <= document["energy_j"] <= source.high_j
    assert all(p.joules == pytest.approx(p.count * p.pj / 1e12) and p.source for p in source.parts)
    assert source.parts[0].count == document["cycles"]


def test_areas_are_listed(call: Call) -> None:
    document: Any = call(*COMMAND, "gemm:technology=gemmini-22nm", "--json").document
    (area,) = document["accelerator_area"]
    assert (area["name"], area["kind"], area["multipliers"]) == ("gemm", "estimated", 64)


def test_platforms_list_energy_and_area(call: Call) -> None:
    found = {entry["name"]: entry for entry in call("platforms", "--json").document}
    assert found["stm32l4r5"]["energy"]["pj_per_cycle"] == pytest.approx(392.4)
    assert "MLPerf" in found["stm32l4r5"]["energy"]["source"]
    assert found["stm32f746"]["energy"] is None
