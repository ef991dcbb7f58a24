"""Scales that come at run time, and products of integers, against onnxruntime to the bit."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

from covp.errors import ModelError
from covp.graph.onnx import read_onnx

RNG = np.random.default_rng(3)
PLATFORM = {0: "riscv32", 1: "mps2-an386"}


def _bytes(*shape, dtype=np.int8):
    """Small enough for cores of the host that saturate sums of pairs."""
    least, most = (0, 127) if dtype == np.uint8 else (-63, 63)
    return RNG.integers(least, most, shape, dtype)


def _holds(model, inputs, on_cores, platform):
    session = onnxruntime.InferenceSession(model.SerializeToString())
    feeds = {f"x{i}": np.asarray(v) for i, v in enumerate(inputs) if v is not None}
    on_cores(model, list(feeds.values()), session.run(None, feeds), [platform], rtol=0)


@pytest.mark.costly
@pytest.mark.parametrize("groups", [1, 2])
def test_convolution(groups, one_node, on_cores):
    scales = RNG.uniform(0.01, 0.03, 4).astype(np.float32)
    inputs = [
        *(_bytes(1, 4, 6, 5), np.float32(0.05), np.int8(3)),
        *(_bytes(4, 4 // groups, 3, 3), scales, np.zeros(4, np.int8)),
        *(np.float32(0.1), np.int8(-5), RNG.integers(-500, 500, 4).astype(np.int32)),
    ]
    model = one_node("QLinearConv", inputs, pads=[1, 0, 1, 2], group=groups, opset=21)
    _holds(model, inputs, on_cores, PLATFORM[groups % 2])


def test_convolution_of_integers(one_node, on_cores):
    inputs = [_bytes(1, 3, 6, 5, dtype=np.uint8), _bytes(4, 3, 3, 3, dtype=np.uint8), np.uint8(7)]
    model = one_node("ConvInteger", inputs, pads=[1, 1, 1, 1], opset=21)
    _holds(model, inputs, on_cores, "riscv32")


@pytest.mark.costly
def test_matrices(one_node, on_cores):
    inputs = [
        *(_bytes(2, 3, 8), np.float32(0.05), np.int8(3)),
        *(_bytes(8, 4), np.float32(0.02), np.int8(0)),
        *(np.float32(0.1), np.int8(-5)),
    ]
    _holds(one_node("QLinearMatMul", inputs, opset=21), inputs, on_cores, "riscv32")
    inputs = [_bytes(5, 8, dtype=np.uint8), _bytes(8, 4), np.uint8(9), np.int8(0)]
    _holds(one_node("MatMulInteger", inputs, opset=21), inputs, on_cores, "mps2-an386")


@pytest.mark.parametrize("axis", [0, 2])
def test_values_along_an_axis(axis, one_node, on_cores):
    x = (RNG.standard_normal((3, 4, 5)) * 40).astype(np.float32)
    scale = RNG.uniform(0.2, 0.5, x.shape[axis]).astype(np.float32)
    point = RNG.integers(100, 150, x.shape[axis]).astype(np.uint8)
    inputs = [x, scale, point]
    _holds(one_node("QuantizeLinear", inputs, axis=axis, opset=21), inputs, on_cores, "riscv32")
    inputs = [_bytes(3, 4, 5, dtype=np.uint8), scale, point]
    _holds(one_node("DequantizeLinear", inputs, axis=axis, opset=21), inputs, on_cores, "riscv32")


@pytest.mark.parametrize("kind", ["QuantizeLinear", "DequantizeLinear"])
def test_an_axis_that_is_not_there(kind, one_node):
    x = np.ones((2, 4), np.float32 if kind == "QuantizeLinear" else np.uint8)
    inputs = [x, np.ones(4, np.float32), np.zeros(4, np.uint8)]
    with pytest.raises(ModelError, match=r"there is no axis 3 in \(2, 4\)"):
        read_onnx(one_node(kind, inputs, axis=3, opset=21))


def test_dynamic_quantization(one_node, on_cores):
    x = (RNG.standard_normal((3, 7)) * 2).astype(np.float32)
    _holds(one_node("DynamicQuantizeLinear", [x], 3, opset=21), [x], on_cores, "mps2-an386")
