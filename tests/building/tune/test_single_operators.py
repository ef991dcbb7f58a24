"""Single operators written by hand: what the tuner finds runs, with DSP instructions or not."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

import covp
from covp.building.tune.records import Records
from covp.building.tune.tuner import Options, tune
from covp.codegen.layer import KernelRequest, schedules
from covp.codegen.schedule import Schedule
from covp.errors import DeviceFault
from covp.graph.graph import Graph
from covp.testing import ConvCase

BOARD = covp.load_platform("cortex-m7")
WITHOUT_DSP = msgspec.structs.replace(BOARD, core_name="cortex-m7f-nodsp")


def convolution() -> Graph:
    """5x5 with ReLU, SAME padding, 6x6x4 to 6x6x8."""
    return ConvCase(
        size=(6, 6),
        channels=(4, 8),
        kernel=(5, 5),
        same=True,
        bias=True,
        activation="relu",
        zero_points=(-3, -128),
    ).graph()


@pytest.mark.costly
@pytest.mark.parametrize("platform", [BOARD, WITHOUT_DSP], ids=["dsp", "nodsp"])
def test_tuned(platform: covp.Platform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COVP_CACHE_DIR", str(tmp_path / "cache"))
    graph = convolution()
    (result,) = tune(graph, platform, options=Options(trials=6), records=Records([]))
    assert result.tried == 6 and all(trial.exact for trial in result.trials)
    assert result.best is not None
    best = result.best.cycles
    assert best == min(t.cycles for t in result.trials if t.cycles is not None)
    found = Schedule.parse(result.best.schedule)
    program = covp.compile(graph, platform, schedules=lambda op: found)
    assert program.layers[0].schedule == str(found)
    x = np.random.default_rng(1).integers(-128, 128, (1, 6, 6, 4)).astype(np.int8)
    with covp.Session(platform) as session:
        output = session.load(program).run(x)
    np.testing.assert_array_equal(output, program.reference([x])[0])


def test_only_the_core_with_dsp_has_its_schedules() -> None:
    (op,) = convolution().ops
    tiles = {
        platform.core.name: {s.tile for s in schedules(KernelRequest(op, platform.core, "f"))}
        for platform in (BOARD, WITHOUT_DSP)
    }
    assert "smlad" in tiles["cortex-m7f"]
    assert "smlad" not in tiles["cortex-m7f-nodsp"] and "packed" in tiles["cortex-m7f-nodsp"]


def test_without_dsp_its_instructions_are_undefined() -> None:
    """So what ran there used none, whatever the compiler made of the C."""
    source = (
        "#include <stdint.h>\n"
        'int32_t f(int32_t a) { __asm__ volatile(".inst.w 0xfb20f000" : "+r"(a)); return a; }\n'
    )  # smuad r0, r0, r0: Arm DDI0403E, A7.7
    with covp.Session(BOARD) as session:
        session.load_c(source)["f"](1)
        session.sync()
    with covp.Session(WITHOUT_DSP) as session, pytest.raises(DeviceFault, match="does not have it"):
        session.load_c(source)["f"](1)
        session.sync()
