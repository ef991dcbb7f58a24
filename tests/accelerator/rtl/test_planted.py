"""Mistakes in a unit's Verilog, each of a kind that designers make, and `covp verify` finds it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from covp.testing.verify import verify
from tests.accelerator.rtl.unit_project import change, new_unit

pytestmark = pytest.mark.costly

PLANTS = {
    row["what"]: row
    for row in yaml.safe_load(Path(__file__).with_name("plants.yaml").read_text("utf-8"))
}


@pytest.mark.parametrize("what", PLANTS)
def test_is_found(what: str, tmp_path: Path) -> None:
    plant = PLANTS[what]
    unit = new_unit(tmp_path)
    change(unit, plant["file"], plant["old"], plant["new"])
    verdict = verify(str(unit), against_rtl=True)
    assert verdict.failure is not None
    assert plant["message"] in verdict.failure
