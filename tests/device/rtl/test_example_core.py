"""examples/own_core: a core that covp does not bring, by the path of its folder."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from covp.chip.platform_file import Platform, load_platform
from covp.evaluation import Sample, build, run
from covp.testing.core_check import check_core

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_core"
if not EXAMPLE.is_dir():
    pytest.skip("not in a checkout", allow_module_level=True)
if importlib.util.find_spec("pythondata_cpu_cv32e40x") is None:
    pytest.skip("pip install pythondata-cpu-cv32e40x", allow_module_level=True)


@pytest.fixture
def own(tmp_path: Path) -> Platform:
    """The example in a folder of its own: nothing of it comes from where covp is."""
    shutil.copytree(EXAMPLE, tmp_path / "own")
    return load_platform(tmp_path / "own" / "board.yaml")


@pytest.mark.costly
def test_it_does_what_the_virtual_device_does(own):
    rows = list(check_core(own, 1000))
    assert [row for row in rows if row.difference or row.notes or row.skipped] == []


@pytest.mark.slow
@pytest.mark.parametrize("waits", [(0, 0), (1, 0), (3, 1)])
def test_a_model_on_its_rtl_and_by_its_timing_model(own, waits):
    """Its timing model, which was fitted by `covp calibrate`, takes the RTL's cycles of toycar."""
    made = build("toycar", own.with_waits(*waits))
    sample = Sample.random(made.graph, 0)
    rtl, virtual = run(made, sample, device="rtl"), run(made, sample, device="virtual")
    assert rtl.matches_reference and virtual.matches_reference
    assert rtl.profile.instructions == virtual.profile.instructions
    assert virtual.profile.cycles and rtl.profile.cycles
    assert abs(virtual.profile.cycles / rtl.profile.cycles - 1) <= 0.001
