"""Two old defects of the code generator, put back: the undefined-behaviour checks find them.

The models gave wrong numbers once (`test_shared_cases.py`): a requantization that shifts by 32, and
sums with a bias near the ends of int32, added in signed arithmetic.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from covp.codegen.generate import generate
from covp.codegen.kernels.convolution.packed_channels import PackedWeightsCode
from covp.codegen.kernels.convolution.packed_pixels import PackedGemm
from covp.codegen.kernels.requantize import requantize_proof
from covp.errors import DeviceFault
from covp.graph.random_inputs import random_inputs
from covp.graph.tflite import load_tflite
from covp.runtime.session import Session

from .test_shared_cases import CASES, WANTED

CORES = [("cortex-m4", "zig"), ("riscv32", "zig"), ("riscv32", "gcc"), ("cortex-m0plus", "zig")]


def run(name: str, platform: str, toolchain: str) -> tuple[list[int] | DeviceFault, dict[str, str]]:
    """The outputs, or the finding, and the generated sources."""
    path = CASES / f"{name}.tflite"
    if not path.is_file():
        pytest.skip(f"{path} is missing")
    graph = load_tflite(path)
    beside = CASES / f"{name}.npy"
    inputs = [np.load(beside)] if beside.is_file() else random_inputs(graph.inputs, 1)
    program = generate(graph, platform)
    with Session(platform, toolchain=toolchain, ubsan=True) as session:
        module = session.load(program)
        try:
            return module.run(*inputs).ravel().tolist(), dict(program.sources)
        except DeviceFault as fault:
            return fault, dict(program.sources)


def signed_sums(emit: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """A kernel's generator without the casts that make its sums unsigned."""

    def emit_as_before(*arguments: Any) -> list[str]:
        lines = emit(*arguments)
        high = r"\(int32_t\)\(\(uint32_t\)(h\d+) \+ \(uint32_t\)(q\[\d+\])\)"
        low = r"\(int32_t\)\((t\d+ - \(\(uint32_t\)h\d+ << 16\)) \+ \(uint32_t\)(q\[\d+\])\)"
        before = [re.sub(high, r"\1 + \2", line) for line in lines]
        before = [re.sub(low, r"(int32_t)(\1) + \2", line) for line in before]
        assert before != lines
        return before

    return emit_as_before


def check_finding(name: str, found: object, sources: dict[str, str], detail: str, c: str) -> None:
    """Of that kind, at a line of the layer's C that holds ``c``, called by the layer."""
    assert isinstance(found, DeviceFault), (name, found)
    assert found.kind == "undefined behaviour" and re.search(detail, found.detail), str(found)
    file, _, line = str(found.source).partition(":")
    assert c in sources[file].splitlines()[int(line) - 1], str(found)
    assert file.startswith(f"{name}_00_")
    assert found.call_stack[-1].startswith(f"{name}_infer ")
    assert found.call_stack[-2].startswith(f"{name}_00_")
    assert "in layer " in found.detail


@pytest.mark.costly
@pytest.mark.parametrize("platform, toolchain", CORES)
def test_a_shift_by_32(platform: str, toolchain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["requantize_shift_fc", "requantize_shift_mul"]
    for name in names:
        assert run(name, platform, toolchain)[0] == WANTED[name]
    monkeypatch.setattr(requantize_proof, "_MAX_SHIFT", 63)
    for name in names:
        found, sources = run(name, platform, toolchain)
        if platform == "cortex-m0plus":  # no long multiplication, and no such form
            assert found == WANTED[name]
        else:
            check_finding(name, found, sources, "^shift by 32: ", " >> 32;")


@pytest.mark.parametrize("platform, toolchain", CORES[1:])
def test_a_bias_at_the_end_of_int32(
    platform: str, toolchain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["bias_overflow_conv", "bias_overflow_fc"]
    for name in names:
        assert run(name, platform, toolchain)[0] == WANTED[name]
    for kernel in (PackedGemm, PackedWeightsCode):
        monkeypatch.setattr(kernel, "_block", signed_sums(kernel._block))
    for name in names:
        found, sources = run(name, platform, toolchain)
        detail = r"^signed integer overflow: -?\d+ \+ -?\d+ does not fit "
        check_finding(name, found, sources, detail, " + q[")
