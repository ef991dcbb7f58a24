"""Instructions of a user's that do not do what they should: their candidates never count."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from pathlib import Path

import pytest

import covp
from covp.building.tune.measure import ScheduleBench
from covp.building.tune.records import Records
from covp.building.tune.tuner import Options, tune
from covp.codegen.intrinsics import MAC
from covp.codegen.layer import KernelRequest, schedules
from covp.hardware.intrinsics import DotProduct, register, unregister

from .test_single_operators import convolution

BROKEN = {
    "wrong": "{sum} + {w} * {x} + 1",
    "faulting": "{sum} + {w} * {x} + *(volatile int32_t *)0xe0000000u",
}


@pytest.fixture(params=BROKEN)
def broken(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DotProduct]:
    monkeypatch.setenv("COVP_CACHE_DIR", str(tmp_path / "cache"))
    expression = BROKEN[request.param]
    yield register(DotProduct(request.param, MAC.requires, 1, "int8", expression))
    unregister(request.param)


@pytest.mark.costly
def test_they_do_not_win_and_do_not_end_the_search(broken: DotProduct) -> None:
    graph, platform = convolution(), covp.load_platform("riscv32")
    points = schedules(KernelRequest(graph.ops[0], platform.core, "layer"))
    bench = ScheduleBench(platform, "zig")
    trial = bench.measure(graph.ops[0], next(p for p in points if p.tile == broken.name))
    right = bench.measure(graph.ops[0], points[0])
    bench.close()
    assert trial is not None and not trial.exact
    assert right is not None and right.exact
    records = Records([])
    records.add(trial)
    wanted = Options(trials=10, strategy="random", seed=1)
    (result,) = tune(graph, platform, options=wanted, records=records)
    tiles = [t.schedule.split()[0] for t in result.trials]
    assert result.tried == 11 and tiles.count(broken.name) > 1
    assert {t.exact for t in result.trials if t.schedule.startswith(broken.name)} == {False}
    assert result.best is not None and not result.best.schedule.startswith(broken.name)


@pytest.mark.slow
def test_workers_that_are_not_forked_know_them(
    broken: DotProduct, monkeypatch: pytest.MonkeyPatch
) -> None:
    spawn = multiprocessing.get_context("spawn")
    monkeypatch.setattr("concurrent.futures.process.mp.get_context", lambda: spawn)
    wanted = Options(trials=6, strategy="random", seed=1)
    platform = covp.load_platform("riscv32")
    (result,) = tune(convolution(), platform, options=wanted, records=Records([]))
    tried = [t.schedule.split()[0] for t in result.trials]
    assert result.tried == 6 and broken.name in tried
