"""A board behind the real OpenOCD is measured by its own cycle counter."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import yaml

from covp.chip.platform_file import load_platform, platforms_dir
from covp.device.timing.model import load_file, make_model
from covp.device.timing.trace import cost
from covp.evaluation.calibration.calibrate import calibrate
from covp.evaluation.calibration.measure import NO_TARGETS, measure
from covp.evaluation.calibration.programs import ROUNDS, hazard_programs
from tests.device.openocd_board import virtual_board

NAMES = ("alu_wide", "load_use", "call_popping", "vdiv_use")


def board(folder: Path, **changed: object) -> Path:
    """The Nucleo board's platform with memory that never waits, and other keys."""
    content = yaml.safe_load((platforms_dir() / "nucleo-l4r5zi.yaml").read_text())
    del content["caches"]
    for region in content["memory"]:
        region.pop("caches", None)
        region.pop("interface", None)
        region.pop("clocks", None)
        region["wait_states"] = 0
    path = folder / "board.yaml"
    path.write_text(yaml.safe_dump({**content, **changed}))
    return path


def own_board(folder: Path) -> Path:
    """A platform whose core is no Cortex-M4 that covp knows."""
    model = load_file("m4")
    cycles = {**model.cycles, "load": 3, "jump": 4, "call": 5, "pop_pc": 6, "vdiv": 17, "mul": 2}
    truth = msgspec.structs.replace(model, cycles=cycles, taken={"branch": 3})
    (folder / "truth.yaml").write_text(yaml.safe_dump(msgspec.to_builtins(truth)))
    return board(folder, timing="truth.yaml")


def test_the_counter_of_a_board(tmp_path):
    path = own_board(tmp_path)
    platform, truth = load_platform(path), make_model("t", load_file(str(tmp_path / "truth.yaml")))
    programs = [one for one in hazard_programs(platform.core) if one.name in NAMES]
    (tmp_path / "known").mkdir()
    known = load_platform(board(tmp_path / "known"))
    with virtual_board(str(path)) as attached:
        device = attached.device()
        found = measure(known, device, programs)
        device.close()
    assert (found.source.kind, found.source.model) == ("measured", "DWT_CYCCNT")
    for one in found.programs:
        few, many = one.traces[NO_TARGETS]
        assert one.cycles == cost(many, truth) - cost(few, truth) > ROUNDS


@pytest.mark.slow
def test_a_board_is_calibrated(tmp_path):
    path = own_board(tmp_path)
    (tmp_path / "known").mkdir()
    known = load_platform(board(tmp_path / "known"))
    with virtual_board(str(path)) as attached:
        device = attached.device()
        found = calibrate(known, device, programs=8)
        device.close()
    assert found.worst_error <= 0.005
    truth = load_file(str(tmp_path / "truth.yaml"))
    assert (found.model.cycles, found.model.taken) == (truth.cycles, truth.taken)
    assert found.model.source.startswith("covp calibrate, fitted to the DWT_CYCCNT")
