"""QUANTIZE and DEQUANTIZE on the cores against their definitions."""

from __future__ import annotations

import sys
from platform import machine

import numpy as np
import pytest

from covp.chip.platform_file import load_platform
from covp.codegen.layer import KernelRequest, emit_layer
from covp.compilers.toolchain import UNDEFINED_BEHAVIOUR_FLAGS
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.reference import run_reference
from covp.runtime.session import Session
from covp.testing.quantizations import affine
from covp.testing.tensors import int8, plain

PLATFORMS = ["riscv32", "cortex-m4", "cortex-m0plus"]
EVERY_BYTE = np.arange(256, dtype=np.uint8).reshape(4, 64)


def quantized(name, x, scale, zero_point):
    return Tensor(name, x.shape, x.dtype, affine(scale, zero_point))


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("scale", [0.5, 0.0371])
def test_quantize(run_layer, platform, dtype, scale):
    info = np.iinfo(dtype)
    single = np.float32(scale)
    # ties, both signs, far outside
    steps = np.array(
        [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0, 1e9, -1e9, 100.4, -100.6, 3.2], np.float32
    )
    x = steps * single
    ratio = (x / single).astype(np.float32)
    stored = np.sign(ratio) * np.floor(np.abs(ratio) + np.float32(0.5)) + 7
    wanted = np.clip(stored, info.min, info.max).astype(dtype)
    op = Op("QUANTIZE", "layer", [plain("x", x.shape)], [quantized("y", wanted, scale, 7)])
    assert np.array_equal(run_layer(platform, op, x)[0], wanted)


@pytest.mark.parametrize("platform", [*PLATFORMS, "cortex-m7"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_dequantize(run_layer, platform, dtype):
    x = EVERY_BYTE.view(dtype)
    wanted = ((x.astype(np.float64) + 9) * float(np.float32(0.0371))).astype(np.float32)
    op = Op("DEQUANTIZE", "layer", [quantized("x", x, 0.0371, -9)], [plain("y", wanted.shape)])
    assert np.array_equal(run_layer(platform, op, x)[0], wanted)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_requantize(run_layer, platform, dtype):
    """A factor of a half: SaturatingRoundingDoublingHighMul rounds ties up."""
    x = EVERY_BYTE.view(dtype)
    halves = (x.astype(np.int64) - 5 + 1) // 2
    wanted = np.clip(halves - 20, -128, 127).astype(np.int8)
    op = Op("QUANTIZE", "layer", [quantized("x", x, 0.1, 5)], [quantized("y", wanted, 0.2, -20)])
    assert np.array_equal(run_layer(platform, op, x)[0], wanted)


@pytest.mark.parametrize("platform", ["riscv32", "cortex-m4", "cortex-m7", "cortex-m0plus", "host"])
def test_what_is_no_number_has_a_result(run_layer, platform):
    """C leaves the conversion of a NaN to an integer undefined; cores differ in it."""
    if platform == "host" and (sys.platform, machine()) != ("linux", "x86_64"):
        pytest.skip("the host device needs Linux on x86-64")
    values = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 0.4, -0.6, -np.nan], np.float32)
    op = Op("QUANTIZE", "layer", [plain("x", (8,))], [int8("y", (8,), 0.5, 3)])
    graph = Graph("layer", [op.input(0)], [op.output], [op])
    wanted = [-128, 127, -128, 127, -128, 4, 2, -128]
    assert run_reference(graph, [values])[0].tolist() == wanted
    if platform != "host":
        assert run_layer(platform, op, values)[0].tolist() == wanted
        return
    code = emit_layer(KernelRequest(op, load_platform("host").core, "layer"))
    with Session("host", device="host") as session:
        module = session.load_c(code.source, flags=UNDEFINED_BEHAVIOUR_FLAGS)
        x, y = session.tensor(values), session.tensor(np.zeros(8, np.int8))
        module["layer"](x, y)
        assert y.numpy().tolist() == wanted
