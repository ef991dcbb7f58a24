"""The guide's figures are what covp computes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from covp.evaluation import build
from covp.retiming import record, retime
from covp.sweep.reader import read_spec
from covp.sweep.space import expand

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guide-estimate.md").read_text(encoding="utf-8")


def test_the_space_has_as_many_designs_as_the_guide_says():
    assert f"{len(expand(read_spec(ROOT / 'examples' / 'how-large.yaml')))} designs" in GUIDE


def test_a_row_of_the_table_is_what_is_retimed():
    row = re.search(r"^\| \| 8x8 \| (.*) \| [\d.]+ mm2 \|$", GUIDE, re.M)
    assert row is not None
    stated = [int(cell.replace(",", "")) for cell in row[1].split(" | ")]
    made = build("vww", "cortex-m4", ["gemm:size=8"], allow_slower=True)
    if made.source != "official":
        pytest.skip("the guide's figures are of the official model: set COVP_MODEL_DIR")
    found = retime(record(made), {"gemm.bytes_per_cycle": [1, 2, 4, 8, 16]}).cycles.tolist()
    # other versions of the compiler differ a little
    assert stated == [pytest.approx(cycles, rel=0.02) for cycles in found]
