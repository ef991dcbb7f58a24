"""examples/rtl_unit: convolutions in Verilog beside their model, on layers and whole models."""

from __future__ import annotations

from pathlib import Path

import pytest

from covp.accelerator.registry import find_backend
from covp.accelerator.rtl.verilog import unit_verilog
from covp.chip.platform_file import load_platform
from covp.evaluation import Sample, build, run
from covp.testing.verify import verify

FOLDER = Path(__file__).parents[3] / "examples" / "rtl_unit"
UNIT = FOLDER / "conv8.py"


def test_the_verilog_is_that_of_the_declared_job() -> None:
    files = unit_verilog("conv8", find_backend(str(UNIT)).job, "axi4-lite", "axi4")  # type: ignore[attr-defined]
    for name, text in files.items():
        assert (FOLDER / name).read_text() == text, "covp new rtl conv8.py writes it anew"


@pytest.mark.costly
def test_layers() -> None:
    verdict = verify(str(UNIT), examples=60, models=["kws"], seconds=300, against_rtl=True)
    assert verdict.failure is None, verdict.test
    assert min(verdict.accepted[kind] for kind in ("CONV_2D", "FULLY_CONNECTED")) > 50


@pytest.mark.slow
@pytest.mark.parametrize("model", ["kws", "resnet"])
def test_models(model: str) -> None:
    made = build(model, load_platform("riscv32"), [f"{UNIT}:rtl=yes,rtl_check=true"])
    found = run(made, Sample.random(made.graph, 0))
    assert found.matches_reference
    assert sum(entry.target == "conv8" for entry in found.profile.layers) == (
        6 if model == "kws" else 10
    )
