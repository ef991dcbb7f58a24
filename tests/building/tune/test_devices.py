"""Tuning over devices other than the virtual one: what each can measure is what counts."""

from __future__ import annotations

from pathlib import Path

import pytest

import covp
from covp.building.tune.records import Records
from covp.building.tune.tuner import Options, tune
from covp.errors import DeviceError
from covp.evaluation import recorded_schedules
from tests.device.openocd_board import virtual_board
from tests.device.test_gdb_remote import need

from .test_single_operators import convolution


@pytest.fixture(autouse=True)
def own_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a whole cache: zig would build its C library for the host anew."""
    monkeypatch.setattr("covp.building.tune.records.own_folder", lambda: tmp_path)


@pytest.mark.costly
def test_host_by_its_run_time() -> None:
    graph, platform = convolution(), covp.load_platform("host")
    wanted = Options(trials=4, cost="time", device="host", jobs=2)
    (result,) = tune(graph, platform, options=wanted, records=Records([]))
    assert result.tried == 4 and all(trial.exact for trial in result.trials)
    assert {(t.device, t.instructions, t.cycles) for t in result.trials} == {("host", None, None)}
    assert result.best is not None
    assert result.best.nanoseconds == min(t.nanoseconds or 0 for t in result.trials) > 0
    choose = recorded_schedules(platform, device="host")
    assert str(choose(graph.ops[0])) == result.best.schedule


@pytest.mark.costly
def test_openocd_by_the_cores_cycle_counter() -> None:
    graph = convolution()
    with virtual_board("stm32f746") as board:
        wanted = Options(trials=4, cost="cycles", device=board.name, jobs=4)
        (result,) = tune(graph, board.core.platform, options=wanted, records=Records([]))
    assert result.tried == 4 and all(trial.exact for trial in result.trials)
    assert {(trial.device, trial.instructions) for trial in result.trials} == {("openocd", None)}
    assert result.best is not None
    assert result.best.cycles == min(trial.cycles or 0 for trial in result.trials) > 0
    # the same schedules cost the virtual device as many, but for the calls around them
    (virtual,) = tune(graph, board.core.platform, options=Options(trials=4), records=Records([]))
    estimated = {trial.schedule: trial.cycles for trial in virtual.trials}
    for trial in result.trials:
        expected = estimated[trial.schedule]
        assert expected is not None and trial.cycles is not None
        assert expected <= trial.cycles < expected + 2000
    choose = recorded_schedules(board.core.platform, device=board.name)
    assert str(choose(graph.ops[0])) == result.best.schedule


def test_a_device_that_measures_nothing_is_refused() -> None:
    platform = covp.load_platform(need("mps2-an386"))
    wanted = Options(trials=1, device="gdb:qemu")
    with pytest.raises(DeviceError, match=r"device gdb measures neither .* cannot be tuned for"):
        tune(convolution(), platform, options=wanted, records=Records([]))
