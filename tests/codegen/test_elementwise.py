"""ADD, SUB and MUL on every core against the specification in plain integers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covp.graph.attributes import Elementwise
from covp.graph.graph import Op, Tensor
from covp.testing import layers

from .tflm import quantized_multiplier, scaled

PLATFORMS = ["riscv32", "cortex-m4", "cortex-m0plus"]
LAYERS = layers.elementwise(
    dtype="int8",
    broadcast=True,
    activation=layers.ACTIVATIONS,
    constant=st.booleans(),
    scales=st.tuples(*[st.floats(0.001, 0.2)] * 3),
)


def operands(layer):
    """The values of both operands: the second may be part of the graph."""
    op, given = layer.op(), layer.inputs()
    return given if len(given) == 2 else [*given, op.input(1).data]


def rescaled(value, real):
    return scaled(value, *quantized_multiplier(real))


def expected(op, a, b):
    (sa, za), (sb, zb), (so, zo) = [
        (float(np.float32(t.scale)), t.zero_point) for t in (*op.inputs, op.output)
    ]
    low, high = -128, 127
    bounds = {"relu": (0, None), "relu6": (0, 6), "relu_n1_to_1": (-1, 1), "none": (None, None)}
    below, above = bounds[op.attributes.activation]
    if below is not None:
        low = max(low, zo - math.floor(np.float32(-below) / np.float32(so) + 0.5))
    if above is not None:
        high = min(high, zo + math.floor(np.float32(above) / np.float32(so) + 0.5))
    result = np.empty(op.output.shape, np.int8)
    for index, (x, y) in enumerate(np.broadcast(a, b)):
        x, y = int(x) - za, int(y) - zb
        if op.kind == "MUL":
            value = rescaled(x * y, sa * sb / so)
        else:
            twice = 2 * max(sa, sb)
            p, q = rescaled(x << 20, sa / twice), rescaled(y << 20, sb / twice)
            value = rescaled(p - q if op.kind == "SUB" else p + q, twice / (2**20 * so))
        result.reshape(-1)[index] = min(max(value + zo, low), max(low, high))
    return result


@pytest.mark.parametrize("platform", PLATFORMS)
@settings(max_examples=12, deadline=None)
@given(layer=LAYERS, data=st.data())
def test_int8_with_every_schedule(run_layer, platform, layer, data):
    op, passed = layer.op(), layer.inputs()
    result = run_layer(platform, op, *passed, choose=lambda s: data.draw(st.sampled_from(s)))
    assert np.array_equal(result[0], expected(op, *operands(layer)))


@pytest.mark.parametrize("platform", PLATFORMS)
@settings(max_examples=4, deadline=None)
@given(layer=LAYERS.filter(lambda layer: layer.kind != "MUL"))
def test_sums_from_tables(run_layer, platform, layer):
    """The form for scales that one linear step cannot serve."""
    op, passed = layer.op(), layer.inputs()
    result = run_layer(
        platform, op, *passed, choose=lambda s: next(p for p in s if p.tile == "tables")
    )[0]
    assert np.array_equal(result, expected(op, *operands(layer)))


@pytest.mark.parametrize("platform", PLATFORMS)
@settings(max_examples=4, deadline=None)
@given(layer=LAYERS)
def test_gcc_matches(run_layer, platform, layer):
    op, passed = layer.op(), layer.inputs()
    result = run_layer(platform, op, *passed, toolchain="gcc")[0]
    assert np.array_equal(result, expected(op, *operands(layer)))


@pytest.mark.costly
@pytest.mark.parametrize("platform", [*PLATFORMS, "cortex-m7"])
@pytest.mark.parametrize("kind", ["ADD", "SUB", "MUL"])
def test_float(run_layer, platform, kind):
    rng = np.random.default_rng(3)
    a, b = (rng.normal(0, 4, s).astype(np.float32) for s in ((2, 3, 5), (3, 1)))
    tensors = [Tensor(n, v.shape, np.dtype(np.float32)) for n, v in (("a", a), ("b", b))]
    out = Tensor("y", (2, 3, 5), np.dtype(np.float32))
    op = Op(kind, "layer", list(tensors), [out], Elementwise("relu6"))
    exact = {"ADD": a + b, "SUB": a - b, "MUL": a * b}[kind]
    assert np.array_equal(run_layer(platform, op, a, b)[0], np.clip(exact, 0, 6))
