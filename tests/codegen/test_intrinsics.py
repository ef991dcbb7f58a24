"""Multiply-accumulate instructions from outside: every point of their spaces has the same bits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import covp.codegen.kernels  # noqa: F401  (they register themselves)
from covp.codegen import intrinsics
from covp.codegen.intrinsics import MAC, SMLAD, DotProduct
from covp.codegen.layer import KernelRequest, schedules
from covp.errors import UsageError
from covp.graph.attributes import Conv2D, Padding
from covp.graph.graph import Op, Quantization, Tensor
from covp.graph.ops import definition
from covp.platform_file import load_platform

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


@st.composite
def convolutions(draw):
    size, channels = draw(st.sampled_from([(1, 4), (1, 7), (3, 1), (3, 4), (3, 5), (2, 8)]))
    stride = draw(st.sampled_from([1, 2]))
    pad = draw(st.integers(0, size - 1))
    height, width, outs = (draw(st.integers(size, 6)), draw(st.integers(size, 6)),
                           draw(st.integers(1, 6)))  # fmt: skip
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    weights = rng.integers(-128, 128, (outs, size, size, channels)).astype(np.int8)
    bias = rng.integers(-(10**4), 10**4, outs).astype(np.int32)

    def tensor(name, shape, dtype=np.int8, scale=0.05, zero=0, data=None):
        scales = np.array([scale], np.float32)
        return Tensor(
            name, shape, np.dtype(dtype), Quantization(scales, np.array([zero], np.int32)), data
        )

    out = tuple((n + 2 * pad - size) // stride + 1 for n in (height, width))
    x = tensor("x", (1, height, width, channels), zero=draw(st.integers(-128, 127)))
    w = tensor("w", weights.shape, scale=0.01, data=weights)
    b = tensor("b", bias.shape, np.int32, 0.05 * 0.01, data=bias)
    y = tensor("y", (1, *out, outs), scale=0.2, zero=draw(st.integers(-128, 127)))
    attributes = Conv2D((stride, stride), Padding(pad, pad, pad, pad))
    op = Op("CONV_2D", "layer", [x, w, b], [y], attributes)
    return op, rng.integers(-128, 128, x.shape).astype(np.int8)


@pytest.mark.parametrize("platform", ["riscv32", "stm32l4r5"])
@settings(max_examples=15, deadline=None)
@given(layer=convolutions(), data=st.data())
def test_every_schedule_of_a_foreign_instruction(run_layer, platform, layer, data):
    op, x = layer

    def choose(points):
        own = [point for point in points if point.tile == DOT4.name]
        assert own and points[0] in own, "it goes before what the core has anyway"
        return data.draw(st.sampled_from(own))

    result = run_layer(platform, op, x, choose=choose)[0]
    assert "dot4(" in run_layer.code.source
    weights, bias = op.input(1).data, op.input(2).data
    assert np.array_equal(result, definition("CONV_2D").reference(op, [x, weights, bias])[0])


def test_cores_without_it_do_not_get_it():
    op = _one_layer()
    core = load_platform("cortex-m0plus").core
    assert not any(s.tile == DOT4.name for s in schedules(KernelRequest(op, core, "layer")))
    assert SMLAD.fits(load_platform("stm32f746").core) and not SMLAD.fits(core)
    assert MAC.fits(core) and not MAC.fits(load_platform("stm32f746").core)


def _one_layer():
    quantization = Quantization(np.array([0.1], np.float32), np.array([0], np.int32))
    int8 = np.dtype(np.int8)
    x, y = (Tensor(name, (1, 2, 2, 4), int8, quantization) for name in "xy")
    w = Tensor("w", (4, 1, 1, 4), int8, quantization, np.ones((4, 1, 1, 4), np.int8))
    b = Tensor("b", (4,), np.dtype(np.int32), None, np.zeros(4, np.int32))
    return Op("CONV_2D", "layer", [x, w, b], [y], Conv2D((1, 1), Padding()))


def test_what_cannot_be_is_refused():
    with pytest.raises(UsageError, match="another instruction has that name"):
        intrinsics.register(replace(DOT4, expression="{x} {w} {sum}"))
    with pytest.raises(UsageError, match="2 lanes of int8 are not supported"):
        replace(DOT4, lanes=2)
    with pytest.raises(UsageError, match=r"lacks \{w\}"):
        replace(DOT4, expression="{x} {sum}")
    with pytest.raises(UsageError, match="need `widen`"):
        replace(DOT4, lanes=2, operand="int16")
