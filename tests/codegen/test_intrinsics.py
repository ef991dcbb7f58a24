"""Multiply-accumulate instructions from outside: every point of their spaces is bit-exact."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import covp.codegen.kernels  # noqa: F401  (they register themselves)
from covp.chip.platform_file import load_platform
from covp.codegen.intrinsics import MAC, SMLAD
from covp.codegen.layer import KernelRequest, schedules
from covp.errors import UsageError
from covp.graph.reference import run_reference
from covp.hardware import intrinsics
from covp.hardware.intrinsics import DotProduct
from covp.testing import ConvCase, layers

# What a core's own instruction would do, in C; the tile that uses it is what is tested.
DOT4 = DotProduct(
    "dot4_in_c",
    requires=frozenset({"mull"}),
    lanes=4,
    operand="int8",
    expression="dot4({x}, {w}, {sum})",
    definitions="""\
static inline int32_t dot4(uint32_t x, uint32_t w, int32_t sum)
{
    for (int32_t i = 0; i < 32; i += 8)
        sum += (int8_t)(x >> i) * (int8_t)(w >> i);
    return sum;
}
""",
)


@pytest.fixture(autouse=True)
def dot4() -> Iterator[None]:
    intrinsics.register(DOT4)
    yield
    intrinsics.unregister(DOT4.name)


@pytest.mark.costly
@pytest.mark.parametrize("platform", ["riscv32", "cortex-m4"])
@settings(max_examples=15, deadline=None)
@given(layer=layers.convolutions("CONV_2D", dtype="int8", max_channels=8), data=st.data())
def test_every_schedule_of_a_foreign_instruction(run_layer, platform, layer, data):
    op, (x,) = layer.op(), layer.inputs()

    def choose(points):
        own = [point for point in points if point.tile == DOT4.name]
        assert own and points[0] in own, "it goes before what the core has anyway"
        return data.draw(st.sampled_from(own))

    result = run_layer(platform, op, x, choose=choose)[0]
    assert "dot4(" in run_layer.code.source
    assert np.array_equal(result, run_reference(layer.graph(), [x])[0])


def test_cores_without_it_do_not_get_it():
    op = ConvCase(size=(2, 2), channels=(4, 4), bias=True).op()
    core = load_platform("cortex-m0plus").core
    assert not any(s.tile == DOT4.name for s in schedules(KernelRequest(op, core, "layer")))
    assert SMLAD.fits(load_platform("cortex-m7").core) and not SMLAD.fits(core)
    assert MAC.fits(core) and not MAC.fits(load_platform("cortex-m7").core)


def test_wrong_declarations_are_rejected():
    with pytest.raises(UsageError, match="another instruction has that name"):
        intrinsics.register(replace(DOT4, expression="{x} {w} {sum}"))
    with pytest.raises(UsageError, match="2 lanes of int8 are not supported"):
        replace(DOT4, lanes=2)
    with pytest.raises(UsageError, match=r"lacks \{w\}"):
        replace(DOT4, expression="{x} {sum}")
    with pytest.raises(UsageError, match="need `widen`"):
        replace(DOT4, lanes=2, operand="int16")
