"""int16 functions of one element: LiteRT's tables of 513 values with interpolation.

Source: tensorflow/lite/kernels/internal/common.h (LUTPopulate<int16_t>, LUTLookup); single
precision throughout.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from covp.graph.graph import Op
from covp.graph.ops.definition import Array
from covp.graph.ops.int16 import MAX, MIN, lookup

Function = Callable[[Op, Array], Array]
_SINGLE = np.float32
STEPS = 512

INTERPOLATED: dict[str, Function] = {}
"""Kind to its function of float64 values."""


def _round_half_away(x: Array) -> Array:
    """Half away from zero."""
    wide = x.astype(np.float64)
    return np.asarray(np.trunc(wide + np.copysign(0.5, wide)).astype(_SINGLE))


def interpolation_table(op: Op) -> Array:
    """Return the 513 samples: half of the error mid-step is taken from the step's left end."""
    source, out = op.input(0), op.output
    low, high = (_SINGLE(source.scale) * _SINGLE(end - source.zero_point) for end in (MIN, MAX))
    ends = [_SINGLE(out.scale) * _SINGLE(end - out.zero_point) for end in (MIN, MAX)]
    inverse = _SINGLE(MAX - MIN + 1) / (ends[1] - ends[0])
    step = (high - low) / _SINGLE(STEPS)
    i = np.arange(STEPS, dtype=_SINGLE)

    def scale(x: Array) -> Array:
        value = INTERPOLATED[op.kind](op, x.astype(np.float64)).astype(_SINGLE)
        return np.asarray(value * inverse)

    left = _round_half_away(scale(low + i * step))
    middle = _round_half_away(scale(low + i * step + step / _SINGLE(2)))
    interpolated = _round_half_away((scale(low + (i + _SINGLE(1)) * step) + left) / _SINGLE(2))
    samples = left - _round_half_away((interpolated - middle) / _SINGLE(2))
    table = np.concatenate([samples, _round_half_away(scale(np.array([high], _SINGLE)))])
    # of what is out of range nothing but its side is left
    return np.asarray(np.clip(np.nan_to_num(table, nan=MAX), MIN, MAX).astype(np.int64))


def interpolate(op: Op, x: Array) -> Array:
    """Return the function of stored values."""
    return lookup(x.astype(np.int64), interpolation_table(op)).astype(np.int16)


def _log(op: Op, x: Array) -> Array:
    least = (MIN - op.output.zero_point) * float(_SINGLE(op.output.scale))
    return np.where(x <= 0, least, np.log(np.where(x <= 0, 1, x)))


def _rsqrt(op: Op, x: Array) -> Array:
    most = float(_SINGLE(MAX) * _SINGLE(op.output.scale))
    return np.where(x <= 0, most, 1 / np.sqrt(np.where(x <= 0, 1, x)))


INTERPOLATED |= {"EXP": lambda op, x: np.exp(x), "LOG": _log, "RSQRT": _rsqrt}
