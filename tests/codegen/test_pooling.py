"""int8 pools on every core against the specification in plain integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covp.codegen.kernels.pooling.pooling import has_reciprocal
from covp.graph.attributes import Padding, Pool2D
from covp.graph.graph import Op
from covp.testing import layers
from covp.testing.tensors import int8

PLATFORMS = ["riscv32", "cortex-m4", "cortex-m0plus"]


POOLS = layers.pools(
    dtype="int8",
    max_filter=5,
    batch=st.integers(1, 2),
    padding=layers.paddings(5),
    activation=st.sampled_from(["none", "relu", "relu_n1_to_1"]),
    zero_point=-20,
)


def expected(op, x):
    a, result = op.attributes, np.empty(op.output.shape, np.int8)
    # the activation's limits at scale 0.05 and zero point -20
    low, high = {"none": (-128, 127), "relu": (-20, 127), "relu_n1_to_1": (-40, 0)}[a.activation]
    for b, y, column, c in np.ndindex(*result.shape):
        top, left = y * a.stride[0] - a.padding.top, column * a.stride[1] - a.padding.left
        rows = range(max(top, 0), min(top + a.filter[0], x.shape[1]))
        columns = range(max(left, 0), min(left + a.filter[1], x.shape[2]))
        seen = [int(x[b, i, j, c]) for i in rows for j in columns]
        value = max(seen) if op.kind == "MAX_POOL_2D" else average(sum(seen), len(seen))
        result[b, y, column, c] = min(max(value, low), high)
    return result


def average(total, count):
    """AveragePool of reference_integer_ops, C's division."""
    rounded = total + count // 2 if total > 0 else total - count // 2
    return abs(rounded) // count * (1 if rounded >= 0 else -1)


@pytest.mark.parametrize("platform", PLATFORMS)
@settings(max_examples=25, deadline=None)
@given(pool=POOLS, data=st.data())
def test_int8_with_every_schedule(run_layer, platform, pool, data):
    op, (x,) = pool.op(), pool.inputs()
    result = run_layer(platform, op, x, choose=lambda s: data.draw(st.sampled_from(s)))
    assert np.array_equal(result[0], expected(op, x))


@pytest.mark.parametrize("platform", PLATFORMS)
@settings(max_examples=5, deadline=None)
@given(pool=POOLS)
def test_gcc_matches(run_layer, platform, pool):
    op, (x,) = pool.op(), pool.inputs()
    assert np.array_equal(run_layer(platform, op, x, toolchain="gcc")[0], expected(op, x))


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_large_window_divides(run_layer, platform):
    """Above 2**12 pixels there is no checked reciprocal."""
    assert not has_reciprocal(70 * 70)
    x = np.random.default_rng(1).integers(-128, 100, (1, 70, 70, 2)).astype(np.int8)
    attributes = Pool2D((70, 70), (1, 1), Padding())
    op = Op("AVERAGE_POOL_2D", "layer", [int8("x", x.shape)], [int8("y", (1, 1, 1, 2))], attributes)
    assert np.array_equal(run_layer(platform, op, x)[0], expected(op, x))


def test_reciprocals_of_usual_windows():
    assert all(has_reciprocal(count) for count in range(1, 256))
