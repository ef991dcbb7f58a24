"""Winograd's form of 3x3 convolutions against the reference: odd sizes, padding, extreme values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from covp.chip.platform_file import load_platform
from covp.codegen.kernels.convolution import conv2d  # noqa: F401  (it registers itself)
from covp.codegen.layer import KernelRequest, schedules
from covp.codegen.schedule import Schedule
from covp.graph.attributes import Conv2D, Padding
from covp.graph.graph import Op
from covp.graph.ops import definition
from covp.graph.reference import run_reference
from covp.testing import ConvCase, layers
from covp.testing.tensors import int8

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
    offered = [p for p in schedules(request_of(op, platform)) if p.tile.startswith("winograd")]
    if not offered:
        return  # an odd number of channels where two go at once
    tile = data.draw(st.sampled_from(sorted({p.tile for p in offered})))
    chosen = data.draw(st.sampled_from([p for p in offered if p.tile == tile]))
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


@pytest.mark.costly
@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
@pytest.mark.parametrize("platform", ["riscv32", "cortex-m0plus"])
@pytest.mark.parametrize("value", [-128, 127])
def test_the_largest_sums_of_four_tiles_in_three_words(run_layer, platform, toolchain, value):
    """Of weights up to 9 * 127 and inputs from -512 on 14 channels fit 24 bits, 15 do not."""

    def layer(channels: int) -> Op:
        filters = np.full((3, 3, 3, channels), 127, np.int8)
        filters[1], filters[2, ..., ::2] = -127, 126
        return Op(
            "CONV_2D",
            "layer",
            [int8("x", (1, 6, 12, channels), 0.02), int8("w", filters.shape, 0.5, data=filters),
             None],
            [int8("y", (1, 4, 10, 3), 100.0)],
            Conv2D((1, 1), Padding(), activation="none"),
        )  # fmt: skip

    def fours(op: Op) -> list[Schedule]:
        return [p for p in schedules(request_of(op, platform)) if p.tile == "winograd_fours"]

    assert fours(layer(14)) and not fours(layer(15))
    op = layer(14)
    same = np.full(op.input(0).shape, value, np.int8)
    mixed = same.copy()
    mixed[:, ::2, ::3] = -1 - value
    for x in (same, mixed):
        wanted = definition(op.kind).reference(op, [x, op.input(1).data, None])[0]
        for schedule in fours(op):
            (got,) = run_layer(platform, op, x, toolchain=toolchain, choose=lambda _, s=schedule: s)
            assert np.array_equal(got, wanted), str(schedule)


def request_of(op: Op, platform: str) -> KernelRequest:
    """The request for the layer's kernel."""
    return KernelRequest(op, load_platform(platform).core, "layer")
