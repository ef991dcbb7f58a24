"""Winograd's form of 3x3 convolutions against the reference: odd sizes, padding, extreme values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from covp.chip.platform_file import load_platform
from covp.codegen.kernels.convolution import conv2d  # noqa: F401  (it registers itself)
from covp.codegen.layer import KernelRequest, schedules
from covp.graph.graph import Op
from covp.graph.reference import run_reference
from covp.testing import ConvCase, layers

PLATFORMS = ["riscv32", "cortex-m0plus", "cortex-m4"]


PROBLEMS = layers.convolutions(
    "CONV_2D",
    dtype="int8",
    size=st.tuples(st.integers(4, 9), st.integers(4, 11)),
    channels=st.tuples(st.sampled_from([2, 3, 4, 8]), st.sampled_from([1, 2, 3, 4, 6])),
    kernel=(3, 3),
    stride=(1, 1),
    dilation=(1, 1),
    padding=layers.paddings(3),
    activation="none",
    output_scale=3.0,
    extreme=st.booleans(),
)


@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
@pytest.mark.parametrize("platform", PLATFORMS)
@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(problem=PROBLEMS, data=st.data())
def test_matches_the_reference(run_layer, platform, toolchain, problem, data):
    op, (x,) = problem.op(), problem.inputs()
    found = [p for p in schedules(request_of(op, platform)) if p.tile == "winograd"]
    if not found:
        return  # an odd number of channels where two go at once
    chosen = data.draw(st.sampled_from(found))
    wanted = run_reference(problem.graph(), [x])[0]
    (got,) = run_layer(platform, op, x, toolchain=toolchain, choose=lambda points: chosen)
    assert np.array_equal(got, wanted)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_other_shapes_have_no_such_schedule(platform):
    def offered(**fields) -> bool:
        usual = {"size": (8, 8), "channels": (4, 4), "kernel": (3, 3), "same": True}
        op = ConvCase(**{**usual, **fields}).op()
        return any(p.tile == "winograd" for p in schedules(request_of(op, platform)))

    assert offered()
    assert not offered(stride=(2, 2))
    assert not offered(dilation=(2, 2))


def request_of(op: Op, platform: str) -> KernelRequest:
    """The request for the layer's kernel."""
    return KernelRequest(op, load_platform(platform).core, "layer")
