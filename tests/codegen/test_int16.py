"""int16 kernels on emulated cores against TFLM's definition in Python's integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from covp.testing import ConvCase, layers

from .test_convolution import _sums
from .tflm import quantized_multiplier, scaled

PLATFORMS = ["stm32l4r5", "riscv32", "cortex-m0plus"]
bounded = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def convolutions(*kinds: str, **fields: Any) -> st.SearchStrategy[ConvCase]:
    chosen = {
        "dtype": "int16",
        "narrow_bias": st.booleans(),
        "extreme": st.booleans(),
        "zeros": st.sampled_from([0.0, 0.5]),
    }
    return layers.convolutions(*kinds, **{**chosen, **fields})


def reduced(value: int, multiplier: int, shift: int) -> int:
    """MultiplyByQuantizedMultiplier of an int64."""
    upper = (multiplier + (1 << 15)) >> 16 if multiplier < 0x7FFF0000 else 0x7FFF
    return (value * upper + (1 << (14 - shift))) >> (15 - shift)


def expected(op: Any, x: Any) -> Any:
    out = op.output
    bias = op.inputs[2]
    wide = bias is None or bias.dtype == np.int64
    sums = _sums(op, x.astype(np.int64))
    result = np.empty(out.shape, np.int16)
    scales = np.broadcast_to(op.input(1).quantization.scale, out.shape[-1:])
    single = op.kind == "FULLY_CONNECTED" and op.input(1).quantization.scale.size == 1
    factors = []
    for scale in scales:
        product = (
            float(np.float32(op.input(0).scale) * scale)
            if single
            else op.input(0).scale * float(scale)
        )
        factors.append(quantized_multiplier(product / out.scale))
    low = {"none": -32768}.get(op.attributes.activation, 0)
    high = 32767
    if op.attributes.activation == "relu6":
        high = min(high, round(float(np.float32(6) / np.float32(out.scale))))
    for index in np.ndindex(*out.shape):
        total, factor = int(sums[index]), factors[index[-1]]
        if not wide:
            total = (total + 2**31) % 2**32 - 2**31
        value = reduced(total, *factor) if wide else scaled(total, *factor)
        result[index] = min(max(value, low), high)
    return result


@pytest.mark.parametrize("platform", PLATFORMS)
@bounded
@given(layer=convolutions())
def test_convolutions(run_layer: Any, platform: str, layer: ConvCase) -> None:
    op, (x,) = layer.op(), layer.inputs()
    assert np.array_equal(run_layer(platform, op, x)[0], expected(op, x))


@pytest.mark.parametrize("platform", PLATFORMS)
@bounded
@given(layer=convolutions(), data=st.data())
def test_every_schedule(run_layer: Any, platform: str, layer: ConvCase, data: Any) -> None:
    op, (x,) = layer.op(), layer.inputs()

    def choose(points: Any) -> Any:
        return data.draw(st.sampled_from(points))

    assert np.array_equal(run_layer(platform, op, x, choose=choose)[0], expected(op, x))


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("depth", [600, 1501])
def test_sums_that_leave_32_bits(run_layer: Any, platform: str, depth: int) -> None:
    """1,501 weights of 127 times -32768 are below -2**32: no proof, and nothing wraps."""
    layer = ConvCase("FULLY_CONNECTED", "int16", 2, channels=(depth, 5), bias=True, largest=True)
    op, (x,) = layer.op(), layer.inputs()
    wanted = expected(op, x)
    assert len(np.unique(wanted)) > 2
    for pick in (0, -1):
        found = run_layer(platform, op, x, choose=lambda points, pick=pick: points[pick])[0]
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_depthwise_sums_that_leave_32_bits(run_layer: Any, platform: str) -> None:
    layer = ConvCase(
        "DEPTHWISE_CONV_2D",
        "int16",
        size=(24, 24),
        channels=(2, 4),
        kernel=(23, 23),
        same=True,
        bias=True,
        largest=True,
        activation="relu6",
    )
    op, (x,) = layer.op(), layer.inputs()
    assert np.array_equal(run_layer(platform, op, x)[0], expected(op, x))
    assert run_layer.code.schedule == "wide"
