"""The model files that once gave wrong numbers, where the folder with them is there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from covp.chip.platform_file import platforms_dir
from covp.codegen.generate import generate
from covp.graph.random_inputs import random_inputs
from covp.graph.reference import run_reference
from covp.graph.tflite import load_tflite
from covp.runtime.session import Session

ROOT = Path(__file__).parents[3]
CASES = Path(os.environ.get("COVP_CASES_DIR", ROOT.parent / "shared" / "cases"))
# the output for the input beside the file, or for any input
WANTED = {
    "requantize_shift_fc": [0],
    "requantize_shift_mul": [0] * 16,
    "bias_overflow_conv": [127, 127],
    "bias_overflow_fc": [-128],
}


USUAL = ("cortex-m0plus", "cortex-m4", "cortex-m7", "riscv32")
EVERYWHERE = [
    pytest.param(
        platform,
        toolchain,
        marks=[] if platform in USUAL and toolchain == "zig" else [pytest.mark.slow],
    )
    for platform in sorted(path.stem for path in platforms_dir().glob("*.yaml"))
    for toolchain in ("zig", "gcc")
    if (platform, toolchain) != ("host", "gcc")  # there is no such toolchain
]


@pytest.mark.parametrize(("platform", "toolchain"), EVERYWHERE)
def test_numbers_at_their_limits(platform: str, toolchain: str) -> None:
    if not CASES.is_dir():
        pytest.skip(f"{CASES} is missing")
    for name, wanted in WANTED.items():
        graph = load_tflite(CASES / f"{name}.tflite")
        beside = CASES / f"{name}.npy"
        inputs = [np.load(beside)] if beside.is_file() else random_inputs(graph.inputs, 1)
        assert run_reference(graph, inputs)[0].ravel().tolist() == wanted
        program = generate(graph, platform)
        device = "host" if platform == "host" else "virtual"
        with Session(platform, toolchain=toolchain, device=device) as session:
            assert session.load(program).run(*inputs).ravel().tolist() == wanted, name


@pytest.mark.costly
def test_tflms_person_detection() -> None:
    """Its biases state quantized dimension 3; LiteRT of today rejects the file for that."""
    path = CASES / "person_detect.tflite"
    if not path.is_file():
        pytest.skip(f"{path} is missing")
    graph = load_tflite(path)
    inputs = random_inputs(graph.inputs, 1)
    with Session("cortex-m4") as session:
        got = session.load(generate(graph, "cortex-m4")).run(*inputs)
    assert np.array_equal(got, run_reference(graph, inputs)[0])


@pytest.mark.parametrize("platform", ["riscv32", "cortex-m4"])
@pytest.mark.parametrize("name", ["lstm2", "micro_kws_m_quantized"])
def test_networks_of_others(name: str, platform: str, litert: Any) -> None:
    """An LSTM written out as operators, in float as LiteRT, and an int8 keyword spotter.

    tests/graph/test_models.py compares the latter with LiteRT, whose FULLY_CONNECTED rounds
    otherwise.
    """
    path = CASES / f"{name}.tflite"
    if not path.is_file():
        pytest.skip(f"{path} is missing")
    graph = load_tflite(path)
    inputs = random_inputs(graph.inputs, 3)
    with Session(platform) as session:
        found = session.load(generate(graph, platform)).run(*inputs)
    several = found if isinstance(found, list) else [found]
    is_float = graph.outputs[0].dtype == np.float32
    wanted = litert(path.read_bytes(), inputs) if is_float else run_reference(graph, inputs)
    for ours, theirs in zip(several, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5 if is_float else 0)
