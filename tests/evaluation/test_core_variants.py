"""Parameters of a core's RTL as values of a design: built, fitted to the RTL, kept in the cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from covp.chip.platform_file import load_platform
from covp.device.rtl.cores import rtl_of
from covp.device.timing.model import core_timing
from covp.errors import PlatformError, UsageError
from covp.evaluation import Sample, build, core_variants, run
from covp.evaluation.varied import vary_design
from tests.device.rtl.conftest import need_rtl


@pytest.fixture
def uncalibrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that would be calibrated, in a cache of its own."""
    made: list[Path] = []

    def calibrate(platform: object, folder: Path) -> None:
        made.append(folder)
        (folder / "timing.yaml").write_text("source: a test\ninstructions: rv32\n", "utf-8")

    need_rtl("ibex")
    monkeypatch.setenv("COVP_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(core_variants, "_calibrate", calibrate)
    return made


def test_a_variant_is_like_its_core(uncalibrated):
    values = {"platform.core.WRITEBACK_STAGE": 0, "platform.core.MULTIPLIER": 3}
    first, _ = vary_design("ibex", [], values)
    assert first.core.name == "ibex-WRITEBACK_STAGE-0"  # 3 is what Ibex has
    assert first.core.like[0] == "ibex"
    assert rtl_of(first.core).parameters == {
        **rtl_of(load_platform("ibex").core).parameters,
        "WRITEBACK_STAGE": 0,
    }
    again, _ = vary_design("ibex", [], values)
    assert again.core == first.core and len(uncalibrated) == 1
    other, _ = vary_design("ibex", [], {"platform.core.MULTIPLIER": 2})
    assert other.core.name == "ibex-MULTIPLIER-2" and len(uncalibrated) == 2


def test_the_values_of_the_core_change_nothing(uncalibrated):
    same, _ = vary_design("ibex", [], {"platform.core.WRITEBACK_STAGE": 1})
    assert same == load_platform("ibex") and not uncalibrated


@pytest.mark.parametrize(
    ("platform", "name", "value", "said"),
    [
        ("ibex", "WRITEBACK", 0, "did you mean WRITEBACK_STAGE"),
        ("ibex", "WRITEBACK_STAGE", "no", "has to be an integer"),
        ("serv", "PRE_REGISTER", 0, "its RTL has none"),
        ("cortex-m4", "FPU", 0, "there is no RTL of core cortex-m4f"),
    ],
)
def test_what_is_refused(uncalibrated, platform, name, value, said):
    with pytest.raises((UsageError, PlatformError), match=said):
        vary_design(platform, [], {f"platform.core.{name}": value})
    assert not uncalibrated


@pytest.mark.slow
def test_a_variant_takes_the_cycles_of_its_rtl():
    need_rtl("ibex")
    varied, _ = vary_design("ibex", [], {"platform.core.WRITEBACK_STAGE": 0})
    made = build("toycar", varied)
    sample = Sample.random(made.graph, 0)
    rtl, virtual = (run(made, sample, device=device).profile for device in ("rtl", "virtual"))
    assert rtl.instructions == virtual.instructions
    assert rtl.cycles and virtual.cycles
    stated = core_timing(varied.core).errors["zero wait states"]
    assert abs(virtual.cycles / rtl.cycles - 1) <= stated


@pytest.mark.slow
def test_rtl_that_fails_is_one_line():
    """Ibex with a writeback stage but without the adder for branches, with slow data memory."""
    need_rtl("ibex")
    with pytest.raises(PlatformError, match="`covp core check` of such a core names") as caught:
        vary_design("ibex", [], {"platform.core.BRANCH_TARGET_ALU": 0})
    assert "\n" not in str(caught.value)
