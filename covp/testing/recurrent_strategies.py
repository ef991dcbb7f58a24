"""Strategies of cells with a state. Part of `problems`."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.internal.conjecture.data import ConjectureData

from covp.errors import UsageError
from covp.testing.arrays import Drawn, Shape, draw_array, draw_seed
from covp.testing.multipliers import LEAST, MOST, draw_requantization, draw_zero_point
from covp.testing.problem import Array
from covp.testing.recurrent_problems import Factor, GruProblem, LstmProblem, SvdfProblem

INT8, INT16, INT32 = (np.dtype(kind) for kind in (np.int8, np.int16, np.int32))
_BIAS = 1 << 12


def svdfs(
    *, max_features: int = 12, max_units: int = 4, max_steps: int = 6, max_rank: int = 2
) -> st.SearchStrategy[SvdfProblem]:
    """Return a strategy of steps of int8 SVDF layers with an int16 state.

    Args:
        max_features, max_units, max_steps, max_rank: the largest extents.
    """

    def draw(data: ConjectureData) -> SvdfProblem:
        batch, features = data.draw_integer(1, 2), data.draw_integer(1, max_features)
        units, steps = data.draw_integer(1, max_units), data.draw_integer(1, max_steps)
        rank, has_bias = data.draw_integer(1, max_rank), data.draw_integer(0, 1) == 0
        zero_point = draw_zero_point(data, INT8)
        factor = _draw_factor(data, -4, 1)
        filters = units * rank
        x, feature, time, state, bias = _draw_all(
            data,
            (INT8, (batch, features), None),
            (INT8, (filters, features), 127),
            (INT16, (filters, steps), 1 << 10),  # a sum of them stays within 32 bits
            (INT16, (batch, filters, steps), None),
            (INT32, (units,), 1 << 20),
        )
        bits = (1 << 21).bit_length() + (rank * steps).bit_length()
        requantization = draw_requantization(data, 1, INT8, bits, 31)
        given = bias if has_bias else None
        return SvdfProblem(x, feature, time, given, state, rank, zero_point, factor, requantization)

    return Drawn(draw, "svdfs()")


def lstms(
    dtype: str = "int8", *, max_steps: int = 3, max_features: int = 6, max_cells: int = 5
) -> st.SearchStrategy[LstmProblem]:
    """Return a strategy of integer LSTMs.

    Args:
        dtype: "int8" or "int16", of input and hidden state.
        max_steps, max_features, max_cells: the largest extents.
    """
    if dtype not in ("int8", "int16"):
        raise UsageError(f"integer LSTMs of {dtype}: int8 or int16 are needed")
    kind = np.dtype(dtype)

    def draw(data: ConjectureData) -> LstmProblem:
        batch, steps = data.draw_integer(1, 2), data.draw_integer(1, max_steps)
        features, cells = data.draw_integer(1, max_features), data.draw_integer(1, max_cells)
        power = data.draw_integer(-15, -9)
        zeros = (draw_zero_point(data, kind), draw_zero_point(data, kind)) if kind == INT8 else None
        # products of one gate come to some units of 2**-12
        least = -4 if kind == INT8 else -12
        factors = [_draw_factor(data, least, least + 3) for _ in range(8)]
        hidden = _draw_factor(data, *((-23, -22) if kind == INT8 else (-15, -14)))
        x, weights, recurrent, bias, h, cell = _draw_all(
            data,
            (kind, (batch, steps, features), None),
            (INT8, (4, cells, features), 127),
            (INT8, (4, cells, cells), 127),
            (INT32, (4, cells), _BIAS),
            (kind, (batch, cells), None),
            (INT16, (batch, cells), None),
        )
        if kind == INT16:
            bias = bias.astype(np.int64) * 256
        return LstmProblem(
            x, weights, recurrent, bias, h, cell, tuple(factors[:4]), tuple(factors[4:]), hidden,
            zeros or (0, 0), power,
        )  # fmt: skip

    return Drawn(draw, f"lstms({dtype!r})")


def grus(
    *, max_steps: int = 3, max_features: int = 6, max_cells: int = 5
) -> st.SearchStrategy[GruProblem]:
    """Return a strategy of float32 GRUs, with the reset gate before or after the product.

    Args:
        max_steps, max_features, max_cells: the largest extents.
    """

    def draw(data: ConjectureData) -> GruProblem:
        batch, steps = data.draw_integer(1, 2), data.draw_integer(1, max_steps)
        features, cells = data.draw_integer(1, max_features), data.draw_integer(1, max_cells)
        after = data.draw_integer(0, 1) == 0
        single = np.dtype(np.float32)
        x, weights, recurrent, bias, back, hidden = _draw_all(
            data,
            (single, (batch, steps, features), 4),
            (single, (3, cells, features), 1),
            (single, (3, cells, cells), 1),
            (single, (3, cells), 1),
            (single, (3, cells), 1),
            (single, (batch, cells), 1),
        )
        return GruProblem(x, weights, recurrent, bias, back, hidden, after)

    return Drawn(draw, "grus()")


def _draw_factor(data: ConjectureData, least: int, most: int) -> Factor:
    """Return a multiplier, one of two a power of two, and a shift."""
    multiplier = data.draw_integer(LEAST, MOST) if data.draw_integer(0, 1) else LEAST
    return multiplier, data.draw_integer(least, most)


def _draw_all(
    data: ConjectureData, *wanted: tuple[np.dtype[Any], Shape, int | None]
) -> list[Array]:
    """Draw arrays of a type, a shape and a largest magnitude; None: the whole type."""
    seeds = [draw_seed(data) for _ in wanted]
    arrays = []
    for seed, (kind, shape, most) in zip(seeds, wanted, strict=True):
        ends = (0, 0) if kind.kind == "f" else (np.iinfo(kind).min, np.iinfo(kind).max)
        low, high = ends if most is None else (-most, most)
        arrays.append(draw_array(data, seed, kind, shape, int(low), int(high)))
    return arrays
