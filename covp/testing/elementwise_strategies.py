"""Strategies of sums and products of two tensors. Part of `problems`."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.internal.conjecture.data import ConjectureData

from covp.errors import UsageError
from covp.graph.quantization import quantize_multiplier
from covp.testing.arrays import Drawn, Shape, draw_array, draw_seed
from covp.testing.elementwise_problems import AddProblem, MulProblem
from covp.testing.multipliers import draw_clamp, draw_zero_point
from covp.testing.problem import Array, Pair
from covp.testing.requantization import Requantization

_LEFT_SHIFTS = {"int8": 20, "int16": 15}
"""Bits that TFLM gives to the operands of a sum."""


def additions(
    dtype: str = "int8",
    shapes: st.SearchStrategy[tuple[Shape, Shape]] | None = None,
    *,
    subtract: bool | None = False,
    broadcast: bool = True,
) -> st.SearchStrategy[AddProblem]:
    """Return a strategy of sums of two tensors with scales from 2**-6 to 1.

    Args:
        dtype: "int8" or "int16".
        shapes: of both; they broadcast.
        subtract: differences instead; None: both.
        broadcast: the shapes may differ, where they are not given.
    """
    kind = _kind(dtype)

    def draw(data: ConjectureData) -> AddProblem:
        pair = _draw_shapes(data, shapes, broadcast)
        minus = data.draw_integer(0, 1) == 1 if subtract is None else subtract
        a, b, y = (_draw_scale(data) for _ in range(3))
        twice, bits = 2.0 * max(a, b), _LEFT_SHIFTS[dtype]
        factors = [quantize_multiplier(scale / twice) for scale in (a, b)]
        requantization = _draw_output(data, kind, twice / ((1 << bits) * y))
        zeros, values = _draw_operands(data, kind, pair)
        return AddProblem(
            *values,
            zeros,
            (factors[0][0], factors[1][0]),
            (factors[0][1], factors[1][1]),
            requantization,
            bits,
            minus,
        )

    return Drawn(draw, f"additions({dtype!r})")


def products(
    dtype: str = "int8",
    shapes: st.SearchStrategy[tuple[Shape, Shape]] | None = None,
    *,
    broadcast: bool = True,
) -> st.SearchStrategy[MulProblem]:
    """Return a strategy of products of two tensors.

    Args:
        dtype: "int8" or "int16".
        shapes: of both; they broadcast.
        broadcast: the shapes may differ, where they are not given.
    """
    kind = _kind(dtype)

    def draw(data: ConjectureData) -> MulProblem:
        pair = _draw_shapes(data, shapes, broadcast)
        # a product of two in the middle of their range is in the middle of the output's
        factor = _draw_scale(data) * 2.0 ** (3 - 8 * kind.itemsize)
        requantization = _draw_output(data, kind, factor)
        zeros, values = _draw_operands(data, kind, pair)
        return MulProblem(*values, zeros, requantization)

    return Drawn(draw, f"products({dtype!r})")


def _kind(dtype: str) -> np.dtype[Any]:
    if dtype not in _LEFT_SHIFTS:
        raise UsageError(f"sums and products of {dtype}: int8 or int16 are needed")
    return np.dtype(dtype)


def _draw_scale(data: ConjectureData) -> float:
    """Draw a scale from 2**-6 to 1; one in three is a power of two."""
    power = 2.0 ** -data.draw_integer(0, 5)
    return (
        power * (1 - data.draw_integer(0, 1 << 14) / (1 << 15))
        if data.draw_integer(0, 2)
        else power
    )


def _draw_output(data: ConjectureData, kind: np.dtype[Any], factor: float) -> Requantization:
    multiplier, shift = quantize_multiplier(factor)
    zero_point, low, high = draw_clamp(data, kind)
    return Requantization(
        np.array([multiplier], np.int32), np.array([shift], np.int32), zero_point, low, high
    )


def _draw_shapes(
    data: ConjectureData, shapes: st.SearchStrategy[tuple[Shape, Shape]] | None, broadcast: bool
) -> tuple[Shape, Shape]:
    if shapes is not None:
        return data.draw(shapes)
    whole = tuple(data.draw_integer(1, 5) for _ in range(data.draw_integer(1, 4)))
    if not broadcast or not data.draw_integer(0, 1):
        return whole, whole
    other = tuple(1 if data.draw_integer(0, 1) else extent for extent in whole)
    other = other[data.draw_integer(0, len(other) - 1) :]
    return (other, whole) if data.draw_integer(0, 1) else (whole, other)


def _draw_operands(
    data: ConjectureData, kind: np.dtype[Any], pair: tuple[Shape, Shape]
) -> tuple[Pair, tuple[Array, Array]]:
    zeros = (0, 0)
    if kind == np.int8:
        zeros = (draw_zero_point(data, kind), draw_zero_point(data, kind))
    info = np.iinfo(kind)
    seeds = draw_seed(data), draw_seed(data)
    a, b = (
        draw_array(data, seed, kind, shape, int(info.min), int(info.max))
        for seed, shape in zip(seeds, pair, strict=True)
    )
    return zeros, (a, b)
