"""examples/two_cores.py: every frame's result is the reference's, and costs what a session says."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

import covp
from covp.graph.equality import differences

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))
import codai22
import two_cores

PLATFORMS = ("dual-m4-m0plus", "dual-riscv32")
Example = Callable[[str, int], tuple[two_cores.Done, NDArray[Any]]]


def inputs_of(done: two_cores.Done, example: Example) -> list[NDArray[Any]]:
    """What the network was given, frame by frame."""
    shape = done.program.inputs[0].shape
    if example is two_cores.wake_word:
        return list(done.variables["rows"].reshape(-1, *shape))
    movement = codai22.samples(64 * (done.frames + 1))[0]
    return [movement[None, 64 * n : 64 * n + 128] for n in range(done.frames)]


@pytest.mark.costly
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("example", [two_cores.gesture, two_cores.wake_word])
def test_every_frame_has_the_references_result(platform: str, example: Example) -> None:
    frames = 3 if example is two_cores.gesture else 6
    done, expected = example(platform, frames)
    assert differences(done.outputs, expected).size == 0
    assert done.variables["dropped"] == 0
    classes = done.outputs.reshape(frames, -1).argmax(axis=1)
    assert np.array_equal(done.variables["classes"], classes)
    assert [core.status for core in done.run.cores] == [frames, 0]
    assert example(platform, frames)[0].run == done.run, "not repeatable"
    # each layer costs what it costs in a session, where the network is alone; RISC-V's linker saves
    # an instruction here and there that depends on addresses
    relaxed = 1e-6 if platform == "dual-riscv32" else 0
    with covp.Session(done.program.platform) as session:
        module = session.load(done.program)
        profiles = []
        for position, x in enumerate(inputs_of(done, example)):
            assert np.array_equal(module.run(x).ravel(), done.outputs[position].ravel())
            profiles.append(module.profile())
    for number, layer in enumerate(done.run["main"].layers):
        alone = sum(profile.layers[number].instructions or 0 for profile in profiles)
        assert layer.instructions == pytest.approx(alone, rel=relaxed, abs=0), layer.layer.name
        cycles = sum(profile.layers[number].cycles or 0 for profile in profiles)
        assert layer.cycles == pytest.approx(cycles, rel=0.01)


@pytest.mark.costly
def test_gestures_are_onnxruntimes() -> None:
    done, _ = two_cores.gesture("dual-m4-m0plus", 2)
    session = onnxruntime.InferenceSession(codai22.build_onnx().SerializeToString())
    for x, y in zip(inputs_of(done, two_cores.gesture), done.outputs, strict=True):
        assert np.abs(session.run(None, {"x": x})[0] - y).max() < 1e-6


@pytest.mark.costly
def test_frames_that_come_too_fast_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are not are right: a slot is not filled while it is classified."""
    slow = two_cores.Stream
    monkeypatch.setattr(two_cores, "Stream", lambda *a, **k: replace(slow(*a, **k), rate=2500))
    done, expected = two_cores.gesture("dual-riscv32", 6)
    dropped = int(done.variables["dropped"][0])
    got = done.outputs[: 6 - dropped]
    assert 0 < dropped < 4 and done.run["main"].status == 6 - dropped
    assert done.run["sensor"].status == dropped
    assert done.run["main"].asleep < 0.2 * done.run["main"].cycles
    left = iter(expected)
    for output in got:
        assert any(differences(output, one).size == 0 for one in left), "of no later frame"
