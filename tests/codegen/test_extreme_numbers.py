"""Scales, shifts and biases at the ends of what a model may have, on the cores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from covp.chip.platform_file import load_platform
from covp.codegen.layer import KernelRequest, schedules
from covp.codegen.schedule import Schedule
from covp.errors import ModelError
from covp.graph.attributes import (
    Conv2D,
    DepthwiseConv2D,
    Elementwise,
    FullyConnected,
    Mean,
    Padding,
    Softmax,
)
from covp.graph.graph import Op
from covp.testing import tensors

from .tflm import quantized_multiplier, scaled

CORES = [("riscv32", "zig"), ("cortex-m0plus", "zig"), ("cortex-m4", "zig")]
CORES += [(platform, "gcc") for platform, _ in CORES]
on_cores = pytest.mark.parametrize(("platform", "toolchain"), CORES)
INPUT_SCALE, WEIGHT_SCALE = 0.001, 0.0001


def weighted(kind: str, weights: list[int], bias: int, out: tuple[float, int]) -> Op:
    """Two channels (or taps) times one filter; CONV_2D for two pixels, which one kernel pairs.

    ``out``: scale and zero point.
    """
    values = np.array(weights, np.int8)
    shapes = {"CONV_2D": (1, 1, 1, 2), "DEPTHWISE_CONV_2D": (1, 1, 2, 1), "FULLY_CONNECTED": (1, 2)}
    attributes: Any = {
        "CONV_2D": Conv2D((1, 1), Padding()),
        "DEPTHWISE_CONV_2D": DepthwiseConv2D((1, 1), Padding(), (1, 1), 1),
        "FULLY_CONNECTED": FullyConnected(),
    }[kind]
    shape, pixels = shapes[kind], 2 if kind == "CONV_2D" else 1
    x = tensors.int8("x", (1, pixels, *shape[2:]) if pixels > 1 else shape, INPUT_SCALE, -128)
    w = tensors.int8("w", shape, WEIGHT_SCALE, 0, values.reshape(shape))
    b = tensors.plain("b", (1,), np.int32, np.array([bias], np.int32))
    y = tensors.int8("y", (1, 1) if len(shape) == 2 else (1, pixels, 1, 1), *out)
    return Op(kind, "layer", [x, w, b], [y], attributes)


def expected(op: Op, x: np.ndarray, multiplier: int, shift: int) -> np.ndarray:
    pixel = x.ravel()[:2].astype(np.int64) - op.input(0).zero_point
    weights, bias = op.input(1).data, op.input(2).data
    assert weights is not None
    assert bias is not None
    total = int((pixel * weights.ravel()).sum())
    acc = (total + int(bias[0]) + 2**31) % 2**32 - 2**31
    stored = scaled(acc, multiplier, shift) + op.output.zero_point
    return np.full(op.output.shape, min(max(stored, -128), 127), np.int8)


def every_schedule(op: Op, platform: str) -> list[Schedule | None]:
    found = schedules(KernelRequest(op, load_platform(platform).core, "layer"))
    kinds = {schedule.tile: schedule for schedule in reversed(found)}
    return list(kinds.values()) or [None]


@on_cores
@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"])
def test_outputs_so_coarse_that_every_sum_is_nothing(run_layer, platform, toolchain, kind) -> None:
    """The shift of a form with one rounding would be 32 and more: undefined in C."""
    for exponent in (19, 22, 25, 29):
        out_scale = INPUT_SCALE * WEIGHT_SCALE * 2.0**exponent
        op = weighted(kind, [127, -128], 77, (out_scale, 3))
        factor = np.float32(INPUT_SCALE) * np.float64(np.float32(WEIGHT_SCALE))
        multiplier, shift = quantized_multiplier(float(factor / np.float32(out_scale)))
        x = np.resize(np.array([127, -128], np.int8), op.input(0).shape)
        wanted = expected(op, x, multiplier, shift)
        for schedule in every_schedule(op, platform):
            choose = (lambda found, s=schedule: s) if schedule else None
            got = run_layer(platform, op, x, toolchain=toolchain, choose=choose)[0]
            assert np.array_equal(got, wanted), (exponent, str(schedule))


@on_cores
def test_products_and_means_so_coarse_that_they_are_nothing(run_layer, platform, toolchain) -> None:
    x = np.arange(-128, 128, 16, dtype=np.int8).reshape(1, 16)
    for exponent in (16, 19, 22, 25, 29):
        scale = 0.001 * 2.0**exponent
        a, b = (tensors.int8(name, x.shape, 0.001) for name in "ab")
        product = Op("MUL", "layer", [a, b], [tensors.int8("y", x.shape, scale / 1000)],
                     Elementwise())  # fmt: skip
        got = run_layer(platform, product, x, x, toolchain=toolchain)[0]
        factor = float(np.float64(np.float32(0.001)) ** 2 / np.float32(scale / 1000))
        wanted = [scaled(int(v) * int(v), *quantized_multiplier(factor)) for v in x.ravel()]
        assert got.ravel().tolist() == [min(v, 127) for v in wanted], exponent
        mean = Op("MEAN", "layer", [tensors.int8("x", (1, 16), 0.001)],
                  [tensors.int8("y", (1,), scale)], Mean((1,), False))  # fmt: skip
        got = run_layer(platform, mean, x, toolchain=toolchain)[0]
        assert got.tolist() == [0]  # the real mean is 8 steps of the input


@on_cores
@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"])
@pytest.mark.parametrize("bias", [2**31 - 1, 2**31 - 6401, -(2**31), -(2**31) + 40_000])
def test_biases_at_the_limits_of_int32(run_layer, platform, toolchain, kind, bias) -> None:
    """With the zero point folded in they leave int32; TFLM's own sums need not."""
    out_scale = INPUT_SCALE * WEIGHT_SCALE * 2.0**25
    op = weighted(kind, [19, -19], bias, (out_scale, -3))
    factor = np.float64(np.float32(INPUT_SCALE)) * np.float64(np.float32(WEIGHT_SCALE))
    multiplier, shift = quantized_multiplier(float(factor / np.float32(out_scale)))
    for pixel in ([-128, -128], [-128, 127], [127, -128]):
        x = np.resize(np.array(pixel, np.int8), op.input(0).shape)
        wanted = expected(op, x, multiplier, shift)
        for schedule in every_schedule(op, platform):
            choose = (lambda found, s=schedule: s) if schedule else None
            got = run_layer(platform, op, x, toolchain=toolchain, choose=choose)[0]
            assert np.array_equal(got, wanted), (pixel, str(schedule))


