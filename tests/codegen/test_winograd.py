"""Winograd's form of 3x3 convolutions against the reference: odd sizes, padding, extreme values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from covp.codegen.kernels import conv2d  # noqa: F401  (it registers itself)
from covp.codegen.layer import KernelRequest, schedules
from covp.graph.attributes import Conv2D, Padding
from covp.graph.graph import Op, Quantization, Tensor
from covp.graph.ops import definition
from covp.platform_file import load_platform

PLATFORMS = ["riscv32", "cortex-m0plus", "stm32l4r5"]


def tensor(name: str, shape: tuple[int, ...], scale: float, zero_point: int, data=None) -> Tensor:
    """An int8 tensor with one scale."""
    quantization = Quantization(
        np.array([scale], np.float32), np.array([zero_point], dtype=np.int32)
    )
    return Tensor(name, shape, np.dtype(np.int8), quantization, data)


def convolution(weights: np.ndarray, shape: tuple[int, ...], pads: Padding, zero_point: int) -> Op:
    """A layer whose outputs keep the sign and size of the sums."""
    batch, height, width, _ = shape
    out = (
        batch,
        height + pads.top + pads.bottom - 2,
        width + pads.left + pads.right - 2,
        len(weights),
    )
    bias = np.arange(-500, -500 + 77 * len(weights), 77, dtype=np.int32)
    return Op(
        "CONV_2D",
        "layer",
        [
            tensor("x", shape, 0.02, zero_point),
            tensor("w", weights.shape, 0.5, 0, weights),
            Tensor("b", (len(weights),), np.dtype(np.int32), None, bias),
        ],
        [tensor("y", out, 0.01 * 2 * np.sqrt(weights[0].size) * 40, -3)],
        Conv2D((1, 1), pads, (1, 1), "none"),
    )


@st.composite
def problems(draw: st.DrawFn) -> tuple[Op, np.ndarray]:
    """A layer and its input."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    pads = Padding(*(draw(st.integers(0, 2)) for _ in range(4)))
    shape = (
        draw(st.sampled_from([1, 1, 2])),
        draw(st.integers(4, 9)),
        draw(st.integers(4, 11)),
        draw(st.sampled_from([2, 3, 4, 8])),
    )
    filters = (draw(st.sampled_from([1, 2, 3, 4, 6])), 3, 3, shape[3])
    if draw(st.booleans()):
        weights, x = rng.choice([-127, 127], filters), rng.choice([-128, 127], shape)
    else:
        weights, x = rng.integers(-127, 128, filters), rng.integers(-128, 128, shape)
    op = convolution(weights.astype(np.int8), shape, pads, draw(st.integers(-128, 127)))
    return op, x.astype(np.int8)


@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
@pytest.mark.parametrize("platform", PLATFORMS)
@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(problem=problems(), data=st.data())
def test_bits_are_the_references(run_layer, platform, toolchain, problem, data):
    op, x = problem
    found = [p for p in schedules(request_of(op, platform)) if p.tile == "winograd"]
    if not found:
        return  # an odd number of channels where two go at once
    chosen = data.draw(st.sampled_from(found))
    wanted = definition(op.kind).reference(op, [x, op.input(1).data, op.input(2).data])[0]
    (got,) = run_layer(platform, op, x, toolchain=toolchain, choose=lambda points: chosen)
    assert np.array_equal(got, wanted)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_other_shapes_have_no_such_schedule(platform):
    def offered(**attributes) -> bool:
        pads = Padding(1, 1, 1, 1)
        op = convolution(np.ones((4, 3, 3, 4), np.int8), (1, 8, 8, 4), pads, 0)
        if attributes:
            settings = {"stride": (1, 1), "padding": pads, "dilation": (1, 1), "activation": "none"}
            op.attributes = Conv2D(**{**settings, **attributes})
        return any(p.tile == "winograd" for p in schedules(request_of(op, platform)))

    assert offered()
    assert not offered(stride=(2, 2))
    assert not offered(dilation=(2, 2))


def request_of(op: Op, platform: str) -> KernelRequest:
    """What the kernel is asked for."""
    return KernelRequest(op, load_platform(platform).core, "layer")
