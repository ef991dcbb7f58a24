"""The guide's figures are what covp computes; other versions of the compiler differ a little."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from covp.evaluation import Build, build, run
from covp.evaluation.energy import Energy, estimate_energy
from covp.exploration.retiming import record, retime
from covp.exploration.sweep.reader import read_spec
from covp.exploration.sweep.space import expand

ROOT = Path(__file__).parents[2]
GUIDE = " ".join((ROOT / "docs" / "guide-estimate.md").read_text(encoding="utf-8").split())
SIZES = {"cortex-m4": (4, 8, 16, 32), "cortex-m33": (8,)}
ROWS = [(platform, size) for platform, sizes in SIZES.items() for size in sizes]


def built(platform: str, *accelerators: str) -> Build:
    made = build("vww", platform, accelerators, allow_slower=True)
    if made.source != "official":
        pytest.skip("the guide's figures are of the official model: set COVP_MODEL_DIR")
    return made


def numbers(cells: str) -> list[float]:
    return [float(cell.replace(",", "")) for cell in cells.strip(" |").split("|")]


def test_the_space_has_as_many_designs_as_the_guide_says():
    assert f"{len(expand(read_spec(ROOT / 'examples' / 'how-large.yaml')))} designs" in GUIDE


@pytest.mark.costly
@pytest.mark.parametrize(("platform", "size"), ROWS, ids=str)
def test_a_row_of_the_table_is_what_is_retimed(platform: str, size: int):
    table = GUIDE[GUIDE.index(f"| {platform} | {SIZES[platform][0]}x") :]
    row = re.search(rf"\| {size}x{size} \| ([\d,| ]+) \| [\d.]+ mm2 \|", table)
    assert row is not None
    made = built(platform, f"gemm:size={size}")
    found = retime(record(made), {"gemm.bytes_per_cycle": [1, 2, 4, 8, 16]}).cycles.tolist()
    assert numbers(row[1]) == [pytest.approx(cycles, rel=0.02) for cycles in found]


@pytest.mark.costly
def test_the_core_alone_and_with_the_unit():
    profiles = [run(built("cortex-m4", *unit)).profile for unit in ((), ("gemm",))]
    for what, scale in (("instructions", 1), ("cycles", 1), ("milliseconds at 120 MHz", 120_000)):
        row = re.search(rf"\| {what} \| ([\d,.]+ \| [\d,.]+) \|", GUIDE)
        assert row is not None
        counts = [p.instructions if what == "instructions" else p.cycles for p in profiles]
        assert numbers(row[1]) == [pytest.approx((one or 0) / scale, rel=0.02) for one in counts]


@pytest.mark.costly
@pytest.mark.parametrize("size", [4, 8, 16])
def test_the_energy_is_that_of_a_board(size: int):
    stated = re.search(rf"(\d+) uJ with {size}x{size}", GUIDE)
    assert stated is not None
    made = built("nucleo-l4r5zi", f"gemm:size={size},technology=horowitz-45nm")
    energy = estimate_energy(made.program, run(made).profile)
    assert isinstance(energy, Energy)
    assert float(stated[1]) * 1e-6 == pytest.approx(energy.joules, rel=0.02)
    unit = sum(part.joules for part in energy.parts if part.what == "gemm")
    assert f"is {unit / energy.joules:.1%}".replace("%", " %") in GUIDE