def test_the_packed_kernels_are_among_those() -> None:
    """The test above means something: both packed forms take its layers."""
    tiles = set()
    for kind in ("CONV_2D", "FULLY_CONNECTED"):
        op = weighted(kind, [19, -19], 2**31 - 1, (0.1, 0))
        tiles |= {schedule.tile for schedule in every_schedule(op, "riscv32") if schedule}
    assert {"packed", "packed_weights", "packed_ahead", "mac"} <= tiles


def test_a_softmax_whose_sum_would_overflow_is_rejected(run_layer) -> None:
    """4096 equal values: TFLM's sum leaves int32, and its normalization would not end."""

    def layer(depth: int) -> Op:
        x, y = tensors.int8("x", (1, depth), 0.1), tensors.int8("y", (1, depth), 1 / 256, -128)
        return Op("SOFTMAX", "layer", [x], [y], Softmax(1.0))

    for platform, depth in (("riscv32", 511), ("riscv32", 512), ("cortex-m0plus", 4095)):
        flat = np.full((1, depth), 5, np.int8)
        wanted = -128 + (depth < 512)  # 256 / 511 of a step
        assert (run_layer(platform, layer(depth), flat)[0] == wanted).all()
        flat[0, 7] = 127
        assert run_layer(platform, layer(depth), flat)[0][0, 7] > 120
    for depth in (4096, 8192):
        with pytest.raises(ModelError, match=rf"over {depth} values, at most 4095 are supported"):
            run_layer("riscv32", layer(depth), np.full((1, depth), 5, np.int8))
