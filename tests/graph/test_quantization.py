"""The fixed-point functions against their C definitions in Python's unbounded integers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from covp.graph import fixed_point
from covp.graph.attributes import FullyConnected
from covp.graph.quantization import (
    INT32_MAX,
    INT32_MIN,
    activation_range,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    rounding_divide_by_pot,
    rounding_doubling_high_mul,
)
from covp.graph.reference import run_reference
from covp.graph.tflite import read_tflite
from covp.graph.zoo.builder import GraphBuilder
from covp.graph.zoo.tflite_writer import write_tflite

int32 = st.integers(INT32_MIN, INT32_MAX)
few = settings(max_examples=300, deadline=None, derandomize=True)


def truncated(numerator: int, denominator: int) -> int:
    """C's integer division."""
    quotient = abs(numerator) // abs(denominator)
    return quotient if (numerator < 0) == (denominator < 0) else -quotient


def high_mul(a: int, b: int) -> int:
    """SaturatingRoundingDoublingHighMul, word for word."""
    if a == b == INT32_MIN:
        return INT32_MAX
    product = a * b
    nudge = (1 << 30) if product >= 0 else 1 - (1 << 30)
    return truncated(product + nudge, 1 << 31)


def divide_by_pot(x: int, exponent: int) -> int:
    """RoundingDivideByPOT: the nearest integer, ties away from zero."""
    exact = abs(Fraction(x, 1 << exponent)) + Fraction(1, 2)
    rounded = exact.numerator // exact.denominator
    return rounded if x >= 0 else -rounded


def rescale(x: int, multiplier: int, shift: int) -> int:
    """MultiplyByQuantizedMultiplier with two roundings."""
    return divide_by_pot(high_mul(x * (1 << max(shift, 0)), multiplier), max(-shift, 0))


@few
@given(int32, int32)
@example(INT32_MIN, INT32_MIN)
@example(INT32_MIN, INT32_MAX)
def test_high_mul(a: int, b: int) -> None:
    assert int(rounding_doubling_high_mul(a, b)) == high_mul(a, b)


@few
@given(int32, st.integers(0, 31))
@example(-3, 1)
@example(3, 1)
def test_divide_by_pot(x: int, exponent: int) -> None:
    assert int(rounding_divide_by_pot(x, exponent)) == divide_by_pot(x, exponent)


@few
@given(st.floats(2**-30, 2**20))
def test_quantize_multiplier(real: float) -> None:
    multiplier, shift = quantize_multiplier(real)
    assert 1 << 30 <= multiplier < 1 << 31
    exact = Fraction(multiplier, 1 << 31) * Fraction(2) ** shift
    assert abs(exact - Fraction(real)) <= Fraction(real) / (1 << 31)


def test_quantize_multiplier_at_the_ends() -> None:
    assert quantize_multiplier(0.0) == (0, 0)
    assert quantize_multiplier(1.0) == (1 << 30, 1)
    assert quantize_multiplier(2.0**-40) == (0, 0)


@few
@given(st.integers(-(2**20), 2**20), st.integers(1 << 30, INT32_MAX), st.integers(-31, 10))
def test_multiply_by_quantized_multiplier(x: int, multiplier: int, shift: int) -> None:
    found = multiply_by_quantized_multiplier(x, multiplier, shift)
    assert int(found) == rescale(x, multiplier, shift)


def test_activation_range() -> None:
    int8 = np.dtype(np.int8)
    assert activation_range("none", 0.1, 3, int8) == (-128, 127)
    assert activation_range("relu", 0.1, 3, int8) == (3, 127)
    assert activation_range("relu6", 0.1, 3, int8) == (3, 63)
    assert activation_range("relu_n1_to_1", 0.1, 3, int8) == (-7, 13)
    assert activation_range("relu6", 0.01, -128, int8) == (-128, 127)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_fully_connected_is_tflms(seed: int, per_channel: bool) -> None:
    """TFLM's reference loop in plain integers."""
    rng = np.random.default_rng(seed)
    depth, units = int(rng.integers(1, 60)), int(rng.integers(1, 9))
    builder = GraphBuilder()
    x = builder.input((2, depth), scale=0.03, zero_point=int(rng.integers(-128, 128)))
    stored = rng.integers(-127, 128, (units, depth)).astype(np.int8)
    scales = rng.uniform(1e-3, 1e-2, units if per_channel else 1).astype(np.float32)
    offsets = rng.integers(-5000, 5000, units).astype(np.int32)
    y = builder.add(
        "FULLY_CONNECTED",
        x,
        builder.constant(stored, scales),
        builder.constant(offsets, 0.03 * scales),
        attributes=FullyConnected("relu"),
        scale=0.2,
        zero_point=-100,
    )
    graph = read_tflite(write_tflite(builder.graph(y)))
    value = rng.integers(-128, 128, x.shape).astype(np.int8)
    found = run_reference(graph, [value])[0]
    for row in range(2):
        for unit in range(units):
            total = int(offsets[unit])
            for k in range(depth):
                total += (int(value[row, k]) - x.zero_point) * int(stored[unit, k])
            if per_channel:
                factor = float(np.float32(0.03)) * float(scales[unit]) / float(np.float32(0.2))
            else:
                factor = float(np.float32(0.03) * scales[0]) / float(np.float32(0.2))
            result = rescale(total, *quantize_multiplier(factor)) - 100
            assert found[row, unit] == min(max(result, -100), 127)


def test_exp_is_close_to_the_real_one() -> None:
    raw = -np.linspace(0, 2**31 - 1, 4001).astype(np.int64)
    for bits in range(6):
        real = np.exp(raw / 2.0 ** (31 - bits))
        found = fixed_point.exp_on_negative_values(raw, bits) / 2.0**31
        assert np.abs(found - real).max() < 4e-7


def test_logistic_and_tanh_are_close_to_the_real_ones() -> None:
    raw = np.linspace(-(2**31) + 1, 2**31 - 1, 4001).astype(np.int64)
    x = raw / 2.0**27
    assert np.abs(fixed_point.logistic(raw, 4) / 2.0**31 - 1 / (1 + np.exp(-x))).max() < 4e-7
    assert np.abs(fixed_point.tanh(raw, 4) / 2.0**31 - np.tanh(x)).max() < 4e-7


def test_one_over_one_plus_x() -> None:
    raw = np.linspace(0, 2**31 - 1, 1001).astype(np.int64)
    found = fixed_point.one_over_one_plus_x(raw) / 2.0**31
    assert np.abs(found - 1 / (1 + raw / 2.0**31)).max() < 1e-8
